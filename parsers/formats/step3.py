"""StepFun's Step3: thoughts up to `</think>`; calls in one block, each an element with its parameters.

Sample:

    The user asks for the weather.</think><｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>
    <steptml:invoke name="get_weather"><steptml:parameter name="city">Paris</steptml:parameter></steptml:invoke>
    <｜tool_call_end｜><｜tool_calls_end｜>
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from parsers.engine.assembly import dump_json
from parsers.engine.context import RequestContext
from parsers.engine.ending import Ending, EndingState
from parsers.engine.events import CallArguments, CallEnd, CallStart, Content, Event, Segment
from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.partial import held_back
from parsers.engine.scanner import text_of
from parsers.engine.stage import Outcome, ReasoningFormat, ReasoningStage, ToolFormat, ToolStage
from parsers.engine.vocabulary import Vocabulary

from .deepseek_r1 import END as THINK_END
from .deepseek_r1 import PromptEnd, ThinkStage

BLOCK_BEGIN, BLOCK_END = "<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"
CALL_BEGIN, CALL_END, SEPARATOR = "<｜tool_call_begin｜>", "<｜tool_call_end｜>", "<｜tool_sep｜>"

_PARAMETER = re.compile(r'<steptml:parameter name="([^"]*)">')
_PARAMETER_END, _INVOKE_END = "</steptml:parameter>", "</steptml:invoke>"
_BETWEEN = re.compile(f"{CALL_BEGIN}|{BLOCK_END}")
_HEAD = re.compile(f'<steptml:invoke name="([^"<]*)">|{CALL_END}|{CALL_BEGIN}|{BLOCK_END}')
_BODY_END = re.compile(f"{CALL_END}|{CALL_BEGIN}|{BLOCK_END}")
_HEAD_LIMIT = 4096


@dataclass(slots=True)
class Step3State:
    """`mode`: "text", "block" (between its markers), "call" (in one, its name not known), "body" or "after" a block.

    `held`: unread text. `raw`: the block's text as long as no call of it was `announced`. `body`: the open call's text
    behind its name. `waiting`: what is known but not sent: "content", "name", "arguments" or "cut", and the text.
    """

    mode: Literal["text", "block", "call", "body", "after"] = "text"
    held: str = ""
    raw: list[str] = field(default_factory=list)
    announced: bool = False
    body: list[str] = field(default_factory=list)
    name: str = ""
    waiting: list[list[str]] = field(default_factory=list)
    index: int = -1
    ending: EndingState = field(default_factory=EndingState)


class Step3ToolStage(ToolStage):
    """Sends one thing a chunk, as vLLM does: text, a name or its arguments. What is left comes with the next chunks.

    A block without any call is content.
    """

    State: ClassVar[type] = Step3State

    def __init__(self, schemas: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__()
        self._schemas = schemas

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        state = self.state
        ending = Ending(state.ending)
        text = ending.take(text_of(segments))
        self._read(ending.hold(text, segments) if state.ending.active else text)
        return self._events(state.waiting.pop(0)) if state.waiting else []

    def _read(self, text: str) -> None:
        state = self.state
        if text:
            text, state.held = state.held + text, ""
        while text:
            mode = state.mode
            rest = getattr(self, "_in_" + mode)(text)
            if mode in ("block", "call") and not state.announced:
                state.raw.append(text[: len(text) - len(rest or state.held)])
                if state.mode == "after":
                    self._give_back()
            text = rest

    def _give_back(self) -> None:
        """The block held no call."""
        self._say("".join(self.state.raw))
        self.state.raw, self.state.ending.active = [], True

    def _say(self, text: str) -> None:
        waiting = self.state.waiting
        if text and waiting and waiting[-1][0] == "content":
            waiting[-1][1] += text
        elif text:
            waiting.append(["content", text])

    def _events(self, known: Sequence[str]) -> list[Event]:
        kind, text = known
        state = self.state
        match kind:
            case "content":
                return [Content(text)]
            case "name":
                state.index += 1
                return [CallStart(state.index, text)]
            case "arguments":
                return [CallArguments(state.index, text), CallEnd(state.index)]
        return [CallEnd(state.index, malformed=True)]

    # --- modes: each reads some text and returns the rest, "" where it holds it ---

    def _in_text(self, text: str) -> str:
        """Before the block: text is held as long as it may be the block's marker, white space included."""
        before, marker, behind = text.partition(BLOCK_BEGIN)
        if not marker and BLOCK_BEGIN.startswith(text.strip()):
            self.state.held = text
            return ""
        self._say(before)
        return self._open_block(behind) if marker else ""

    def _in_after(self, text: str) -> str:
        before, marker, behind = text.partition(BLOCK_BEGIN)
        self._say(before)
        return self._open_block(behind) if marker else ""

    def _open_block(self, text: str) -> str:
        state = self.state
        state.mode, state.raw, state.announced = "block", [BLOCK_BEGIN], False
        return text

    def _hold(self, text: str, *marks: str) -> str:
        """The text that cannot be part of a marker; the rest is held."""
        size = held_back(text, *marks)
        self.state.held = text[len(text) - size :]
        return text[: len(text) - size]

    def _in_block(self, text: str) -> str:
        """Between calls: anything but a marker is dropped."""
        found = _BETWEEN.search(text)
        junk = text[: found.start()] if found else self._hold(text, CALL_BEGIN, BLOCK_END)
        self.state.ending.active = self.state.ending.active or bool(junk.strip())
        if not found:
            return ""
        self.state.mode = "call" if found.group() == CALL_BEGIN else "after"
        return text[found.end() :]

    def _in_call(self, text: str) -> str:
        """Up to the call's name."""
        state = self.state
        found = _HEAD.search(text)
        if not found:
            state.held = text[-_HEAD_LIMIT:]
            return ""
        if found.group(1) is None:
            state.mode, state.ending.active = "block", True
            return text[found.end() if found.group() == CALL_END else found.start() :]
        state.mode, state.body, state.name = "body", [], found.group(1)
        state.announced, state.raw = True, []
        state.waiting.append(["name", state.name])
        return text[found.end() :]

    def _in_body(self, text: str) -> str:
        state = self.state
        found = _BODY_END.search(text)
        if not found:
            state.body.append(self._hold(text, CALL_END, CALL_BEGIN, BLOCK_END))
            return ""
        state.body.append(text[: found.start()])
        self._close_call()
        return text[found.end() if found.group() == CALL_END else found.start() :]

    def _close_call(self) -> None:
        state = self.state
        arguments = parameters("".join(state.body), self._schemas.get(state.name, {}))
        state.waiting.append(["arguments", dump_json(arguments)])
        state.mode, state.body = "block", []
        if not arguments:
            state.ending.active = True

    def finish(self) -> list[Event]:
        state = self.state
        if state.mode == "body":
            if _INVOKE_END in "".join(state.body):
                self._close_call()
            else:
                state.waiting.append(["cut", ""])
        elif state.mode in ("block", "call") and not state.announced:
            state.raw.append(state.held)
            self._give_back()
        elif state.mode == "text":
            self._say(state.held)
        events = [event for known in state.waiting for event in self._events(known)]
        state.waiting = []
        return events + Ending(state.ending).finish()


def parameters(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """All complete parameters of a call, cast by the function's schema; the last of equal names counts."""
    properties = schema.get("properties")
    found: dict[str, Any] = {}
    position = 0
    while opening := _PARAMETER.search(text, position):
        end = text.find(_PARAMETER_END, opening.end())
        if end < 0:
            break
        declared = properties.get(opening.group(1)) if isinstance(properties, Mapping) else None
        kind = declared.get("type") if isinstance(declared, Mapping) else None
        found[opening.group(1)] = cast_value(text[opening.end() : end].strip(), kind)
        position = end + len(_PARAMETER_END)
    return found


def cast_value(text: str, kind: object) -> Any:
    """A value as its schema's plain type says (pythonic_misc 11.2); text where it does not fit."""
    if kind in ("integer", "number"):
        try:
            number = int(text) if kind == "integer" else float(text)
        except ValueError:
            return text
        return number if kind == "integer" or math.isfinite(number) else text
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    return None if kind == "null" else text


class Step3Tools(ToolFormat):
    """`step3` (pythonic_misc 11.2)."""

    names = ("step3",)
    guided_choice = True
    merges_entries = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        tags = (BLOCK_BEGIN, BLOCK_END, CALL_BEGIN, CALL_END, SEPARATOR)
        self.marks = {token_id: text for token_id, text in vocabulary.special_tokens.items() if text not in tags}

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return Step3ToolStage(context.parameters)

    def settle(self, outcome: Outcome) -> None:
        super().settle(outcome)
        if outcome.called and outcome.content is not None:
            outcome.content = outcome.content.strip()


class Step3Reasoning(ReasoningFormat):
    """`step3` (pythonic_misc 11.1): there is no opening tag."""

    names = ("step3",)

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        end_id = vocabulary.token_id(THINK_END)
        if end_id is None:
            raise ParserConfigurationError(f"the tokenizer has no {THINK_END} token")
        self._end_id = end_id
        self._prompt_end = PromptEnd(vocabulary, THINK_END, THINK_END)
        self.marks = {end_id: THINK_END}

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage:
        stage = ThinkStage(-1, self._end_id)
        stage.state.ended = self._prompt_end.closes(prompt_token_ids or (), context)
        return stage
