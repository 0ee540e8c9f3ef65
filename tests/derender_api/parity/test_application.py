"""What a stream is sent as, in either form of the stream state."""

import json

from derender_api.parity.application import HttpAnswer, post_stream
from derender_api.parity.suite import read_case
from tests.derender_api.parity.support import CASE, Echo


class Recorder(Echo):
    """Notes the bodies; answers 409 to the calls of these numbers."""

    def __init__(self, refused=()):
        self.bodies = []
        self._refused = refused

    def send(self, method, path, headers, body):
        self.bodies.append(json.loads(body))
        if len(self.bodies) in self._refused:
            return HttpAnswer(409, {})
        return super().send(method, path, headers, body)


def sent(*, compact, refused=()):
    recorder = Recorder(refused)
    case = read_case(json.dumps(CASE).encode(), suite="demo")
    post_stream(recorder, case, [1] * len(case.output_token_ids), compact=compact)
    return recorder.bodies


def test_the_replay_form_sends_everything_each_time():
    for body in sent(compact=False):
        assert {"prompt_token_ids", "chat_request"} <= set(body)
        assert "stream_state_format" not in body


def test_the_compact_form_sends_prompt_and_request_once():
    first, *later = sent(compact=True)
    assert first["stream_state_format"] == "compact"
    assert {"prompt_token_ids", "chat_request"} <= set(first)
    assert later
    for body in later:
        assert not {"prompt_token_ids", "chat_request"} & set(body)


def test_the_request_is_sent_again_where_it_is_asked_for():
    _, short, long, *_ = sent(compact=True, refused=[2])
    assert long == {**short, "chat_request": long["chat_request"]}
