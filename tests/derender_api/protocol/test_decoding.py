"""Body bytes to wire models: the shape, JSON as Python reads it, errors that name the place."""

import pytest

from derender_api.exceptions import InvalidJson, RequestRuleViolation, SchemaViolation
from derender_api.protocol.decoding import decode_shaped
from derender_api.protocol.derender import (
    CHAT_SHAPES,
    COMPLETION_SHAPES,
    DerenderChatRequest,
    DerenderChatStreamRequest,
)

RESPONSE = b'"generate_response":{"choices":[]}'
CHUNK = b'"generate_chunk":{"choices":[]}'


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        (b"{%s}" % RESPONSE, DerenderChatRequest),
        (b'{"stream":false,%s}' % RESPONSE, DerenderChatRequest),
        (b'{"stream":0,%s}' % RESPONSE, DerenderChatRequest),
        (b'{"stream":true,%s}' % CHUNK, DerenderChatStreamRequest),
        (b'{"stream":1,%s}' % CHUNK, DerenderChatStreamRequest),
        (b'{"stream":1.0,%s}' % CHUNK, DerenderChatStreamRequest),
        (b"{%s,%s}" % (RESPONSE, CHUNK), DerenderChatRequest),
        (b'{"stream":true,"generate_response":5,%s}' % CHUNK, DerenderChatStreamRequest),
        (b'{"stream":false,%s,"generate_chunk":5}' % RESPONSE, DerenderChatRequest),
        (b'\xef\xbb\xbf{"stream":true,%s}' % CHUNK, DerenderChatStreamRequest),
    ],
)
def test_stream_alone_selects_the_shape(body, shape):
    assert type(decode_shaped(body, CHAT_SHAPES)) is shape


@pytest.mark.parametrize(
    ("body", "param", "line"),
    [
        (b"{}", "body.DerenderChatRequest.generate_response", "body.generate_response: Field required"),
        (b'{"stream":true}', "body.DerenderChatStreamRequest.generate_chunk", "body.generate_chunk: Field required"),
        (
            b'{"stream":null,%s}' % RESPONSE,
            "body.DerenderChatRequest.stream",
            "body.stream: Input should be False, got None",
        ),
        (
            b'{"stream":"true",%s,%s}' % (RESPONSE, CHUNK),
            "body.DerenderChatRequest.stream",
            "body.stream: Input should be False, got true",
        ),
        (
            b"[]",
            "body.DerenderChatRequest",
            "body: Input should be a valid dictionary or instance of DerenderChatRequest, got an array of 0 items",
        ),
        (
            b'{"generate_response":{"choices":[{"index":"x"}]}}',
            "body.DerenderChatRequest.generate_response.choices.0.index",
            "body.generate_response.choices.0.index: Input should be a valid integer, unable to parse string as an "
            "integer, got x",
        ),
        (
            b'{"generate_response":{"choices":[{"index":0,"token_ids":[1,-1]}]}}',
            "body.DerenderChatRequest.generate_response.choices.0.token_ids",
            "body.generate_response.choices.0.token_ids: Value error, token_ids must not contain negative values",
        ),
        (
            b'{"prompt_token_ids":[5,-2],%s}' % RESPONSE,
            "body.DerenderChatRequest.prompt_token_ids.1",
            "body.prompt_token_ids.1: Input should be greater than or equal to 0, got -2",
        ),
        (
            b'{"stream":true,"stream_state":{"output_chunk_lens":[2]},%s}' % CHUNK,
            "body.DerenderChatStreamRequest.stream_state",
            "body.stream_state: Value error, output_chunk_lens must sum to len(output_token_ids) "
            "(got sum=2, len(output_token_ids)=0)",
        ),
        (
            b'{"chat_request":{"messages":[{}]},%s}' % RESPONSE,
            "body.DerenderChatRequest.chat_request.messages.0.role",
            "body.chat_request.messages.0.role: Field required",
        ),
    ],
)
def test_schema_errors_name_the_place_in_the_selected_shape(body, param, line):
    with pytest.raises(SchemaViolation) as caught:
        decode_shaped(body, CHAT_SHAPES)

    assert (caught.value.param, caught.value.message) == (param, f"1 validation error:\n  {line}")


def test_every_schema_error_is_listed_up_to_ten():
    body = b'{"generate_response":{"choices":[%s]}}' % b",".join([b"{}"] * 12)

    with pytest.raises(SchemaViolation) as caught:
        decode_shaped(body, CHAT_SHAPES)

    lines = caught.value.message.split("\n  ")
    assert lines[0] == "12 validation errors:"
    assert lines[10:] == ["body.generate_response.choices.9.index: Field required", "...and 2 more errors"]


def test_completions_lengths_must_agree():
    body = b'{"generate_responses":[{"choices":[]}],"prompt_tokens":[1,2]}'

    with pytest.raises(SchemaViolation) as caught:
        decode_shaped(body, COMPLETION_SHAPES)

    assert caught.value.param == "body"
    assert "prompt_tokens length (2) must equal generate_responses length (1)" in caught.value.message


@pytest.mark.parametrize(
    ("body", "param", "problem"),
    [
        (b"{not json", "body.1", "Expecting property name enclosed in double quotes"),
        (b'{"a":1} x', "body.8", "Extra data"),
        (b'{"a":"\t"}', "body.6", "Invalid control character at"),
        (b"\xff", "body", "can't decode byte 0xff"),
        (b"[" * 100_000, "body", "too deeply nested"),
        (b"[" + b"9" * 5000 + b"]", "body", "Exceeds the limit"),
    ],
)
def test_what_is_not_json_is_refused_with_its_position(body, param, problem):
    with pytest.raises(InvalidJson) as caught:
        decode_shaped(body, CHAT_SHAPES)

    assert caught.value.param == param
    assert problem in caught.value.message


@pytest.mark.parametrize("body", [b"", b"null"])
def test_an_empty_body_is_a_schema_error(body):
    with pytest.raises(SchemaViolation):
        decode_shaped(body, CHAT_SHAPES)


def test_json_is_read_as_python_reads_it():
    body = (
        b'{"generate_response":{"request_id":"a","request_id":"\\ud83c",'
        b'"kv_transfer_params":{"x":NaN,"y":-Infinity},"choices":[{"index":1e2,"token_ids":[2.541e3,"7",true]}]}}'
    )

    response = decode_shaped(body, CHAT_SHAPES).generate_response

    assert response.request_id == "\ud83c"
    assert response.choices[0].index == 100
    assert response.choices[0].token_ids == [2541, 7, 1]


def test_a_broken_rule_wins_over_every_schema_error():
    body = b'{"generate_response":5,"chat_request":{"messages":5,"tools":[]}}'

    with pytest.raises(RequestRuleViolation) as caught:
        decode_shaped(body, CHAT_SHAPES)

    assert caught.value.param == "tools"


@pytest.mark.parametrize(("count", "is_valid"), [(4, True), (5, False)])
def test_stop_strings_are_limited(count, is_valid, settings):
    body = b'{"chat_request":{"messages":[],"stop":[%s]},%s}' % (b",".join([b'"a"'] * count), RESPONSE)

    if is_valid:
        decode_shaped(body, CHAT_SHAPES)
    else:
        with pytest.raises(SchemaViolation, match="at most 4 items"):
            decode_shaped(body, CHAT_SHAPES)
    settings.DERENDER = {**settings.DERENDER, "MAX_STOP_STRINGS": 5}
    decode_shaped(body, CHAT_SHAPES)
