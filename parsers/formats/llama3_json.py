"""JSON tool calls of Llama 3 and 4: bare objects, perhaps behind a tag, with `parameters` or `arguments`.

    <|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}}; {"name": "ping", "parameters": {}}

An object that begins the answer (or a line of it, or follows the tag) may be a call; text before it is content, text
behind it is dropped. If the first object is no call, nothing is. A stream sends at most one step a chunk, as vLLM
does: the call appears, its name, then the arguments as far as the chunk before had them; what is left is sent at the
end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from parsers.engine.assembly import collect
from parsers.engine.call_object import EITHER_KEY, CallObject
from parsers.engine.context import RequestContext
from parsers.engine.events import CallEnd, Content, Malformed, Segment, Text, Token
from parsers.engine.json_stream import SPACE
from parsers.engine.stage import Outcome, ToolStage
from parsers.engine.vocabulary import Vocabulary
from parsers.formats.call_stage import CallFormat
from parsers.formats.stepping import SteppedCalls, StepState

TAGS = ("<|python_tag|>", "<|python_start|>")

Phase = Literal["prose", "tagged", "object", "behind", "text", "silent"]

_FIRST_KEYS = frozenset(("name", "type", "id", "function", "arguments", "parameters"))


@dataclass(slots=True)
class LlamaState(StepState):
    """Where the stage stands.

    Phases: `prose`, in which an object may begin; `tagged`: behind a tag or bracket that must be followed by one;
    `object` inside it, `behind` it; `text`: no object counts any more, everything is content; `silent`: a call that was
    sent turned out malformed. `spoken`: there was prose; `line`: only white space so far on this line of it;
    `silent_text`: the text is what an object was that is no call, in which vLLM sends no empty entries. `after` is the
    beginning of the text behind the current call.
    """

    phase: Phase = "prose"
    spoken: bool = False
    line: bool = True
    silent_text: bool = False
    after: str = ""


class LlamaCalls(SteppedCalls):
    """One step a chunk (json 2)."""

    State: ClassVar[type] = LlamaState
    style = EITHER_KEY

    def __init__(self, tags: Collection[int], stops: Collection[int]) -> None:
        super().__init__(stops)
        self._tags = tags
        self._speaks = False

    def _begin_chunk(self, segments: Sequence[Segment]) -> None:
        super()._begin_chunk(segments)
        self._speaks = self._is_prose()

    def _is_prose(self) -> bool:
        return self.state.phase in ("prose", "text") and not self.state.silent_text

    def _is_stop_shown(self) -> bool:
        return self.state.phase == "behind" or self._is_prose()

    def _end_chunk(self) -> None:
        state = self.state
        if self._speaks and not self._events and state.phase in ("prose", "text"):
            self._events.append(Content(""))
        if state.call is not None and not self._fresh:
            self._send_step(reads_on=self._reads_on(state.after))

    def _end(self) -> None:
        state = self.state
        if state.phase == "behind" and state.call is not None:
            self._send_rest(empty=False)
            self._events.append(CallEnd(state.index))
        elif state.phase in ("tagged", "object") and state.index < 0:
            self._give_up()
        elif state.phase == "object" and state.named:
            self._send_cut()
        elif state.phase == "object":
            self._events.append(Malformed())

    def _consume(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            if isinstance(segment, Token) and segment.token_id in self._tags and self.state.phase == "prose":
                self._remember(segment.text)
                self.state.phase = "tagged"
            else:
                self._run(segment.text)

    def _in_prose(self, text: str, position: int) -> int:
        """Up to an object that begins a line; a brace elsewhere in prose ends the search for calls."""
        state = self.state
        at = text.find("{", position)
        before = text[position : at if at >= 0 else len(text)]
        if not state.spoken and before.strip() == "[":
            self._content(before[: before.index("[")])
            self._remember(before[before.index("[") :])
            state.phase = "tagged"
            return position + len(before)
        self._content(before)
        line = before[before.rfind("\n") + 1 :]
        state.line = not line.strip() and (state.line or len(line) < len(before))
        state.spoken = state.spoken or bool(before.strip())
        if at < 0:
            return len(text)
        if state.line:
            self._begin()
        else:
            state.phase = "text"
        return at

    def _in_tagged(self, text: str, position: int) -> int:
        state = self.state
        if text[position] == "{":
            self._begin()
            return position
        if text[position] not in SPACE:
            is_list = state.raw[0].startswith("[")
            self._give_up()
            if is_list:
                state.phase, state.silent_text, state.spoken, state.line = "prose", False, True, False
            return position
        self._remember(text[position])
        return position + 1

    def _begin(self) -> None:
        """An object begins; the call before it is sent to its end."""
        state = self.state
        if state.call is not None:
            self._send_rest(empty=len(state.after) >= 2 and not state.after[2:].strip())
        self._begin_call()
        state.phase, state.after = "object", ""
        self._fresh = True

    def _in_object(self, text: str, position: int) -> int:
        state = self.state
        call = self._call()
        end = call.feed(text, position)
        self._remember(text[position:end])
        if call.complete:
            state.phase = "behind"
        elif call.bad or call.done or self._is_other_json(call):
            self._reject()
        return end

    def _is_other_json(self, call: CallObject) -> bool:
        """In prose, the first key tells that an object is no call."""
        state = call.state
        return self.state.spoken and state.place == "colon" and state.name is None and state.key not in _FIRST_KEYS

    def _in_behind(self, text: str, position: int) -> int:
        at = text.find("{", position)
        between = text[position : at if at >= 0 else len(text)]
        state = self.state
        if len(state.after) < 8:
            state.after += between[:8]
        if at < 0:
            return len(text)
        self._begin()
        return at

    def _reject(self) -> None:
        """The object is no call."""
        state = self.state
        if state.index < 0:
            self._give_up()
        elif state.call.name is None:
            state.phase, state.call = "behind", None
        else:
            self._events.append(CallEnd(state.index, malformed=True) if state.named else Malformed())
            state.phase, state.call = "silent", None

    def _give_up(self) -> None:
        """What looked like a call is content, and so is the rest."""
        state = self.state
        state.call, state.silent_text = None, True
        self._give_back("text")

    @staticmethod
    def _reads_on(after: str) -> bool:
        """Whether vLLM can still read the text with this behind a call, and so sends an empty entry."""
        return not after.strip() or (len(after) <= 2 and not set("}]") & set(after))


class Llama3JsonTools(CallFormat):
    """`llama3_json`, `llama4_json` (json 2)."""

    names = ("llama3_json", "llama4_json")
    streams_arguments = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        tags = {vocabulary.token_id(tag): tag for tag in TAGS}
        self._tags = {token_id: tag for token_id, tag in tags.items() if token_id is not None}
        self._stops = self.marks.keys() - self._tags.keys()
        self.marks |= self._tags

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return LlamaCalls(self._tags, self._stops)

    def settle(self, outcome: Outcome) -> None:
        """A call in the middle of a line is found here; a stream has sent its brace by the time it is known."""
        if not outcome.calls and not outcome.malformed and "{" in outcome.raw:
            stage = LlamaCalls(self._tags, self._stops)
            found = collect(stage.feed([Text(outcome.raw[outcome.raw.index("{") :])]) + stage.finish())[1]
            outcome.calls, outcome.malformed = found.calls, found.malformed
            if found.calls:
                outcome.content = None
        super().settle(outcome)
