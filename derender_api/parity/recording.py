"""Recording a live vLLM render server over HTTP: cases in, the same cases with its answers out.

A case: `id`, `profile`, `request` (a chat request), `output` (text) or `output_token_ids`, `prompt` (text) or
`prompt_token_ids` (default: the rendered request), `finish_reason`, `stop_reason`, `logprobs`, and `chunkings`, names
of groupings (groupings.py); or `post`, a list of `[path, body]` that are posted as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from derender_api.parity import application
from derender_api.parity.groupings import lengths
from derender_api.parity.observed import HttpAnswer, recorded_oneshot
from derender_api.parity.suite import JSON_TYPE, MODEL_NAME, Case, dumps, http_exchanges

RENDER = "/v1/chat/completions/render"
DEFAULT_CHUNKINGS = ("1", "all")
_UNRENDERED_PROMPT = "Hello"
"""The prompt of a request that the server refuses to render, as in the project's recordings."""


class RecordingError(Exception):
    """The server or a case makes recording impossible: whoever started it has to mend one of them."""


class Encoder(Protocol):
    """Text to token IDs, without special tokens at the ends."""

    def encode(self, text: str) -> list[int]:
        """The token IDs of `text`."""
        ...


@dataclass(frozen=True, slots=True)
class ServerEncoder:
    """Encodes with the server's own /tokenize."""

    server: application.Application

    def encode(self, text: str) -> list[int]:
        """Raises RecordingError where the server has no /tokenize or refuses the text."""
        body = {"prompt": text, "add_special_tokens": False}
        answer = self.server.send("POST", "/tokenize", JSON_TYPE, dumps(body))
        if answer.status != 200:
            raise RecordingError(f"/tokenize answered {answer.status}; give a --tokenizer folder: {answer.body}")
        return answer.body["tokens"]


def record(server: application.Application, case: Mapping[str, Any], *, encoder: Encoder) -> dict[str, Any]:
    """The recording of one case, in the form that suites hold. Raises RecordingError."""
    if "post" in case or "raw" in case:
        sent = application.post_exchanges(server, list(http_exchanges({**case, "answers": None})))
        return {**case, "answers": [{"status": each.status, "body": each.body} for each in sent]}
    request = {**case["request"], "model": case["request"].get("model", MODEL_NAME)}
    output = case["output_token_ids"] if case.get("output_token_ids") is not None else encoder.encode(case["output"])
    whole = Case(
        suite="",
        profile=case["profile"],
        id=case["id"],
        request=request,
        prompt_token_ids=_prompt(server, case, request, encoder),
        output_token_ids=output,
        finish_reason=case.get("finish_reason", "stop"),
        stop_reason=case.get("stop_reason"),
        logprobs=case.get("logprobs"),
        oneshot={},
        streams={},
    )
    kept = {name: value for name, value in case.items() if name not in ("prompt", "chunkings")}
    return {
        **kept,
        "request": request,
        "prompt_token_ids": whole.prompt_token_ids,
        "output_token_ids": output,
        "oneshot": recorded_oneshot(application.post_oneshot(server, whole)),
        "streams": _streams(server, whole, case.get("chunkings", DEFAULT_CHUNKINGS)),
    }


def _prompt(
    server: application.Application, case: Mapping[str, Any], request: dict[str, Any], encoder: Encoder
) -> list[int]:
    if case.get("prompt_token_ids") is not None:
        return case["prompt_token_ids"]
    if case.get("prompt") is not None:
        return encoder.encode(case["prompt"])
    answer: HttpAnswer = server.send("POST", RENDER, JSON_TYPE, dumps(request))
    return answer.body["token_ids"] if answer.status == 200 else encoder.encode(_UNRENDERED_PROMPT)


def _streams(server: application.Application, case: Case, chunkings: Sequence[str]) -> dict[str, Any]:
    streams = {}
    for name in chunkings:
        lens = lengths(name, len(case.output_token_ids))
        streamed = application.post_stream(server, case, lens)
        streams[name] = {"lens": list(lens), "status": streamed.status, "chunks": streamed.chunks}
    return streams
