"""Harmony, the format of gpt-oss: messages with a channel, a recipient and a content type.

    <|channel|>analysis<|message|>The user wants the weather.<|end|><|start|>assistant<|channel|>commentary
    to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>

The channel `analysis` is reasoning, `final` and `commentary` without a recipient are content, a message to a function
is a call. Reasoning and calls are found by one automaton, whichever of the two parsers is named (deepseek_kimi_harmony
8).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from parsers.engine.context import RequestContext
from parsers.engine.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning, Segment, Token
from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.json_stream import JsonStream, JsonStreamState
from parsers.engine.stage import Outcome, UnifiedFormat, UnifiedStage
from parsers.engine.vocabulary import Vocabulary

START, MESSAGE, CHANNEL, CONSTRAIN = "<|start|>", "<|message|>", "<|channel|>", "<|constrain|>"
STOPS = ("<|end|>", "<|call|>", "<|return|>")
ROLES = ("assistant", "user", "system", "developer", "tool")
CHANNELS = ("analysis", "commentary", "final")
PLAIN_LIMIT = 500
"""Code points of a header without a single marker, after which it is taken for an answer without markup."""

_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_CHANNEL = re.compile(re.escape(CHANNEL) + r"([^\s<]*)")


@dataclass(frozen=True, slots=True)
class Header:
    """What a message's header says; None where it says nothing, `garbled` where it says more than that."""

    role: str | None
    channel: str | None
    recipient: str | None
    content_type: str | None
    garbled: bool

    @property
    def function(self) -> str | None:
        """The function a call is for: any recipient that is neither a built-in tool nor the assistant itself."""
        recipient = self.recipient or ""
        name = recipient.removeprefix("functions.")
        built_in = recipient.split(".", 1)[0] in ("python", "browser", "container")
        return name if name and not built_in and recipient != "assistant" else None

    @property
    def is_preamble(self) -> bool:
        """Commentary for the user: addressed to nobody, as far as can be told."""
        return self.channel == "commentary" and self.recipient is None and not self.garbled


def parse_header(text: str, *, names_role: bool) -> Header:
    """Reads a header leniently: unknown words are skipped, and a channel without its marker is recognised by name.

    `names_role`: the first word is the role, which may be a tool's name.
    """
    channel: str | None = None
    match = _CHANNEL.search(text)
    if match:
        channel = match.group(1) or None
        text = text[: match.start()] + " " + text[match.end() :]
    head, constrain, kind = text.partition(CONSTRAIN)
    content_type = kind.split()[0] if kind.split() else ("" if constrain else None)
    words = head.split()
    role = words.pop(0) if names_role and words and not words[0].startswith("to=") else None
    recipient = None
    garbled = False
    for word in words:
        if word.startswith(("to=", "functions.")):
            recipient = recipient or word.removeprefix("to=") or None
        elif word in ROLES and role is None:
            role = word
        elif word in CHANNELS and channel is None:
            channel = word
        elif word == "json" and content_type is None:
            content_type = word
        else:
            garbled = True
    return Header(role, channel, recipient, content_type, garbled)


@dataclass(slots=True)
class HarmonyState:
    """`place`: between messages ("between"), in a "header" or in a "body" of `kind` (reasoning, content, call, "" for
    none).

    `marked` says that the header holds a marker, `begun` that it follows a start marker. `bare` says that the open body
    is text without any marker; `stop` is a stop marker behind such text, which is text itself if more of it follows.
    `thought` and `answered` count visible messages, which are joined by line breaks; `fresh` says that the open body
    sent nothing yet. `json` rewrites the arguments of the open call. `early` is text sent ahead of the token that
    releases it.
    """

    place: str = "header"
    header: str = ""
    marked: bool = False
    begun: bool = False
    bare: bool = False
    stop: str = ""
    kind: str = ""
    fresh: bool = True
    thought: bool = False
    answered: bool = False
    index: int = -1
    json: JsonStreamState | None = None
    plain: bool = False
    early: str = ""


class HarmonyStage(UnifiedStage):
    """The automaton of one stream."""

    State: ClassVar[type] = HarmonyState

    def __init__(self, early: Mapping[int, str], *, finds_calls: bool) -> None:
        super().__init__()
        self._early = early
        self._finds_calls = finds_calls

    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        events: list[Event] = []
        for segment in segments:
            early = self._early.get(segment.token_id) if isinstance(segment, Token) else None
            if early is not None and not segment.text:
                self._text(early, events)
                self.state.early = early
            elif isinstance(segment, Token) and early is None:
                self._token(segment.text, events)
            else:
                text, self.state.early = segment.text.removeprefix(self.state.early), ""
                self._text(text, events)
        self._pause(events)
        return events

    def _pause(self, events: list[Event]) -> None:
        """The chunk ends: a backslash of the open arguments need not wait."""
        if self.state.json is not None:
            text = JsonStream(self.state.json).pause()
            if text:
                events.append(CallArguments(self.state.index, text, raw=""))

    def finish(self) -> list[Event]:
        """A body ends; text without any markup, up to a stop marker, is the answer; a cut header is nothing."""
        state = self.state
        events: list[Event] = []
        if state.place == "body":
            self._close(events)
        elif state.place == "header" and not state.marked and state.header:
            events.append(Content(state.header))
        state.place, state.header, state.stop = "between", "", ""
        return events

    def _token(self, marker: str, events: list[Event]) -> None:
        state = self.state
        stops = marker in STOPS or not marker
        if self._is_bare():
            if stops:
                self._text("", events)
                state.stop = marker
                return
            if state.stop:
                self._end_bare(events)
        if state.place == "body":
            if stops:
                self._close(events)
                state.place, state.header, state.marked, state.begun = "between", "", True, False
            else:
                self._body(marker, events)
        elif marker == START:
            state.place, state.header, state.marked, state.begun = "header", "", True, True
        elif marker == MESSAGE:
            self._open(events)
        elif not stops:
            state.marked = True
            state.header += marker

    def _is_bare(self) -> bool:
        """Whether nothing but text and stop markers has come: an answer without markup."""
        return self.state.bare if self.state.place == "body" else self.state.place == "header" and not self.state.marked

    def _end_bare(self, events: list[Event]) -> None:
        """A message follows the stop marker: the answer without markup ended there."""
        state = self.state
        if state.place == "header":
            state.kind, state.fresh = "content", True
            self._body(state.header, events)
        self._close(events)
        state.place, state.header, state.marked, state.begun, state.stop = "between", "", True, False, ""

    def _text(self, text: str, events: list[Event]) -> None:
        state = self.state
        text, state.stop = state.stop + text, ""
        if state.place == "body":
            self._body(text, events)
            return
        state.header += text
        if state.place == "header" and not state.marked and len(state.header) > PLAIN_LIMIT:
            text, state.header = state.header, ""
            state.place, state.kind, state.fresh, state.bare = "body", "content", True, True
            self._body(text, events)

    def _open(self, events: list[Event]) -> None:
        """`<|message|>`: the header is complete."""
        state = self.state
        header = parse_header(state.header, names_role=state.begun)
        state.place, state.header, state.kind, state.fresh = "body", "", "", True
        if header.role not in (None, "assistant"):
            return
        if header.function is not None:
            if self._finds_calls:
                self._open_call(header, header.function, events)
        elif header.channel == "analysis":
            state.kind = "reasoning"
        elif header.channel == "final" or header.is_preamble:
            state.kind = "content"

    def _open_call(self, header: Header, name: str, events: list[Event]) -> None:
        state = self.state
        state.index += 1
        state.kind = "call"
        is_json = header.content_type is None or "json" in header.content_type
        state.json = JsonStreamState() if is_json else None
        state.plain = not is_json
        events += [CallStart(state.index, name), CallArguments(state.index, "")]

    def _body(self, text: str, events: list[Event]) -> None:
        state = self.state
        if not text:
            return
        match state.kind:
            case "reasoning":
                events.append(Reasoning(("\n" if state.fresh and state.thought else "") + text))
                state.thought = True
            case "content":
                events.append(Content(("\n" if state.fresh and state.answered else "") + text))
                state.answered = True
            case "call":
                events.append(CallArguments(state.index, self._arguments(text), raw=text))
        state.fresh = False

    def _arguments(self, text: str) -> str:
        """JSON is rewritten as a one-shot answer dumps it; what turns out to be no JSON goes on as it is."""
        state = self.state
        if state.json is None:
            return text
        out, used = JsonStream(state.json).feed(text)
        rest = text[used:]
        if state.json.invalid or (state.json.mode == "done" and rest.strip()):
            state.json, state.plain = None, True
            return _ascii(out) + rest
        return _ascii(out)

    def _close(self, events: list[Event]) -> None:
        state = self.state
        if state.kind == "call":
            malformed = state.plain
            if state.json is not None:
                rest = JsonStream(state.json).finish()
                malformed = state.json.invalid
                if rest:
                    events.append(CallArguments(state.index, rest, raw=""))
            events.append(CallEnd(state.index, malformed=malformed))
        state.kind, state.json, state.plain, state.bare = "", None, False, False


def _ascii(text: str) -> str:
    """JSON text with all but ASCII escaped, as one-shot answers of this format dump it."""
    return text if text.isascii() else _NOT_ASCII.sub(lambda match: json.dumps(match.group())[1:-1], text)


def early_texts(vocabulary: Vocabulary) -> dict[int, str]:
    """Token ID -> what is certain of the text of a token that ends inside a character, such as the blank before an
    emoji.

    Harmony streams work on bytes, so this text is sent before the character is complete.
    """
    found: dict[int, str] = {}
    for piece in vocabulary.pieces():
        if piece and not piece[-1].isascii() and (piece[0].isascii() or piece[0] in "ĠĊ"):
            token_id = vocabulary.token_id(piece)
            text = vocabulary.decode([token_id]) if token_id is not None else ""
            certain = text.rstrip("\ufffd")
            if token_id is not None and certain and certain != text:
                found[token_id] = certain
    return found


class Harmony(UnifiedFormat):
    """`openai` as a tool parser, `openai_gptoss` as a reasoning parser. Reasoning is separated with either of them."""

    names = ("openai", "openai_gptoss")
    merges_entries = True

    def __init__(self, vocabulary: Vocabulary, *, tools: bool, reasoning: bool) -> None:
        super().__init__(vocabulary, tools=tools, reasoning=reasoning)
        markers = (START, MESSAGE, CHANNEL, CONSTRAIN, *STOPS)
        found = {text: vocabulary.token_id(text) for text in markers}
        missing = [text for text, token_id in found.items() if token_id is None]
        if missing:
            raise ParserConfigurationError(
                f"harmony (openai, openai_gptoss) needs the tokens {', '.join(missing)}, which the tokenizer lacks; "
                "it serves gpt-oss models only"
            )
        self._early = early_texts(vocabulary)
        self.marks = self._early | {token_id: text for text, token_id in found.items() if token_id is not None}

    @classmethod
    def claims(cls, vocabulary: Vocabulary) -> bool:
        return vocabulary.model_type == "gpt_oss"

    @classmethod
    def tool_names(cls) -> tuple[str, ...]:
        return ("openai",)

    @classmethod
    def reasoning_names(cls) -> tuple[str, ...]:
        return ("openai_gptoss",)

    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> UnifiedStage:
        return HarmonyStage(self._early, finds_calls=self.tools)

    def settle(self, outcome: Outcome) -> None:
        """Arguments that are no JSON stay as the model wrote them."""
        for call in outcome.calls:
            call.arguments = call.raw if call.malformed else json.dumps(json.loads(call.raw))
        outcome.called = True
