"""Decides after which chunks the calls of a growing Python call list are sent, as vLLM does (pythonic_misc 1.3).

vLLM closes the brackets and the quote that are open so far and asks whether the result is a call list. Its scan is
simpler than Python's, and rules of thumb over commas, colons and equals signs make it wait. The same is known here from
a few counters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_STRUCTURE = re.compile(r"[\[\](){}'\"]")
_IN_QUOTE = {quote: re.compile(rf"[\\{quote}]") for quote in "'\""}
NESTING_LIMIT = 200
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_OPENS = {")": "(", "]": "[", "}": "{"}


@dataclass(slots=True)
class GateState:
    """`stack`: open brackets and quote, innermost last; `broken`: a bracket closed that was not open.

    `held`: white space at the end, with one comma before it, which the closed-up text would not have. `last` is the
    last character before that white space, `tail` the last one before the comma too. `paren_surplus`, `brace_surplus`:
    more equals signs (colons) than commas precede the last `(` (`{`).
    """

    stack: str = ""
    escaped: bool = False
    broken: bool = False
    equals: int = 0
    colons: int = 0
    commas: int = 0
    paren_surplus: bool = False
    brace_surplus: bool = False
    last: str = ""
    tail: str = ""
    held: list[str] = field(default_factory=list)


class CompletionGate:
    """Text in, the part of it that counts now out; `passes` then says whether this chunk may send anything."""

    def __init__(self, state: GateState) -> None:
        self.state = state

    def feed(self, text: str) -> str:
        """What the reader gets now: held text and `text`, less trailing white space and one comma before it."""
        state = self.state
        core = text.rstrip()
        if not core:
            if text:
                state.held.append(text)
            return ""
        rest = text[len(core) :]
        if state.held:
            core = "".join(state.held) + core
        state.last = core[-1]
        if core[-1] == ",":
            core, rest = core[:-1], "," + rest
        state.held = [rest] if rest else []
        if core:
            state.tail = core[-1]
            self._count(core)
            self._scan(core)
        return core

    def flush(self) -> str:
        """The held text, at the end of output or where the list turned out to be none."""
        held = "".join(self.state.held)
        self.state.held = []
        return held

    @property
    def holds_comma(self) -> bool:
        """A comma follows what the reader got."""
        return bool(self.state.held) and self.state.held[0].startswith(",")

    def passes(self) -> bool:
        state = self.state
        if state.broken or state.last in ("=", ":"):
            return False
        top = state.stack[-1:]
        if top == "(":
            return state.paren_surplus
        if top == "{":
            return state.brace_surplus
        return top != "[" or state.tail in ("[", ")")

    def closers(self) -> str:
        """What closes the open brackets and the open quote."""
        return "".join(_CLOSES.get(opening, opening) for opening in reversed(self.state.stack))

    def _count(self, text: str) -> None:
        state = self.state
        position = text.rfind("(")
        if position >= 0:
            equals = state.equals + text.count("=", 0, position)
            state.paren_surplus = equals > state.commas + text.count(",", 0, position)
        position = text.rfind("{")
        if position >= 0:
            colons = state.colons + text.count(":", 0, position)
            state.brace_surplus = colons > state.commas + text.count(",", 0, position)
        state.equals += text.count("=")
        state.colons += text.count(":")
        state.commas += text.count(",")

    def _scan(self, text: str) -> None:
        state = self.state
        position = 0
        while position < len(text) and not state.broken:
            quote = state.stack[-1:]
            if quote in _IN_QUOTE:
                position = self._in_quote(text, position, quote)
                continue
            found = _STRUCTURE.search(text, position)
            if found is None:
                return
            position = found.end()
            character = found.group()
            if character not in _OPENS:
                state.stack += character
                state.broken = len(state.stack) > NESTING_LIMIT
            elif state.stack.endswith(_OPENS[character]):
                state.stack = state.stack[:-1]
            else:
                state.broken = True

    def _in_quote(self, text: str, position: int, quote: str) -> int:
        state = self.state
        if state.escaped:
            state.escaped = False
            return position + 1
        found = _IN_QUOTE[quote].search(text, position)
        if found is None:
            return len(text)
        if found.group() == quote:
            state.stack = state.stack[:-1]
        else:
            state.escaped = True
        return found.end()
