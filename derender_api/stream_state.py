"""The stream state that travels with the client: read from a request, written to the answer (protocol 5).

This is vLLM's own form: a stream begun there goes on here, and the other way round.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from derender_api.protocol.generate import StreamState
from parsers.engine.detokenizer import Window


@dataclass(slots=True, kw_only=True)
class Carried:
    """The state of one stream while a chunk is worked on. `is_new` on its first call."""

    is_new: bool
    window: Window = field(default_factory=Window)
    role_sent: bool = False
    logprob_context: list[int] = field(default_factory=list)
    logprob_text_offset: int = 0
    output_token_ids: list[int] = field(default_factory=list)
    output_chunk_lens: list[int] = field(default_factory=list)
    tools_streamed: bool = False
    last_tool_call_ids: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, state: StreamState | None) -> Self:
        """The state that the client sent; null on the first call."""
        if state is None:
            return cls(is_new=True)
        return cls(
            is_new=False,
            window=Window(pieces=tuple(state.prev_tokens), prefix=state.prefix_offset, read=state.read_offset),
            role_sent=state.role_sent,
            logprob_context=state.logprob_context_token_ids,
            logprob_text_offset=state.logprob_text_offset,
            output_token_ids=state.output_token_ids,
            output_chunk_lens=state.output_chunk_lens,
            tools_streamed=state.tools_streamed,
            last_tool_call_ids=state.last_tool_call_ids,
        )

    def extend_output(self, token_ids: Sequence[int]) -> None:
        """Remember a parsed chunk; a chunk without IDs leaves no trace."""
        if token_ids:
            self.output_token_ids = [*self.output_token_ids, *token_ids]
            self.output_chunk_lens = [*self.output_chunk_lens, len(token_ids)]

    def pinned_call_id(self, index: int, call_id: str) -> str:
        """The ID of call `index`: the one already sent, else `call_id`, which is remembered."""
        if index < len(self.last_tool_call_ids):
            return self.last_tool_call_ids[index]
        self.last_tool_call_ids = [*self.last_tool_call_ids, call_id]
        return call_id

    def answer(self) -> dict[str, Any]:
        """`stream_state` of the answer: always all ten keys, in this order."""
        return {
            "prev_tokens": list(self.window.pieces),
            "prefix_offset": self.window.prefix,
            "read_offset": self.window.read,
            "role_sent": self.role_sent,
            "logprob_context_token_ids": self.logprob_context,
            "logprob_text_offset": self.logprob_text_offset,
            "output_token_ids": self.output_token_ids,
            "output_chunk_lens": self.output_chunk_lens,
            "tools_streamed": self.tools_streamed,
            "last_tool_call_ids": self.last_tool_call_ids,
        }
