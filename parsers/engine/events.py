"""The whole vocabulary of the core: what goes into a stage (segments) and what comes out of it (events).

Segments are the text of a chunk cut at the tokens a stage asked to see; events say what the text means.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """Ordinary text, in code points; may be empty.

    `answer`: a reasoning stage knows that it is the answer itself, so that no markup is to be looked for in it.
    """

    text: str
    answer: bool = False


@dataclass(frozen=True, slots=True)
class Token:
    """A whole token that some stage asked to see by its ID.

    `text` is what the detokenizer released for it: its spelling, or "" for a stop token whose text was cut.
    """

    token_id: int
    text: str


Segment = Text | Token


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Text of the model's thoughts. "" is meaningful: some formats send it where nothing was released.

    `late`: it came long ago, and only the end of output tells that it counts; one-shot answers give it, streams do not.
    """

    text: str
    late: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """Text of the answer. "" is meaningful, see `Reasoning`."""

    text: str


@dataclass(frozen=True, slots=True)
class Citation:
    """Code points `start` to `end` of the content or reasoning, `text`, are backed by sources. Only streams show it."""

    start: int
    end: int
    text: str
    type: str


@dataclass(frozen=True, slots=True)
class CallStart:
    """The name of call `index` is known. `id` is the format's own call ID, None for a generated one."""

    index: int
    name: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The next piece of the JSON text of call `index`'s arguments.

    `raw` is what the model wrote for it, where that is not `text`: one-shot answers give it where the text is no JSON.
    `apart`: it goes into an entry of its own even in formats whose entries are merged.
    """

    index: int
    text: str
    raw: str | None = None
    apart: bool = False


@dataclass(frozen=True, slots=True)
class CallEnd:
    """Call `index` is closed. Nothing is sent for it; one-shot answers read it.

    `arguments` replaces the pieces sent before, where only the whole text allows the right answer; `kept` keeps their
    first so many code points and adds `tail` (a cut parameter is left out). `malformed` says that the text between the
    markers was no call, so an answer that was not sent yet may drop it. `redumped`: a one-shot answer dumps the
    arguments anew.
    """

    index: int
    arguments: str | None = None
    malformed: bool = False
    kept: int | None = None
    tail: str = ""
    redumped: bool = False


@dataclass(frozen=True, slots=True)
class Malformed:
    """The markup seen so far is no call of this format, although no call was announced for it."""


@dataclass(frozen=True, slots=True)
class ReasoningRetracted:
    """Reasoning begins here, be it empty; what came before was none.

    What was sent stays sent; one-shot answers drop it.
    """


@dataclass(frozen=True, slots=True)
class ReasoningIsAnswer:
    """The output held nothing but reasoning, and the request wants an answer: one-shot answers swap the two.

    `repeated`: the reasoning was handed on as content, too, so that they only drop it.
    """

    repeated: bool = False


Event = (
    Reasoning
    | Content
    | Citation
    | CallStart
    | CallArguments
    | CallEnd
    | Malformed
    | ReasoningRetracted
    | ReasoningIsAnswer
)
