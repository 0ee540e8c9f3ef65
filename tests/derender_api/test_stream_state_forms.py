"""The two forms of the stream state: they give the same deltas; what each costs and refuses."""

import json
from itertools import cycle

import pytest
from django.conf import settings as django_settings
from django.core.cache import cache
from django.core.signing import Signer

from derender_api import compact_state, parsing
from derender_api.parser_cache import ParserCache, StreamKeys, earlier_keys, parser_cache
from tests.derender_api.support import (
    CHAT,
    COMPLETION,
    HELLO,
    MESSAGES,
    TOOLS,
    WORLD,
    chunk,
    encode,
    parsed_model,
    post,
    served,
)

REQUEST = {"messages": MESSAGES, "tools": TOOLS}
OUTPUT = (
    "<think>\nThe user asks for the weather.\n</think>\n\nLet me look: 🌧️"
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Zürich"}}\n</tool_call>'
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call><|im_end|>'
)


@pytest.fixture(autouse=True)
def _empty_cache():
    parser_cache.clear()
    yield
    parser_cache.clear()


@pytest.fixture
def parsed():
    with parsed_model() as model:
        yield model


def stream(token_ids, *, size=1, compact=False, path=CHAT, prompt=(1, 2), **fields):
    """Deltas, finish reasons and states of a stream; a compact one sends the prompt with the first chunk only."""
    parts = [token_ids[start : start + size] for start in range(0, len(token_ids), size)]
    state, out, states = None, [], []
    for number, part in enumerate(parts):
        choice = {"finish_reason": "stop" if number == len(parts) - 1 else None}
        body = chunk(part, choice=choice, stream_state=state, **fields)
        if compact and number == 0:
            body["stream_state_format"] = "compact"
        if prompt is not None and (not compact or number == 0):
            body["prompt_token_ids"] = list(prompt)
        status, answer = post(path, body)
        assert status == 200, answer
        state = answer["stream_state"]
        states.append(state)
        out.append(without_ids(answer["chunk"]["choices"][0]))
    return out, states


def without_ids(choice):
    for call in choice.get("delta", {}).get("tool_calls") or ():
        call["id"] = call["id"] and "ID"
    return choice


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_both_forms_send_the_same_deltas(parsed, size):
    ids = encode(parsed, OUTPUT)
    replay, _ = stream(ids, size=size, chat_request=REQUEST)
    compact, _ = stream(ids, size=size, compact=True, chat_request=REQUEST)
    assert compact == replay


@pytest.mark.parametrize("path", [CHAT, COMPLETION])
def test_both_forms_send_the_same_text_without_a_parser(path):
    with served() as model:
        ids = encode(model, "Grüße 🌧️ aus Zürich")
        replay, _ = stream(ids, path=path)
        compact, _ = stream(ids, path=path, compact=True)
        assert compact == replay


def test_a_replayed_stream_is_the_same_with_and_without_remembered_parsers(parsed, settings):
    ids = encode(parsed, OUTPUT)
    remembered, _ = stream(ids, chat_request=REQUEST)
    assert len(parser_cache) > 10
    settings.DERENDER = django_settings.DERENDER | {"PARSER_CACHE_ENTRIES": 0}
    parser_cache.clear()
    assert stream(ids, chat_request=REQUEST)[0] == remembered
    assert len(parser_cache) == 0


@pytest.mark.parametrize("size", [1, 3])
def test_a_stream_that_several_processes_answer_is_replayed_from_where_one_left_it(parsed, monkeypatch, size):
    ids = encode(parsed, OUTPUT) * 3
    alone, _ = stream(ids, size=size, chat_request=REQUEST)
    order = cycle([0, 1, 2, 2, 0, 1])
    caches = [ParserCache() for _ in range(3)]
    lookup, replay, replayed = parsing.StreamParsers._remembered, parsing.StreamParser.replay, []
    monkeypatch.setattr(parsing, "count_cache_lookup", replayed.append)

    def remembered(self):
        monkeypatch.setattr(parsing, "parser_cache", caches[next(order)])
        return lookup(self)

    def noted(self, token_ids, lengths):
        replayed.append(len(token_ids))
        replay(self, token_ids, lengths)

    monkeypatch.setattr(parsing.StreamParsers, "_remembered", remembered)
    monkeypatch.setattr(parsing.StreamParser, "replay", noted)

    assert stream(ids, size=size, chat_request=REQUEST)[0] == alone
    assert max(each for each in replayed[20:] if isinstance(each, int)) <= 4 * size
    assert "miss" not in replayed[20:]
    assert {"hit", "near"} <= set(replayed)


def test_a_remembered_parser_is_of_the_same_chunks(parsed):
    """Keys tell apart what was sent in other chunks, and what only begins alike."""
    ids, origin = list(range(100)), b"origin"
    lengths = [3] * 33 + [1]
    keys = {(chunks, tokens): key for chunks, tokens, key in earlier_keys(origin, ids, lengths, most=64)}
    whole = StreamKeys(origin)
    whole.extend(ids[:30], lengths[:10])

    assert list(keys) == [(chunks, 3 * chunks) for chunks in range(33, 0, -1)]
    assert keys[10, 30] == whole.key
    assert len(set(keys.values())) == 33
    others = [
        *earlier_keys(b"other", ids, lengths, most=64),
        *earlier_keys(origin, ids[::-1], lengths, most=64),
        *earlier_keys(origin, ids, [1, 2, *lengths[1:]], most=64),
    ]
    assert set(keys.values()).isdisjoint(key for _, _, key in others)
    assert [chunks for chunks, _, _ in earlier_keys(origin, ids, lengths, most=4)] == [33, 32, 31, 30]


def test_a_chunk_sent_again_is_answered_as_before(parsed):
    ids = encode(parsed, OUTPUT)
    for compact in (False, True):
        _, states = stream(ids, compact=compact, chat_request=REQUEST)
        for number in (5, len(ids) - 12, len(ids) - 2):
            body = chunk(
                ids[number : number + 1], stream_state=states[number - 1], prompt_token_ids=[1, 2], chat_request=REQUEST
            )
            first, second = post(CHAT, body), post(CHAT, body)
            assert first[1]["chunk"]["choices"] == second[1]["chunk"]["choices"]
            assert first[1]["stream_state"] == second[1]["stream_state"]


def test_call_ids_differ_within_a_stream_and_stay_with_it(parsed):
    ids = encode(parsed, OUTPUT)
    for form in ("replay", "compact"):
        body = chunk(ids, stream_state_format=form, prompt_token_ids=[1], chat_request=REQUEST)
        calls = post(CHAT, body)[1]["chunk"]["choices"][0]["delta"]["tool_calls"]
        assert len({call["id"] for call in calls if call["id"]}) == 2


def test_a_compact_state_does_not_grow_with_the_output(parsed):
    long = "<think>" + "Thinking about it. " * 100 + "</think>" + "An answer with words. " * 100
    ids = encode(parsed, long)
    _, states = stream(ids, size=4, compact=True, chat_request=REQUEST)
    sizes = [len(json.dumps(state)) for state in states]
    assert max(sizes) < 2000
    assert max(sizes[2:]) - min(sizes[2:]) < 400


def test_the_models_default_chooses_the_form():
    with parsed_model(stream_state_format="compact") as model:
        _, [state] = stream(encode(model, "Hi"), size=10, chat_request=REQUEST)
        assert state["format"] == "compact"
        body = chunk([HELLO], stream_state_format="replay", prompt_token_ids=[], chat_request=REQUEST)
        assert "output_token_ids" in post(CHAT, body)[1]["stream_state"]


def test_the_prompt_is_needed_with_the_first_chunk(parsed):
    status, answer = post(CHAT, chunk([HELLO], stream_state_format="compact", chat_request=REQUEST))
    assert (status, answer["error"]["param"]) == (400, None)
    assert "prompt_token_ids is required" in answer["error"]["message"]


def refused(state, path=CHAT, **fields):
    status, answer = post(path, chunk([WORLD], stream_state=state, chat_request=REQUEST, **fields))
    return status, answer["error"]["code"]


@pytest.fixture
def state(parsed):
    return stream([HELLO], compact=True, chat_request=REQUEST)[1][0]


def test_a_changed_state_is_refused(state):
    text = state["state"]
    for damaged in (text[:-1] + ("A" if text[-1] != "A" else "B"), "x" + text[1:], "", "nonsense", text.split(":")[0]):
        assert refused({"format": "compact", "state": damaged}) == (400, "stream_state_tampered")


def test_a_state_of_another_key_is_refused_unless_it_is_a_former_one(state, settings):
    former, settings.SECRET_KEY = settings.SECRET_KEY, "another"
    assert refused(state) == (400, "stream_state_tampered")
    settings.SECRET_KEY_FALLBACKS = [former]
    assert post(CHAT, chunk([WORLD], stream_state=state, chat_request=REQUEST))[0] == 200


def test_a_state_of_another_model_endpoint_or_parser_is_refused(state):
    assert refused(state, COMPLETION) == (400, "stream_state_foreign")
    with served():
        assert refused(state) == (400, "stream_state_foreign")
    with parsed_model() as model:
        model.names = ("renamed",)
        assert refused(state) == (400, "stream_state_foreign")


def test_a_state_of_another_version_is_refused(parsed):
    text = Signer(salt=compact_state.SALT).sign_object([0, [], {}], serializer=compact_state._Serializer)
    assert refused({"format": "compact", "state": text}) == (400, "stream_state_outdated")


def test_the_cache_is_bounded_in_entries_bytes_and_age(settings, monkeypatch):
    settings.DERENDER = {"PARSER_CACHE_ENTRIES": 2, "PARSER_CACHE_BYTES": 10, "PARSER_CACHE_SECONDS": 5}
    cache = ParserCache()
    for key in (b"a", b"b", b"c"):
        cache.put(key, key * 4)
    assert [cache.get(key) for key in (b"a", b"b", b"c")] == [None, b"bbbb", b"cccc"]
    cache.put(b"d", b"d" * 8)
    assert [cache.get(key) for key in (b"b", b"c", b"d")] == [None, None, b"d" * 8]
    now = __import__("time").monotonic()
    monkeypatch.setattr("derender_api.parser_cache.time.monotonic", lambda: now + 6)
    assert cache.get(b"d") is None
    assert len(cache) == 0


@pytest.mark.parametrize("form", ["replay", "compact"])
@pytest.mark.parametrize("size", [1, 4])
def test_several_chunks_in_one_call_are_answered_as_single_ones(parsed, form, size):
    ids = encode(parsed, OUTPUT)
    parts = [ids[start : start + size] for start in range(0, len(ids), size)]
    chunks = [
        chunk(part, choice={"finish_reason": "stop" if number == len(parts) - 1 else None})["generate_chunk"]
        for number, part in enumerate(parts)
    ]
    fields = {"stream": True, "stream_state_format": form, "prompt_token_ids": [1, 2], "chat_request": REQUEST}
    single, singles = [], None
    for each in chunks:
        answer = post(CHAT, fields | {"generate_chunk": each, "stream_state": singles})[1]
        singles = answer["stream_state"]
        single.append(answer["chunk"]["choices"])
    state, bulk = None, []
    for part in (chunks[:3], chunks[3:]):
        status, answer = post(CHAT, fields | {"generate_chunks": part, "stream_state": state})
        assert status == 200
        state = answer["stream_state"]
        bulk += [each["choices"] for each in answer["chunks"]]
    assert bulk == single
    assert state == singles


def test_several_completion_chunks_in_one_call():
    with served() as model:
        ids = encode(model, "Grüße 🌧️")
        chunks = [chunk([token_id])["generate_chunk"] for token_id in ids]
        answer = post(COMPLETION, {"stream": True, "generate_chunks": chunks})[1]
        assert "".join(each["choices"][0]["text"] for each in answer["chunks"]) == "Grüße 🌧️"


def test_no_chunks_are_none(parsed):
    status, answer = post(CHAT, {"stream": True, "generate_chunks": [], "chat_request": REQUEST})
    assert status == 400
    assert answer["error"]["param"] == "body.DerenderChatStreamRequest.generate_chunks"


def test_a_chat_request_need_not_be_sent_again(parsed):
    ids = encode(parsed, OUTPUT)
    sent, _ = stream(ids, compact=True, chat_request=REQUEST)
    state, choices = None, []
    for number, token_id in enumerate(ids):
        choice = {"finish_reason": "stop" if number == len(ids) - 1 else None}
        body = chunk([token_id], choice=choice, stream_state=state)
        if number == 0:
            body |= {"stream_state_format": "compact", "prompt_token_ids": [1, 2], "chat_request": REQUEST}
        status, answer = post(CHAT, body)
        assert status == 200, answer
        state = answer["stream_state"]
        choices.append(without_ids(answer["chunk"]["choices"][0]))
    assert choices == sent


def test_a_forgotten_chat_request_is_asked_for(parsed):
    ids = encode(parsed, OUTPUT)
    _, states = stream(ids, compact=True, chat_request=REQUEST)
    body = chunk(ids[6:7], stream_state=states[5])
    expected = post(CHAT, body)[1]["chunk"]["choices"]

    cache.clear()
    status, answer = post(CHAT, body)
    assert status == 409
    assert answer["error"]["code"] == "context_required"
    again = post(CHAT, body | {"chat_request": REQUEST})[1]
    assert again["chunk"]["choices"] == expected
    assert post(CHAT, chunk(ids[7:8], stream_state=again["stream_state"]))[0] == 200


def test_replayed_streams_need_the_chat_request_each_time(parsed):
    ids = encode(parsed, OUTPUT)
    _, states = stream(ids, chat_request=REQUEST)
    body = chunk(ids[6:7], stream_state=states[5], prompt_token_ids=[1, 2])
    assert post(CHAT, body)[0] == 400


def test_a_cache_that_fails_costs_only_the_saving(parsed, monkeypatch):
    def fail(*args, **kwargs):
        raise ConnectionError("no cache")

    ids = encode(parsed, OUTPUT)
    expected, states = stream(ids, compact=True, chat_request=REQUEST)
    for method in ("get", "set", "has_key"):
        monkeypatch.setattr(type(cache._connections[cache._alias]), method, fail)
    assert stream(ids, compact=True, chat_request=REQUEST)[0] == expected
    assert post(CHAT, chunk(ids[6:7], stream_state=states[5]))[0] == 409
