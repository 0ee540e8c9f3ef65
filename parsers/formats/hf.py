"""Whatever the tokenizer's `response_template` describes; the template says what the wire text looks like, for example

<think>The user asks for the weather.</think>Let me look.
<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>

One machine separates thoughts, answer and calls, so the format serves as reasoning parser, as tool parser or as both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from parsers.engine.context import RequestContext
from parsers.engine.events import (
    CallArguments,
    CallEnd,
    CallStart,
    Content,
    Event,
    Malformed,
    Reasoning,
    Segment,
)
from parsers.engine.response_template import (
    LONGEST,
    Delimiter,
    FieldTemplate,
    Found,
    ResponseTemplate,
    template_of,
)
from parsers.engine.scanner import text_of
from parsers.engine.stage import UnifiedFormat, UnifiedStage
from parsers.engine.vocabulary import Vocabulary

_CONTEXT = 16
"""Code points before the current place that a delimiter may look back at."""

_PROMPT_TAIL = 512
"""Tokens at the end of the prompt in which the last anchor is looked for first."""


_IDLE_LIMIT = 8
"""Delimiters of no width that are taken at one place before the walk goes on."""


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """A delimiter that is looked for, and whether it opens or closes its field."""

    delimiter: Delimiter
    field: FieldTemplate
    opens: bool


Known = dict[Delimiter, Found | None]


def _rank(item: tuple[Found, Mark]) -> tuple[int, int, bool, str]:
    """The earliest delimiter counts, the longest of those, an opening one, the first by name."""
    found, mark = item
    return found.start, -found.end, not mark.opens, mark.field.name


@dataclass(slots=True)
class RegionState:
    """`text` is what was read but not given to a region, `done` of which precedes the current place.

    `prompt` counts code points of the rest that are the prompt's. `region` is the open field's name, "" outside all. Of
    calls, `captures` is what the opening delimiter caught, `opener` that delimiter and `body` the text since. `spoke`:
    some output came.
    """

    text: str = ""
    done: int = 0
    prompt: int = 0
    region: str = ""
    captures: dict[str, str] = field(default_factory=dict)
    opener: str = ""
    body: list[str] = field(default_factory=list)
    index: int = 0
    spoke: bool = False


class RegionStage(UnifiedStage):
    """Walks over the regions of a template (newest 9.2)."""

    State: ClassVar[type] = RegionState

    def __init__(self, template: ResponseTemplate, context: RequestContext, *, thinks: bool, calls: bool) -> None:
        super().__init__()
        self._template = template
        self._context = context
        self._thinks = thinks
        self._calls = calls
        implicit = template.fields[template.implicit] if template.implicit is not None else None
        self._implicit = implicit
        self._watched = [Mark(field.open, field, opens=True) for field in template.fields.values() if field.open]
        if implicit is not None and implicit.close is not None:
            self._watched.append(Mark(implicit.close, implicit, opens=False))

    def begin(self, prompt: str) -> None:
        """Reads what the prompt says of the answer; nothing of it is sent."""
        self.state.text, self.state.prompt = prompt, len(prompt)
        self._advance([], final=False)

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        text = text_of(segments)
        events: list[Event] = []
        if text:
            self.state.spoke = True
            self.state.text += text
            self._advance(events, final=False)
        return events

    def finish(self) -> list[Event]:
        events: list[Event] = []
        state = self.state
        if not state.spoke:
            return events
        if state.region:
            state.text += self._missing_close()
        self._advance(events, final=True)
        if state.region:
            self._leave("", events)
        else:
            self._leave_implicit(events)
        return events

    # --- regions --------------------------------------------------------------------------------------------------

    def _advance(self, events: list[Event], *, final: bool) -> None:
        """Takes delimiters as long as one is certain, then releases the text in which none can begin."""
        state = self.state
        known: Known = {}
        idle = 0
        while True:
            taken, pending = self._next(known, final=final)
            if taken is None:
                break
            found, mark = taken
            idle = 0 if found.end > state.done else idle + 1
            self._text(found.start, events)
            marker = self._take(found.end)
            if state.region:
                self._leave(marker, events, found.captures)
            else:
                self._leave_implicit(events)
            if mark.opens:
                self._enter(mark.field, marker, found.captures, events)
            if idle > _IDLE_LIMIT:
                if state.done == len(state.text):
                    break
                self._text(state.done + 1, events)
        self._text(max(pending, len(state.text) - LONGEST), events)
        drop = max(0, state.done - _CONTEXT)
        state.text, state.done = state.text[drop:], state.done - drop

    def _next(self, known: Known, *, final: bool) -> tuple[tuple[Found, Mark] | None, int]:
        """(the delimiter to take, where the first uncertain one begins)."""
        state = self.state
        pending = len(state.text)
        certain: list[tuple[Found, Mark]] = []
        for mark in self._marks():
            found = known.get(mark.delimiter)
            if mark.delimiter not in known or (found is not None and found.start < state.done):
                found = known[mark.delimiter] = mark.delimiter.search(state.text, state.done, final=final)
            if found is None:
                continue
            if found.pending:
                pending = min(pending, found.start)
            else:
                certain.append((found, mark))
        best = min(certain, key=_rank, default=None)
        return (best if best is not None and best[0].start < pending else None), pending

    def _marks(self) -> Sequence[Mark]:
        """The delimiters that count here: the open region's own, or all that open one."""
        if not self.state.region:
            return self._watched
        current = self._template.fields[self.state.region]
        return [] if current.close is None else [Mark(current.close, current, opens=False)]

    def _take(self, end: int) -> str:
        """Moves on to `end`; the text passed over, without the prompt's."""
        state = self.state
        text = state.text[state.done : end]
        unseen = min(state.prompt, len(text))
        state.prompt -= unseen
        state.done = end
        return text[unseen:]

    def _text(self, end: int, events: list[Event]) -> None:
        """Text up to `end` belongs to the open region, or to the one of all other text."""
        state = self.state
        if end <= state.done:
            return
        region = self._template.fields[state.region] if state.region else self._implicit
        whole = state.text[state.done : end]
        text = self._take(end)
        if region is not None and region.name == "tool_calls" and self._calls:
            state.body.append(whole)
        elif region is not None and text:
            events.append(Reasoning(text) if region.name == "thinking" and self._thinks else Content(text))

    def _enter(self, owner: FieldTemplate, marker: str, captures: Mapping[str, str], events: list[Event]) -> None:
        state = self.state
        state.region = owner.name
        if owner.name != "tool_calls":
            return
        if self._calls:
            state.captures, state.opener, state.body = dict(captures), marker, []
        elif marker:
            events.append(Content(marker))

    def _leave_implicit(self, events: list[Event]) -> None:
        """Calls that stand outside all regions, in a template that expects them there."""
        owner = self._implicit
        if owner is not None and owner.name == "tool_calls" and self.state.body:
            self._make_calls(owner, "", {}, events)

    def _leave(self, marker: str, events: list[Event], captures: Mapping[str, str] | None = None) -> None:
        state = self.state
        owner = self._template.fields[state.region]
        state.region = ""
        if owner.name != "tool_calls":
            return
        if not self._calls:
            if marker:
                events.append(Content(marker))
            return
        self._make_calls(owner, marker, captures or {}, events)

    def _make_calls(self, owner: FieldTemplate, marker: str, captures: Mapping[str, str], events: list[Event]) -> None:
        """Reads the text of a region of calls. What makes none is content after all."""
        state = self.state
        assert owner.reader is not None
        body = "".join(state.body)
        calls = owner.reader.calls(body, {**state.captures, **captures}, self._context.parameters)
        if calls is None and (state.opener + body).strip():
            events += [Malformed(), Content(state.opener + body + marker)]
        for call in calls or ():
            events += [
                CallStart(state.index, call.name),
                CallArguments(state.index, call.arguments),
                CallEnd(state.index),
            ]
            state.index += 1
        state.captures, state.opener, state.body = {}, "", []

    def _missing_close(self) -> str:
        """The rest of a closing delimiter that ends with the next turn's anchor, which the model does not write."""
        close = self._template.fields[self.state.region].close
        text = self.state.text
        for literal in close.literals if close is not None else ():
            for anchor in self._template.anchor.literals:
                if not literal.endswith(anchor):
                    continue
                for cut in range(len(literal) - len(anchor) or 1, len(literal)):
                    if text.endswith(literal[:cut]):
                        return literal[cut:]
        return ""


class ResponseTemplateFormat(UnifiedFormat):
    """A template as parser of both kinds. `source` is where its tokenizer keeps it."""

    merges_entries = True

    def __init__(self, vocabulary: Vocabulary, *, tools: bool, reasoning: bool) -> None:
        super().__init__(vocabulary, tools=tools, reasoning=reasoning)
        flags = [f"--reasoning-parser {self.names[0]}"] * reasoning + [f"--tool-call-parser {self.names[0]}"] * tools
        needs = ["thinking"] * reasoning + ["tool_calls"] * tools
        self._template = template_of(vocabulary.extra("response_template"), flags=" ".join(flags), needs=needs)

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> UnifiedStage:
        calls = self.tools and context.tool_choice != "none"
        stage = RegionStage(self._template, context, thinks=self.reasoning, calls=calls)
        stage.begin(self._tail(prompt_token_ids or ()))
        return stage

    def _tail(self, prompt: Sequence[int]) -> str:
        """The prompt's text behind its last anchor, all of it where there is none."""
        for tokens in (prompt[-_PROMPT_TAIL:], prompt):
            text = self.vocabulary.decode(tokens) if tokens else ""
            end = self._template.anchor.last(text)
            if end is not None:
                return text[end:]
        return text


class HuggingFace(ResponseTemplateFormat):
    """`hf` (newest 9)."""

    names = ("hf",)
