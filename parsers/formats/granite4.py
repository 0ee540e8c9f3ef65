"""Tool calls of Granite 4: JSON objects between two tags, text anywhere around them.

    I will check.<tool_call>
    {"name": "get_weather", "arguments": {"city": "Paris"}}
    </tool_call> One moment.

The tags are text; all text outside them is content. A call is sent whole when its closing tag comes. If any block is no
call, or a closing tag stands alone, nothing is called and the text is the answer; what a stream has sent by then it
cannot take back.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from parsers.engine.assembly import dump_json
from parsers.engine.context import RequestContext
from parsers.engine.events import CallArguments, CallEnd, CallStart, Content, Event, Malformed, Segment
from parsers.engine.lexer import Lexer
from parsers.engine.stage import ToolStage
from parsers.formats.call_stage import CallFormat, CallStage, CallStageState

OPENING, CLOSING = "<tool_call>", "</tool_call>"


@dataclass(slots=True)
class BlockState(CallStageState):
    """Where the stage stands.

    Phases: `content` outside tags, `block` inside; `text`: a block was no call, everything is content. `tail` is the
    end of the content as far as it may begin a closing tag; `block` the open block, its tag included; `index` the next
    call; `raw` is not used, since only the calls of the same chunk can be taken back.
    """

    phase: Literal["content", "block", "text"] = "content"
    tail: str = ""
    block: list[str] = field(default_factory=list)
    index: int = 0
    spoken: bool = False
    whole: bool = False


class Granite4Calls(CallStage):
    """Calls in blocks, each sent whole (json 6)."""

    State: ClassVar[type] = BlockState

    def __init__(self, stops: Collection[int]) -> None:
        super().__init__(stops)
        self._openings = Lexer([OPENING])
        self._closings = Lexer([CLOSING])
        self._calls_from: int | None = None
        self._sent_before = False
        self._raw: list[str] = []
        self._fresh = False

    @property
    def _sent(self) -> bool:
        return self._sent_before

    def _begin_chunk(self, segments: Sequence[Segment]) -> None:
        self._calls_from, self._raw = None, []
        self._sent_before, self._fresh = self.state.index > 0, False

    def finish(self) -> list[Event]:
        self._calls_from, self._sent_before = None, self.state.index > 0
        return super().finish()

    def _end(self) -> None:
        state = self.state
        if state.phase == "block" and self._sent_before:
            self._events.append(Malformed())
        elif state.phase == "block":
            self._give_up()
        self._content(state.held)

    def _in_content(self, text: str, position: int) -> int:
        state = self.state
        end, tag = self._openings.next(text, position)
        between = text[position:end]
        if tag and state.whole and not state.spoken and not between.strip():
            self._raw.append(between)
        else:
            self._content(between)
        if self._closes_nothing(between) and not self._sent_before:
            self._give_up()
            return end
        if not tag:
            state.held = text[end:]
            return len(text)
        if self._calls_from is None:
            self._calls_from = len(self._events)
        state.phase, state.tail = "block", ""
        state.block.append(tag)
        self._fresh = not state.whole
        return end + len(tag)

    def _closes_nothing(self, text: str) -> bool:
        """Whether a closing tag without an opening one ends in `text`."""
        seen = self.state.tail + text
        self.state.tail = seen[self._closings.next(seen, 0)[0] :] if CLOSING not in seen else ""
        return CLOSING in seen

    def _in_block(self, text: str, position: int) -> int:
        state = self.state
        end, tag = self._closings.next(text, position)
        state.block.append(text[position:end])
        if not tag:
            state.held = text[end:]
            return len(text)
        call = _read("".join(state.block).removeprefix(OPENING))
        state.block.append(tag)
        if call is None and not self._sent_before:
            self._give_up()
        else:
            self._close(call)
        return end + len(tag)

    def _close(self, call: tuple[str, str] | None) -> None:
        """The block is a call, or is dropped because calls were sent before."""
        state = self.state
        if call is None:
            self._events.append(Malformed())
        else:
            name, arguments = call
            self._events += [CallStart(state.index, name), CallArguments(state.index, arguments), CallEnd(state.index)]
            state.index += 1
        self._raw += state.block
        state.phase, state.block, state.whole = "content", [], self._fresh
        self._fresh = False

    def _give_up(self) -> None:
        """Nothing is called: the calls of this chunk and the open block are content, and so is the rest."""
        state = self.state
        self._events = self._events[: self._calls_from] if self._calls_from is not None else self._events
        self._content("".join([*self._raw, *state.block]))
        state.phase, state.block, state.index, self._raw = "text", [], 0, []

    def _content(self, text: str) -> None:
        if text:
            self.state.spoken = self.state.spoken or not text.isspace()
            self._events.append(Content(text))
            if self._calls_from is not None:
                self._raw.append(text)


def _read(body: str) -> tuple[str, str] | None:
    """(name, arguments) of a block. Arguments given as a string are used as they are."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or value.get("arguments") is None:
        return None
    arguments = value["arguments"]
    return value["name"], arguments if isinstance(arguments, str) else dump_json(arguments)


class Granite4Tools(CallFormat):
    """`granite4` (json 6)."""

    names = ("granite4",)
    markers = (OPENING, CLOSING)
    guided_choice = True
    merges_entries = True

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return Granite4Calls(self.marks.keys())
