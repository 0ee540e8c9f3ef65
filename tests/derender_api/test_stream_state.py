"""The state that travels with the client."""

from derender_api.protocol.generate import StreamState
from derender_api.stream_state import Carried
from parsers.engine.detokenizer import Window

STATE = {
    "prev_tokens": ["a", "b"],
    "prefix_offset": 1,
    "read_offset": 2,
    "role_sent": True,
    "logprob_context_token_ids": [1, 2],
    "logprob_text_offset": 3,
    "output_token_ids": [4, 5, 6],
    "output_chunk_lens": [2, 1],
    "tools_streamed": True,
    "last_tool_call_ids": ["x"],
}


def test_a_state_comes_back_as_it_was_sent():
    carried = Carried.of(StreamState.model_validate({**STATE, "unknown": 1}))

    assert list(carried.answer().items()) == list(STATE.items())
    assert (carried.is_new, carried.window) == (False, Window(pieces=("a", "b"), prefix=1, read=2))


def test_no_state_is_the_start_of_a_stream_and_an_empty_one_is_not():
    assert Carried.of(None).is_new
    assert not Carried.of(StreamState()).is_new
    assert Carried.of(None).answer() == StreamState().model_dump()


def test_parsed_chunks_become_history():
    carried = Carried.of(StreamState.model_validate(STATE))

    carried.extend_output([])
    carried.extend_output([7, 8])

    assert (carried.output_token_ids, carried.output_chunk_lens) == ([4, 5, 6, 7, 8], [2, 1, 2])


def test_call_ids_are_pinned():
    carried = Carried.of(StreamState.model_validate(STATE))

    assert [carried.pinned_call_id(0, "new"), carried.pinned_call_id(1, "new"), carried.pinned_call_id(1, "other")] == [
        "x",
        "new",
        "new",
    ]
