"""A small suite on disk, and an application that answers as recorded, for tests."""

import gzip
import json

from derender_api.parity.observed import HttpAnswer

MESSAGE = {"role": "assistant", "content": "ab", "reasoning": None}
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
CASE = {
    "id": "demo/plain",
    "profile": "plain",
    "request": {"model": "model", "messages": []},
    "prompt_token_ids": [7],
    "output_token_ids": [1, 2],
    "oneshot": {"status": 200, "message": MESSAGE, "finish_reason": "stop", "stop_reason": None, "usage": USAGE},
    "streams": {
        "1": {
            "lens": [1, 1],
            "status": 200,
            "chunks": [[{"role": "assistant", "content": "a"}, None], [{"content": "b"}, "stop"]],
        },
        "all": {"lens": [2], "status": 200, "chunks": [[{"role": "assistant", "content": "ab"}, "stop"]]},
    },
}
HTTP_CASE = {
    "id": "demo/health",
    "profile": "plain",
    "raw": [["GET", "/health", {}, None]],
    "answers": [{"status": 200, "body": ""}],
}
PROFILE = {"name": "plain", "tokenizer": "tokenizers/none"}


def write_suite(folder, *, cases=(CASE, HTTP_CASE), profiles=(PROFILE,)):
    """A suite folder with these cases."""
    folder.mkdir(parents=True)
    (folder / "profiles.json").write_text(json.dumps(list(profiles)))
    (folder / "cases.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(each) + "\n" for each in cases).encode()))
    return folder


class Echo:
    """An application whose model says "a" for token 1 and "b" for token 2, and knows /tokenize and /health."""

    texts = {1: "a", 2: "b"}

    def send(self, method, path, headers, body):
        if path == "/health":
            return HttpAnswer(200, "")
        value = json.loads(body)
        if path == "/tokenize":
            return HttpAnswer(
                200, {"tokens": [next(i for i, t in self.texts.items() if t == c) for c in value["prompt"]]}
            )
        if path.endswith("/render"):
            return HttpAnswer(200, {"token_ids": [7]})
        return HttpAnswer(200, self._chunk(value) if value.get("stream") else self._oneshot(value))

    def _text(self, token_ids):
        return "".join(self.texts[each] for each in token_ids)

    def _oneshot(self, value):
        choice = value["generate_response"]["choices"][0]
        message = {**MESSAGE, "content": self._text(choice["token_ids"]), "refusal": None}
        answered = {"message": message, "logprobs": None, "finish_reason": choice["finish_reason"], "stop_reason": None}
        return {"choices": [answered], "usage": {**USAGE, "prompt_tokens_details": None}}

    def _chunk(self, value):
        choice = value["generate_chunk"]["choices"][0]
        first = value["stream_state"] is None
        delta = {"role": "assistant" if first else None, "content": self._text(choice["token_ids"]) or None}
        answered = {"delta": {**delta, "reasoning": None}, "finish_reason": choice["finish_reason"]}
        return {
            "chunk": {"choices": [answered]},
            "stream_state": {"steps": (value["stream_state"] or {"steps": 0})["steps"] + 1},
        }
