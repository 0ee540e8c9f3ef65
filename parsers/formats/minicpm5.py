"""Calls of MiniCPM5: an XML element per call, with the leniency that its authors' own tools show.

    Let me look.
    <function name="get_weather"><param name="city">Paris</param><param name="days">3</param></function>

A block that is well-formed XML is read as XML, any other by its tags alone. A block that is no call of a function on
offer is text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from parsers.engine.assembly import dump_json
from parsers.engine.context import RequestContext
from parsers.engine.events import CallArguments, CallEnd, CallStart, Content, Event, Segment, Token
from parsers.engine.function_block import (
    COLLAPSED,
    HEADER,
    PARAM,
    PLAIN,
    arguments_of,
    is_certain,
    properties_of,
    read_block,
    trimmed,
)
from parsers.engine.lexer import Lexer
from parsers.engine.stage import FoundCall, Outcome, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary

OPEN, CLOSE = "<function", "</function>"
_PARAM_END = "</param>"
_BLANKS = str.maketrans({"\u0120": " ", "\u010a": "\n"})


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of `target`: each argument is the first of `sources` that was given; `constants` are added."""

    target: str
    sources: Mapping[str, tuple[str, ...]]
    constants: Mapping[str, Any] = field(default_factory=dict)


_BY_ID = {name: Alias("get_details_by_id", {"id": ("line_id", "id")}) for name in (
    "get_line_details", "get_line_status", "get_roaming_status"
)}  # fmt: skip
_REFUEL = Alias(
    "refuel_data",
    {
        "customer_id": ("customer_id",),
        "line_id": ("line_id", "id"),
        "amount_gb": ("amount_gb", "gb", "gb_amount", "amount"),
    },
)
ALIASES: Mapping[str, Alias] = {
    "get_details_by_phone": Alias("get_customer_by_phone", {"phone_number": ("phone_number", "phone")}),
    "get_details_by_name": Alias(
        "get_customer_by_name",
        {
            "full_name": ("full_name", "name"),
            "date_of_birth": ("date_of_birth", "dob"),
            "dob": ("date_of_birth", "dob"),
        },
    ),
    **_BY_ID,
    "get_plan_details": Alias("get_details_by_id", {"id": ("plan_id", "id")}),
    "enable_roaming": Alias("toggle_roaming", {"line_id": ("line_id", "id")}, {"enabled": True}),
    "disable_roaming": Alias("toggle_roaming", {"line_id": ("line_id", "id")}, {"enabled": False}),
    "add_refueled_data": _REFUEL,
    "add_data_to_line": _REFUEL,
}
"""Names under which the model calls the functions of a public benchmark (xml 12)."""


def _resolved(name: str, arguments: dict[str, Any], offered: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The call under the name on offer."""
    alias = ALIASES.get(name)
    if name in offered or alias is None or alias.target not in offered:
        return name, arguments
    given = {
        target: next((arguments[source] for source in sources if source in arguments), None)
        for target, sources in alias.sources.items()
    }
    if any(value is None for value in given.values()):
        return name, arguments
    properties = properties_of(offered[alias.target])
    kept = {key: value for key, value in given.items() if key in properties or not properties}
    return alias.target, {**kept, **alias.constants}


def call_of(block: str, offered: Mapping[str, Mapping[str, Any]]) -> tuple[str, dict[str, Any]] | None:
    """The call that a complete block makes; None where it is no call of a function on offer."""
    found = read_block(block)
    if found is None:
        return None
    name, pairs = found
    arguments = arguments_of(pairs, offered.get(name, {}))
    if arguments is None:
        return None
    name, arguments = _resolved(name, arguments, offered)
    required = offered[name].get("required") if name in offered else None
    if name not in offered or any(key not in arguments for key in (required if isinstance(required, list) else ())):
        return None
    return name, arguments


# --- stage ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class FunctionState:
    """`block` is the text of the open call, "" outside; `held` may be the beginning of one that is spelled.

    `name` was sent for the open call, and `sent` code points of its arguments, which `pairs` make; they were found in
    the first `scanned` code points of the block. `certain`: nothing came that only the whole block decides.
    """

    held: str = ""
    block: str = ""
    index: int = 0
    called: bool = False
    name: str | None = None
    sent: int = 0
    pairs: list[list[str]] = field(default_factory=list)
    scanned: int = 0
    certain: bool = True


_SPELLED = Lexer([OPEN])


class FunctionStage(ToolStage):
    """Reads the blocks; text behind the first call is nobody's."""

    State: ClassVar[type] = FunctionState

    def __init__(self, context: RequestContext, open_id: int | None) -> None:
        super().__init__()
        self._offered = context.parameters
        self._open_id = open_id

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        events: list[Event] = []
        state = self.state
        if not any(segment.text for segment in segments) and state.called and not state.block and not state.held:
            events.append(Content(""))
        for segment in segments:
            text = segment.text.translate(_BLANKS)
            if state.block:
                self._block(text, events)
            elif isinstance(segment, Token) and segment.token_id == self._open_id:
                state.block, state.scanned = text, 0
            else:
                self._text(text, events)
        return events

    def finish(self) -> list[Event]:
        """An open block is text, even if its name was sent."""
        state = self.state
        events: list[Event] = []
        if state.block:
            self._reject(events, "" if state.name is not None else state.block)
        self._content(state.held, events)
        state.held = ""
        return events

    def _text(self, text: str, events: list[Event]) -> None:
        state = self.state
        if self._open_id is not None:
            self._content(text, events)
            return
        pieces, state.held = _SPELLED.cut(state.held, text)
        for position, (piece, opens) in enumerate(pieces):
            if opens:
                rest = "".join(text for text, _ in pieces[position + 1 :]) + state.held
                state.block, state.held, state.scanned = piece, "", 0
                self._block(rest, events)
                return
            self._content(piece, events)

    def _content(self, text: str, events: list[Event]) -> None:
        if text and not self.state.called:
            events.append(Content(text))

    def _block(self, text: str, events: list[Event]) -> None:
        state = self.state
        before = len(state.block)
        state.block += text
        end = state.block.find(CLOSE, max(before - len(CLOSE) + 1, 0))
        if end < 0:
            self._progress(before, events)
            return
        state.block, rest = state.block[: end + len(CLOSE)], state.block[end + len(CLOSE) :]
        self._close(events)
        if rest:
            self._again(rest, events)

    def _again(self, rest: str, events: list[Event]) -> None:
        """Text behind a block, which may hold another."""
        if self._open_id is None:
            self._text(rest, events)
            return
        position = rest.find(OPEN)
        self._content(rest if position < 0 else rest[:position], events)
        if position >= 0:
            self.state.block, self.state.scanned = OPEN, 0
            self._block(rest[position + len(OPEN) :], events)

    def _progress(self, before: int, events: list[Event]) -> None:
        """Sends the name once it stands, and each parameter that is certain."""
        state = self.state
        if state.name is None and ">" in state.block[before:]:
            self._announce(events)
        if _PARAM_END not in state.block[max(before - len(_PARAM_END) + 1, state.scanned) :]:
            return
        for match in PARAM.finditer(state.block, state.scanned):
            state.scanned = match.end()
            key, raw = (match[1] or match[2] or "").strip(), match[3]
            state.certain = state.certain and self._is_certain(match.group(), key, raw)
            if state.certain:
                state.pairs.append([key, trimmed(raw)])
        self._send_arguments(events)

    def _is_certain(self, written: str, key: str, raw: str) -> bool:
        schema = self._offered.get(self.state.name or "", {})
        return PLAIN.match(written) is not None and is_certain(raw, properties_of(schema).get(key))

    def _announce(self, events: list[Event]) -> None:
        state = self.state
        header = HEADER.match(COLLAPSED.sub(r"<\1 name=", state.block))
        name = (header[1] or header[2] or "").strip() if header else None
        if name in self._offered:
            state.name = name
            events.append(CallStart(state.index, name or ""))

    def _send_arguments(self, events: list[Event]) -> None:
        state = self.state
        if state.name is None:
            return
        arguments = arguments_of([(key, text) for key, text in state.pairs], self._offered[state.name])
        if arguments:
            self._send(dump_json(arguments)[:-1], events)

    def _send(self, text: str, events: list[Event]) -> bool:
        state = self.state
        fresh = text[state.sent :]
        if fresh:
            events.append(CallArguments(state.index, fresh))
            state.sent += len(fresh)
        return bool(fresh)

    def _close(self, events: list[Event]) -> None:
        """The block is complete."""
        state = self.state
        call = call_of(state.block, self._offered)
        if call is None or (state.name is not None and call[0] != state.name):
            self._reject(events, state.block)
            return
        name, arguments = call
        if state.name is None:
            events.append(CallStart(state.index, name))
        self._send(dump_json(arguments), events)
        events.append(CallEnd(state.index))
        state.called = True
        self._reset()

    def _reject(self, events: list[Event], text: str) -> None:
        state = self.state
        if state.name is not None:
            events.append(CallEnd(state.index, malformed=True))
        self._content(text, events)
        self._reset()

    def _reset(self) -> None:
        state = self.state
        state.index += state.name is not None or state.called
        state.block, state.name, state.sent, state.pairs, state.certain = "", None, 0, [], True


class Minicpm5Tools(ToolFormat):
    """`minicpm5` (xml 12): a forced choice is expected as plain JSON."""

    names = ("minicpm5",)
    guided_choice = True
    merges_entries = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._open_id = vocabulary.token_id(OPEN)
        self.marks = {} if self._open_id is None else {self._open_id: OPEN}

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return FunctionStage(context, self._open_id)

    def settle(self, outcome: Outcome) -> None:
        super().settle(outcome)
        if outcome.called and outcome.content is not None:
            outcome.content = outcome.content.strip()

    def call_id(self, context: RequestContext, call: FoundCall, *, streaming: bool) -> str:
        return context.call_id(call.index) if streaming else f"call_{context.random_hex(call.index)}"
