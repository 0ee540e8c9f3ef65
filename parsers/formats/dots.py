"""Tool calls of dots: blocks that hold either tagged invocations or one JSON object.

    Let me look.<dots_function_call>
    <invoke name="get_weather">
    <parameter name="city">Paris</parameter>
    </invoke>
    </dots_function_call>

Only functions on offer can be called. Invocations count when their block is closed, a JSON object as soon as it is
complete. Text behind the first block is shown only if there is no call at all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from parsers.engine.assembly import dump_json, unique_keys
from parsers.engine.call_object import EITHER_KEY, CallObject, CallObjectState
from parsers.engine.coercion import types_of
from parsers.engine.context import RequestContext
from parsers.engine.events import CallArguments, CallEnd, CallStart
from parsers.engine.lexer import Lexer
from parsers.engine.stage import Outcome, ToolStage
from parsers.formats.call_stage import CallFormat, CallStage, CallStageState

OPENING, CLOSING = "<dots_function_call>", "</dots_function_call>"
INVOKE, PARAMETER = "invoke", "parameter"
FALSY = ("", "null", "false", "0", "0.0", '""', "[]", "{}")
QUOTES = "\"'"

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(slots=True)
class DotsState(CallStageState):
    """Where the stage stands.

    Phases: `content` before the first block, `block`, `between` blocks. `block` is the text of the open block, `call`
    its reader if it may hold an object, `sent` that its call is out; `count` is the number of calls.
    """

    phase: Literal["content", "block", "between"] = "content"
    block: list[str] = field(default_factory=list)
    call: CallObjectState | None = None
    sent: bool = False
    count: int = 0


class DotsCalls(CallStage):
    """Calls are sent whole (json 14)."""

    State: ClassVar[type] = DotsState

    def __init__(self, offered: Mapping[str, Mapping[str, Any]], stops: Collection[int]) -> None:
        super().__init__(stops)
        self._offered = offered
        self._outside, self._inside = Lexer([OPENING]), Lexer([CLOSING])

    @property
    def _sent(self) -> bool:
        return bool(self.state.count)

    def _end_chunk(self) -> None:
        self._send_object(apart=True)

    def _end(self) -> None:
        state = self.state
        if state.phase == "content":
            self._content(state.held)
        elif not state.count:
            open_block = [OPENING, *state.block] if state.phase == "block" else []
            state.raw += [*open_block, state.held]
            self._give_back(state.phase)
        state.raw, state.block = [], []

    def _step(self, text: str, position: int) -> int:
        state = self.state
        lexer = self._inside if state.phase == "block" else self._outside
        end, marker = lexer.next(text, position)
        self._take(text[position:end])
        if not marker:
            state.held = text[end:]
            return len(text)
        if state.phase == "block":
            self._close()
        else:
            state.phase, state.block, state.call, state.sent = "block", [], CallObjectState(), False
        return end + len(marker)

    def _take(self, text: str) -> None:
        """Text between markers."""
        state = self.state
        if not text:
            return
        if state.phase == "content":
            self._content(text)
        elif state.phase == "between":
            self._remember(text)
        else:
            if not state.count or not state.sent:
                state.block.append(text)
            if state.call is not None:
                self._read(text)

    def _read(self, text: str) -> None:
        call = CallObject(self.state.call, EITHER_KEY)
        call.feed(text)
        if call.bad:
            self.state.call = None

    def _send_object(self, *, apart: bool) -> None:
        """The call of a block that holds a complete object. `apart`: its arguments go into an entry of their own."""
        state = self.state
        if state.call is None or state.sent or not CallObject(state.call).done:
            return
        call = CallObject(state.call, EITHER_KEY)
        arguments = call.take() if call.complete else ""
        state.call = None
        arguments = "{}" if arguments in FALSY else unique_keys(arguments)
        name = call.state.name
        if name in self._offered and arguments.startswith("{"):
            state.sent, state.block = True, []
            self._send(name or "", arguments, apart=apart)

    def _close(self) -> None:
        """The open block is closed."""
        state = self.state
        self._send_object(apart=False)
        body = "".join(state.block)
        if not state.sent:
            for name, arguments in _invocations(body.strip(), self._offered):
                self._send(name, arguments, apart=False)
                state.sent = True
        if not state.sent:
            self._remember(OPENING + body + CLOSING)
        state.phase, state.block, state.call = "between", [], None

    def _send(self, name: str, arguments: str, *, apart: bool) -> None:
        state = self.state
        index, state.count, state.raw = state.count, state.count + 1, []
        self._events.append(CallStart(index, name))
        if apart:
            self._events.append(CallArguments(index, ""))
        self._events += [CallArguments(index, arguments, apart=apart), CallEnd(index)]


def _invocations(body: str, offered: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """(name, arguments) of each invocation of a function on offer."""
    if not body.startswith("<" + INVOKE):
        return
    for name, inner in _elements(body, INVOKE):
        if name in offered:
            properties = offered[name].get("properties")
            known = properties if isinstance(properties, Mapping) else {}
            arguments = {
                key: _typed(value.strip(), known.get(key), offered[name]) for key, value in _elements(inner, PARAMETER)
            }
            yield name, dump_json(arguments)


def _elements(text: str, tag: str) -> Iterator[tuple[str, str]]:
    """(name, text inside) of each complete element `<tag name=...>...</tag>`."""
    start, end = f"<{tag} name=", f"</{tag}>"
    position = text.find(start)
    while position >= 0:
        behind = text.find(">", position)
        close = text.find(end, behind + 1) if behind >= 0 else -1
        if close < 0:
            return
        name = text[position + len(start) : behind].strip()
        if len(name) > 1 and name[0] == name[-1] and name[0] in QUOTES:
            name = name[1:-1]
        yield name, text[behind + 1 : close]
        position = text.find(start, close)


def _typed(text: str, schema: object, root: Mapping[str, Any]) -> Any:
    """The value `text` stands for; the text itself where it does not fit its type."""
    kind = _kind(schema, root)
    if text.lower() == "null" and (kind != "string" or "null" in types_of(schema)):
        return None
    try:
        match kind:
            case "string":
                return text
            case "integer":
                return int(text)
            case "number":
                return _number(text)
            case "boolean":
                return _BOOLEANS.get(text.lower(), text)
            case _:
                json.dumps(value := json.loads(text), allow_nan=False)
                return value
    except (ValueError, RecursionError):
        return text


def _number(text: str) -> int | float:
    """Raises ValueError for what JSON has no number for."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return int(value) if value.is_integer() else value


def _kind(schema: object, root: Mapping[str, Any], depth: int = 0) -> str:
    """The one type a value is read as: the first that is not null."""
    if not isinstance(schema, Mapping) or depth > 8:
        return "string"
    kinds = schema.get("type")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if isinstance(kind, str) and kind != "null":
            return kind
    reference = schema.get("$ref")
    definitions = root.get("$defs")
    if isinstance(reference, str) and isinstance(definitions, Mapping):
        return _kind(definitions.get(reference.removeprefix("#/$defs/")), root, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        alternatives = schema.get(key)
        for alternative in alternatives if isinstance(alternatives, list) else ():
            if isinstance(alternative, Mapping) and alternative.get("type") != "null":
                return _kind(alternative, root, depth + 1)
    return "string"


class DotsTools(CallFormat):
    """`dots` (json 14)."""

    names = ("dots",)
    markers = (OPENING, CLOSING)
    merges_entries = True

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return DotsCalls(context.parameters, self.marks.keys())

    def settle(self, outcome: Outcome) -> None:
        outcome.called = bool(outcome.calls)
        if outcome.called and outcome.content is not None:
            outcome.content = outcome.content.strip() or None
