"""One answer from token IDs to deltas or a message: scanner, reasoning stage, tool stage, and the rules around them.

The order of the steps is vLLM's (engine part 1), except that a token's place in the text is known exactly, so that what
a chunk means never depends on which tokens share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .assembly import Call, Delta, Message, append_finish, collect, delta_of
from .context import NamedToolChoice, RequestContext
from .events import CallEnd, CallStart, Event, Malformed, Reasoning, ReasoningIsAnswer, ReasoningRetracted, Text, Token
from .exceptions import InvalidSnapshotError
from .plain import NamedArguments, PassThrough, RequiredCalls
from .scanner import scan, text_of
from .stage import (
    FoundCall,
    Outcome,
    ReasoningFormat,
    ReasoningStage,
    Rewriter,
    Stage,
    ToolFormat,
    ToolStage,
    UnifiedFormat,
    UnifiedStage,
)

SNAPSHOT_VERSION = 1


@dataclass(frozen=True, slots=True)
class ParserPlan:
    """The parsers of one model, built once; opens a parser per stream.

    `unified` excludes the other two. `name` says which formats write the snapshots.
    """

    name: str
    reasoning: ReasoningFormat | None = None
    tools: ToolFormat | None = None
    unified: UnifiedFormat | None = None

    @property
    def marks(self) -> Mapping[int, str]:
        """Token IDs that the stages want to see."""
        marks: dict[int, str] = {}
        for format_ in (self.reasoning, self.tools, self.unified):
            if format_ is not None:
                marks.update(format_.marks)
        return marks

    def open(self, context: RequestContext, *, prompt_token_ids: Sequence[int] | None = None) -> OutputParser:
        """A parser for one stream; `prompt_token_ids` tell whether the prompt left reasoning open (None: unknown)."""
        return OutputParser(self, context, prompt_token_ids)

    def restore(self, context: RequestContext, snapshot: Mapping[str, Any]) -> OutputParser:
        """The parser that wrote `snapshot`, at the same place. Raises InvalidSnapshotError."""
        parser = OutputParser(self, context, None)
        parser.restore(snapshot)
        return parser


class OutputParser:
    """One stream, or one complete answer."""

    def __init__(self, plan: ParserPlan, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> None:
        self._plan = plan
        self._context = context
        self.marks = plan.marks
        self._started = False
        self.calls_streamed = False
        self.calls_revoked = False
        self.malformed = False
        """Whether the output, or the last chunks fed, held markup that was no call."""
        self._reasoning: ReasoningStage | None = None
        self._tools: ToolStage | None = None
        self._unified: UnifiedStage | None = None
        self._rewriter: Rewriter | None = None
        self._settle: Callable[[Outcome], None]
        if plan.unified is not None:
            self._unified = plan.unified.open(context, prompt_token_ids)
            self._merges = plan.unified.merges_entries
            self._settle = plan.unified.settle
        else:
            if plan.reasoning is not None:
                self._reasoning = plan.reasoning.open(context, prompt_token_ids)
                self._rewriter = plan.reasoning.rewriter()
            self._tools = self._open_tools()

    def _open_tools(self) -> ToolStage:
        """The tool stage that this request's tool choice calls for, and its one-shot rules (engine 1.2.3, 1.4)."""
        tools, choice = self._plan.tools, self._context.tool_choice
        self._merges = True
        self._settle = _settle_plain
        behind = self._reasoning is not None and not self._reasoning.ended
        if tools is None:
            return PassThrough(sends_empty=True, behind_reasoning=behind)
        if not self._engine_based and (choice == "none" or not (self._context.tools or self._context.forces_call)):
            return PassThrough(sends_empty=False, behind_reasoning=behind)
        if tools.guided_choice and isinstance(choice, NamedToolChoice):
            self._settle = NamedArguments.settle
            return NamedArguments(choice.name)
        if tools.guided_choice and choice == "required":
            self._settle = RequiredCalls.settle
            return RequiredCalls()
        self._merges = tools.merges_entries
        self._settle = tools.settle
        return tools.open(self._context, with_reasoning=self._plan.reasoning is not None)

    @property
    def _keeps_empty(self) -> bool:
        return self._plan.reasoning is not None and self._plan.reasoning.keeps_empty

    @property
    def _engine_based(self) -> bool:
        configured = (self._plan.reasoning, self._plan.tools)
        return all(format_.engine_based for format_ in configured if format_ is not None)

    # --- one-shot -------------------------------------------------------------------------------------------------

    def parse(self, token_ids: Sequence[int], texts: Sequence[str]) -> Message:
        """The message of a complete output. `texts[i]` is the text that token i released."""
        raw: list[str] = []
        events = self._step(token_ids, texts, raw) + self._flush(raw)
        reasoning, outcome = collect(events)
        self.malformed = outcome.malformed
        outcome.raw = "".join(raw)
        outcome.parameters = self._context.parameters
        if self._unified is not None:
            self._settle(outcome)
            content = outcome.content
        else:
            content = self._settled_content(outcome)
        if not outcome.raw and not outcome.calls and reasoning is None and self._keeps_empty:
            content = ""
        if outcome.swapped:
            reasoning, content = content, reasoning
        return self._message(reasoning, content, outcome.calls)

    def _settled_content(self, outcome: Outcome) -> str | None:
        """Content after the tool step (engine 1.2.3e): the format's own if it found calls, else the untouched text."""
        self._settle(outcome)
        content = outcome.content
        if outcome.called:
            return content if content is not None and (content.strip() or outcome.keeps_blank) else None
        if (self._plan.tools is None or not self._engine_based) and self._rewriter is None:
            content = outcome.raw
        if self._context.forces_call and not (content or "").strip():
            return None
        if content == "" and self._plan.reasoning is None and not self._engine_based:
            return ""
        return content or None

    def _message(self, reasoning: str | None, content: str | None, calls: Iterable[FoundCall]) -> Message:
        context = self._context
        if not context.include_reasoning:
            reasoning = None
        kept = list(calls) if context.keeps_calls else []
        if not context.parallel_tool_calls:
            kept = kept[:1]
        if context.forces_call and content is None:
            content = ""
        return Message(reasoning, content, tuple(self._call(call) for call in kept))

    def _call(self, call: FoundCall) -> Call:
        return Call(call.id or self._generated_id(call, streaming=False), call.name, call.arguments)

    def _generated_id(self, call: FoundCall, *, streaming: bool) -> str:
        owner = self._plan.unified or self._plan.tools
        return owner.call_id(self._context, call, streaming=streaming) if owner else self._context.call_id(call.index)

    # --- streaming ------------------------------------------------------------------------------------------------

    def feed(self, token_ids: Sequence[int], texts: Sequence[str], *, finished: bool) -> Delta | None:
        """The delta of one chunk, None where nothing is to be sent; `finished`: the chunk carries the finish reason."""
        if finished and not token_ids and not self._started:
            return None
        self._started = True
        delta = delta_of(self._named(self._step(token_ids, texts)), merge=self._merges)
        if finished:
            if delta.calls and delta.calls[-1].arguments is None:
                delta.calls[-1].arguments = ""
            events = self._flush()
            flushed = delta_of(self._named(events), merge=self._merges)
            self.calls_revoked = self._only_call_was_cut(events)
            append_finish(delta, flushed, merge=not (self._plan.tools and self._plan.tools.engine_based))
        if self._plan.tools is not None and self._plan.tools.types_entries:
            for entry in delta.calls:
                entry.typed = True
        answer = self._filtered(delta)
        self.calls_streamed = self.calls_streamed and not self.calls_revoked
        return answer

    def _only_call_was_cut(self, events: Iterable[Event]) -> bool:
        tools = self._plan.tools
        return (
            tools is not None
            and not tools.cut_calls_count
            and any(isinstance(event, CallEnd) and event.malformed and event.index == 0 for event in events)
        )

    def _named(self, events: list[Event]) -> list[Event]:
        """Gives an ID to each call that starts without one, and notes malformed ones."""
        for position, event in enumerate(events):
            if isinstance(event, CallStart) and event.id is None:
                call = FoundCall(index=event.index, name=event.name)
                events[position] = CallStart(event.index, event.name, self._generated_id(call, streaming=True))
            elif isinstance(event, Malformed) or (isinstance(event, CallEnd) and event.malformed):
                self.malformed = True
        return events

    def _filtered(self, delta: Delta) -> Delta | None:
        """Drops what this request does not want to see (engine 1.3.8 and 1.3.9)."""
        context = self._context
        if not context.include_reasoning:
            delta.reasoning = None
            if not delta.content and not delta.calls:
                return None
        if delta.calls:
            if not context.keeps_calls:
                delta.calls = []
            else:
                self.calls_streamed = True
                if not context.parallel_tool_calls:
                    delta.calls = [entry for entry in delta.calls if entry.index == 0]
        return delta if delta else None

    # --- stages ---------------------------------------------------------------------------------------------------

    def _step(self, token_ids: Sequence[int], texts: Sequence[str], raw: list[str] | None = None) -> list[Event]:
        events = self._read(token_ids, texts, raw)
        return self._rewriter.feed(events) if self._rewriter else events

    def _flush(self, raw: list[str] | None = None) -> list[Event]:
        events = self._finish(raw)
        return self._rewriter.feed(events) + self._rewriter.finish() if self._rewriter else events

    def _read(self, token_ids: Sequence[int], texts: Sequence[str], raw: list[str] | None) -> list[Event]:
        segments = scan(token_ids, texts, self.marks)
        if self._unified is not None:
            return self._unified.feed(segments)
        if self._reasoning is None:
            return self._step_tools(segments, raw)
        self._reasoning.token_count = len(token_ids)
        events, rest = _parted(self._reasoning.feed(segments))
        if raw is None and self._plan.tools is not None and self._reasoning.ended:
            events = [event for event in events if event != Reasoning("")]
        if rest or self._reasoning.ended:
            events += self._step_tools(rest, raw)
        return events

    def _step_tools(self, segments: list[Text | Token], raw: list[str] | None) -> list[Event]:
        assert self._tools is not None
        if raw is not None:
            raw.append(text_of(segments))
        return self._tools.feed(segments)

    def _finish(self, raw: list[str] | None) -> list[Event]:
        if self._unified is not None:
            return self._unified.finish()
        assert self._tools is not None
        events: list[Event] = []
        if self._reasoning is not None:
            events, rest = _parted(self._reasoning.finish())
            if rest:
                events += self._step_tools(rest, raw)
        return events + self._tools.finish()

    # --- state ----------------------------------------------------------------------------------------------------

    @property
    def _stages(self) -> dict[str, Stage | None]:
        return {
            "reasoning": self._reasoning,
            "tools": self._tools,
            "unified": self._unified,
            "rewriter": self._rewriter,
        }

    def snapshot(self) -> dict[str, Any]:
        """Everything the stream must remember, as a JSON-able value."""
        return {
            "v": SNAPSHOT_VERSION,
            "format": self._plan.name,
            "started": self._started,
            "calls_streamed": self.calls_streamed,
            **{name: stage.snapshot() for name, stage in self._stages.items() if stage is not None},
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Raises InvalidSnapshotError if another version or format wrote it."""
        if snapshot.get("v") != SNAPSHOT_VERSION or snapshot.get("format") != self._plan.name:
            raise InvalidSnapshotError("written by another version or format")
        for name, stage in self._stages.items():
            if (stage is None) != (name not in snapshot) or not isinstance(snapshot.get(name, {}), dict):
                raise InvalidSnapshotError(f"unexpected or missing stage {name!r}")
            if stage is not None:
                stage.restore(snapshot[name])
        self._started = bool(snapshot.get("started"))
        self.calls_streamed = bool(snapshot.get("calls_streamed"))


def _parted(items: Iterable[Any]) -> tuple[list[Event], list[Text | Token]]:
    """Events of the reasoning stage, and the segments it hands on."""
    events: list[Event] = []
    rest: list[Text | Token] = []
    for item in items:
        if isinstance(item, Reasoning | ReasoningRetracted | ReasoningIsAnswer):
            events.append(item)
        else:
            rest.append(item)
    return events, rest


def _settle_plain(outcome: Outcome) -> None:
    """One-shot rules without a tool format: the text is the content."""
