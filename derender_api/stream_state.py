"""The stream state that travels with the client: read from a request, written to the answer (protocol 5).

Two forms. *Replay* is vLLM's own: a stream begun there goes on here, and the other way round; the parser is rebuilt
from the output so far. *Compact* carries the parser's own state instead, so that it does not grow with the output.
A stream that never leaves this process has a third form, *live*: the parser itself is kept, and nothing is written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

from derender_api import compact_state
from derender_api.protocol.generate import CompactState, StreamState
from parsers.engine.context import RequestContext
from parsers.engine.detokenizer import Window

if TYPE_CHECKING:
    from derender_api.parsing import StreamParser

Form = Literal["replay", "compact", "live"]


@dataclass(slots=True, kw_only=True)
class Carried:
    """The state of one stream while a chunk is worked on. `is_new` on its first call.

    `parser` is the parser's snapshot, `call_id_seed` the seed of its call IDs (hex digits), `prompt_count` and
    `outputs` count tokens, `context` is the digest of the chat request; they belong to the compact form.
    `output_token_ids`, `output_chunk_lens` and `last_tool_call_ids` belong to the replay form, `live` and
    `request_context` to the live one. `matched` is the stop string that this chunk completed, `is_stopped` says that an
    earlier one did.
    """

    is_new: bool
    form: Form = "replay"
    window: Window = field(default_factory=Window)
    role_sent: bool = False
    logprob_context: list[int] = field(default_factory=list)
    logprob_text_offset: int = 0
    output_token_ids: list[int] = field(default_factory=list)
    output_chunk_lens: list[int] = field(default_factory=list)
    tools_streamed: bool = False
    last_tool_call_ids: list[str] = field(default_factory=list)
    parser: Mapping[str, Any] | None = None
    call_id_seed: str = ""
    prompt_count: int = 0
    outputs: int = 0
    context: str = ""
    live: "StreamParser | None" = None
    request_context: RequestContext | None = None
    matched: str | None = None
    is_stopped: bool = False

    @classmethod
    def of(cls, state: StreamState | CompactState | None, *, form: Form = "replay", scope: Sequence[str] = ()) -> Self:
        """The state that the client sent; null on the first call, which `form` is for.

        `scope` says what a compact state belongs to: endpoint, model, parser. Raises InvalidStreamState.
        """
        if state is None:
            return cls(is_new=True, form=form)
        if isinstance(state, CompactState):
            return cls._of_compact(compact_state.load(state.state, scope=scope))
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

    @classmethod
    def _of_compact(cls, values: Mapping[str, Any]) -> Self:
        pieces, prefix, read = values["window"]
        return cls(
            is_new=False,
            form="compact",
            window=Window(pieces=tuple(pieces), prefix=prefix, read=read),
            role_sent=values["role_sent"],
            logprob_context=values["logprob_context"],
            logprob_text_offset=values["logprob_text_offset"],
            tools_streamed=values["tools_streamed"],
            parser=values["parser"],
            call_id_seed=values["call_id_seed"],
            prompt_count=values["prompt_count"],
            outputs=values["outputs"],
            context=values["context"],
        )

    @property
    def output_count(self) -> int:
        """Tokens of the output so far."""
        return len(self.output_token_ids) if self.form == "replay" else self.outputs

    @property
    def has_output(self) -> bool:
        """Whether the parser was stepped before."""
        return bool(self.output_token_ids) or self.parser is not None or self.live is not None

    def extend_output(self, token_ids: Sequence[int]) -> None:
        """Remember a parsed chunk; a chunk without IDs leaves no trace."""
        if self.form != "replay":
            self.outputs += len(token_ids)
        elif token_ids:
            self.output_token_ids.extend(token_ids)
            self.output_chunk_lens.append(len(token_ids))

    def pinned_call_id(self, index: int, call_id: str) -> str:
        """The ID of call `index`: the one already sent, else `call_id`, which is remembered.

        In the other forms the seed pins the IDs.
        """
        if self.form != "replay":
            return call_id
        if index < len(self.last_tool_call_ids):
            return self.last_tool_call_ids[index]
        self.last_tool_call_ids = [*self.last_tool_call_ids, call_id]
        return call_id

    def answer(self, *, scope: Sequence[str] = ()) -> dict[str, Any]:
        """`stream_state` of the answer. The replay form always has all ten keys, in this order."""
        if self.form == "compact":
            return {"format": "compact", "state": compact_state.dump(self._compact_values(), scope=scope)}
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

    def _compact_values(self) -> dict[str, Any]:
        return {
            "window": [self.window.pieces, self.window.prefix, self.window.read],
            "role_sent": self.role_sent,
            "logprob_context": self.logprob_context,
            "logprob_text_offset": self.logprob_text_offset,
            "tools_streamed": self.tools_streamed,
            "parser": self.parser,
            "call_id_seed": self.call_id_seed,
            "prompt_count": self.prompt_count,
            "outputs": self.outputs,
            "context": self.context,
        }
