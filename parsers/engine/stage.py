"""What a format implements: stages that turn segments into events, and the per-model objects that open them.

A format is built once per model (it may read the vocabulary and refuse it) and opens one stage per stream. All that a
stage must remember lives in its `state`, a dataclass of plain values, so that any chunk boundary is a place to stop and
go on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .context import RequestContext
from .events import Event, Segment
from .state import dump, load
from .vocabulary import Vocabulary


@dataclass(slots=True)
class NoState:
    """State of a stage that remembers nothing."""


class Stage:
    """Base of all stages: a state that goes to JSON and back."""

    State: ClassVar[type] = NoState

    def __init__(self) -> None:
        self.state: Any = self.State()

    def snapshot(self) -> dict[str, Any]:
        return dump(self.state)

    def restore(self, data: Mapping[str, Any]) -> None:
        """Raises InvalidSnapshotError if `data` is no snapshot of this kind of stage."""
        self.state = load(self.State, data)


class ReasoningStage(Stage, ABC):
    """First stage: separates the thoughts, hands on everything else as segments, in order.

    `token_count` is the number of tokens in the chunk being fed, those that release no text included.
    """

    token_count: int = 0

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether the answer proper has begun; until then the tool stage is not stepped on empty chunks."""

    @abstractmethod
    def feed(self, segments: Sequence[Segment]) -> list[Event | Segment]:
        """One chunk."""

    def finish(self) -> list[Event | Segment]:
        """End of output: what was held back."""
        return []


class ToolStage(Stage, ABC):
    """Second stage: finds calls in what the reasoning stage handed on."""

    @abstractmethod
    def feed(self, segments: Sequence[Segment]) -> list[Event]:
        """One chunk; `segments` is empty where the chunk released no text."""

    def finish(self) -> list[Event]:
        """End of output: what was held back."""
        return []


class UnifiedStage(Stage, ABC):
    """The only stage of a format that does both jobs at once."""

    @abstractmethod
    def feed(self, segments: Sequence[Segment]) -> list[Event]: ...

    def finish(self) -> list[Event]:
        return []


class Rewriter(Stage, ABC):
    """Last stage of a few formats: changes the reasoning and content that goes out, never arguments."""

    @abstractmethod
    def feed(self, events: Sequence[Event]) -> list[Event]:
        """One chunk."""

    def finish(self) -> list[Event]:
        """End of output: what was held back."""
        return []


@dataclass(slots=True)
class FoundCall:
    """A call as the events of a whole output describe it; `raw` is the model's own argument text."""

    index: int
    name: str
    arguments: str = ""
    raw: str = ""
    id: str | None = None
    malformed: bool = False


@dataclass(slots=True)
class Outcome:
    """The events of a whole output, summed up, before a format's one-shot rules.

    `raw` is the text that went into the tool stage; `malformed` that some markup in it was no call; `called` that the
    format counts the text as calls, so that its content is used even if no call is left; `keeps_blank` that even white
    space beside calls is content; `swapped` that reasoning is the answer. `parameters`: the schemas of the functions on
    offer, by name.
    """

    content: str | None = None
    calls: list[FoundCall] = field(default_factory=list)
    malformed: bool = False
    raw: str = ""
    called: bool = False
    keeps_blank: bool = False
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    swapped: bool = False


class Format:
    """Base of the per-model objects.

    `names` are the names it is registered under; `marks` the token IDs its stages want to see, with their spelling;
    `engine_based` whether vLLM builds it on its marker machine, which decides what an answer without calls shows
    (engine 1.2).
    """

    names: ClassVar[tuple[str, ...]] = ()
    engine_based: bool = False

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Raises ParserConfigurationError if the tokenizer lacks what the format needs."""
        self.vocabulary = vocabulary
        self.marks: Mapping[int, str] = {}

    @classmethod
    def tool_names(cls) -> tuple[str, ...]:
        """The names it has as a tool parser."""
        return cls.names

    @classmethod
    def reasoning_names(cls) -> tuple[str, ...]:
        """The names it has as a reasoning parser."""
        return cls.names


class ReasoningFormat(Format, ABC):
    """A reasoning parser. `keeps_empty`: an output without text is an empty answer, not an absent one."""

    keeps_empty: ClassVar[bool] = False

    @abstractmethod
    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> ReasoningStage | None:
        """A stage for one stream; None where this request has no reasoning to separate.

        Raises UnsupportedRequestError if the request asks for what the tokenizer cannot express.
        """

    def rewriter(self) -> Rewriter | None:
        """A last stage for one stream, for formats that change the text itself."""
        return None


class ToolFormat(Format, ABC):
    """A tool parser.

    `guided_choice`: for "required" and named choices the model is expected to write plain JSON instead of the format
    (engine 1.5). `merges_entries`: name and arguments of one chunk travel in one tool-call entry. `types_entries`:
    every entry says that it is a function's. `cut_calls_count`: a stream whose only call was cut says that it made
    calls.
    """

    guided_choice: ClassVar[bool] = False
    merges_entries: ClassVar[bool] = False
    types_entries: bool = False
    cut_calls_count: ClassVar[bool] = True

    @abstractmethod
    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        """A stage for one stream; `with_reasoning`: a reasoning parser is configured beside it."""

    def settle(self, outcome: Outcome) -> None:
        """One-shot rules: changes `outcome` where the whole text allows a better answer than a stream could give."""
        outcome.calls = [call for call in outcome.calls if not call.malformed]
        outcome.called = bool(outcome.calls)

    def call_id(self, context: RequestContext, call: FoundCall, *, streaming: bool) -> str:
        """The ID of a call that brought none of its own."""
        return context.call_id(call.index)


class UnifiedFormat(Format, ABC):
    """A format whose reasoning and tool parsers are one machine.

    `tools` and `reasoning` say which of them is configured.
    """

    merges_entries: ClassVar[bool] = False

    def __init__(self, vocabulary: Vocabulary, *, tools: bool, reasoning: bool) -> None:
        super().__init__(vocabulary)
        self.tools = tools
        self.reasoning = reasoning

    @classmethod
    def claims(cls, vocabulary: Vocabulary) -> bool:
        """Whether models with this vocabulary are always parsed by this format, named or not."""
        return False

    @abstractmethod
    def open(self, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> UnifiedStage: ...

    def settle(self, outcome: Outcome) -> None:
        outcome.calls = [call for call in outcome.calls if not call.malformed]
        outcome.called = True

    def call_id(self, context: RequestContext, call: FoundCall, *, streaming: bool) -> str:
        return context.call_id(call.index)
