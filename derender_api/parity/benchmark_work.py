"""What a benchmark sends: outputs, prompts and bodies of given lengths."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from derender_api.parity.suite import MODEL_NAME, dumps

_SENTENCE = "First look at the file, then write it again with the dates in order; Zürich comes before 서울 🙂. "
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "write_file",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            },
        },
    }
]


class Encoder(Protocol):
    """Text to token IDs, without special tokens at the ends."""

    def encode(self, text: str) -> list[int]:
        """The token IDs of `text`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much to measure. Lengths are in tokens; `requests` are those of one throughput measurement.

    Streams longer than `others_limit` are left out for all servers but the first: a server that replays takes hours.
    """

    oneshot_lengths: tuple[int, ...] = (64, 1024)
    stream_lengths: tuple[int, ...] = (256, 512, 1024)
    prompt_lengths: tuple[int, ...] = (200,)
    forms: tuple[str, ...] = ("replay", "compact")
    others_limit: int = 2048
    rounds: int = 3
    requests: int = 200
    clients: int = 4
    with_parsers: bool = True


@dataclass(frozen=True, slots=True)
class Work:
    """Output and prompt token IDs of a given length, and the request that goes with them."""

    encoder: Encoder
    plan: Plan

    def output(self, length: int) -> list[int]:
        """About `length` tokens: a third each reasoning, content and one tool call; plain text without parsers."""
        if not self.plan.with_parsers:
            return self._ids(self._prose(length))
        third = self._prose(length // 3)
        call = {"name": "write_file", "arguments": {"path": "a.txt", "content": third}}
        body = json.dumps(call, ensure_ascii=False)
        return self._ids(f"<think>\n{third}\n</think>\n\n{third}\n<tool_call>\n{body}\n</tool_call>")

    def oneshot(self, length: int) -> bytes:
        """Body of a one-shot request."""
        choice = {"index": 0, "token_ids": self.output(length), "finish_reason": "stop"}
        body = {"generate_response": {"request_id": "bench", "choices": [choice]}, **self._request()}
        return dumps(body | {"prompt_tokens": self.plan.prompt_lengths[0]})

    def prompt(self, length: int) -> list[int]:
        """The token IDs of a prompt."""
        return self._ids(self._prose(length + 10))[:length]

    def chunk(self, token_ids: Sequence[int], *, prompt: Sequence[int], state: Any, form: str, last: bool) -> bytes:
        """Body of the call for one chunk. In the compact form the first one alone carries prompt and request."""
        choice = {"index": 0, "token_ids": token_ids, "finish_reason": "stop" if last else None}
        body = {
            "stream": True,
            "generate_chunk": {"request_id": "bench", "choices": [choice]},
            "stream_state": state,
            "stream_state_format": form,
        }
        if not is_compact(state):
            body |= {"prompt_token_ids": prompt, "prompt_tokens": len(prompt), **self._request()}
        return dumps(body)

    def _request(self) -> dict[str, Any]:
        request = {"model": MODEL_NAME, "messages": [{"role": "user", "content": "hi"}], "tools": _TOOLS}
        return {"chat_request": request if self.plan.with_parsers else {**request, "tools": None}}

    def _prose(self, length: int) -> str:
        """Text of about `length` tokens."""
        per_sentence = len(self._ids(_SENTENCE))
        return (_SENTENCE * (length // per_sentence + 1)).strip()[: max(length * len(_SENTENCE) // per_sentence, 1)]

    def _ids(self, text: str) -> list[int]:
        return self.encoder.encode(text)


def is_compact(state: Any) -> bool:
    """Whether a stream state is of the compact form."""
    return isinstance(state, dict) and state.get("format") == "compact"
