"""A small fake vocabulary and ways to run a parser over it: whole, in any grouping, and across snapshots."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parsers.engine.assembly import Delta, Message
from parsers.engine.context import RequestContext
from parsers.engine.parser import OutputParser, ParserPlan
from parsers.registry import build_plan

FIRST_TEXT_ID = 1000


@dataclass
class FakeVocabulary:
    """Every marker is one token; every other token is a run of up to `run` characters.

    `specials` are the declared special tokens among the markers.
    """

    markers: Sequence[str] = ()
    specials: Sequence[str] = ("<eos>",)
    model_type: str = ""
    chat_template: str = ""
    run: int = 3
    extras: Mapping[str, object] = field(default_factory=dict)
    _texts: list[str] = field(default_factory=list)

    @property
    def _tokens(self) -> list[str]:
        return [*self.specials, *self.markers]

    @property
    def special_tokens(self) -> dict[int, str]:
        return dict(enumerate(self.specials))

    def token_id(self, text: str) -> int | None:
        return self._tokens.index(text) if text in self._tokens else None

    def extra(self, key: str) -> object:
        return self.extras.get(key)

    def encode(self, text: str) -> list[int]:
        tokens = sorted(self._tokens, key=len, reverse=True)
        ids: list[int] = []
        for part in re.split("(" + "|".join(map(re.escape, tokens)) + ")", text) if tokens else [text]:
            if part in tokens:
                ids.append(self._tokens.index(part))
            else:
                ids += [self.text_id(part[at : at + self.run]) for at in range(0, len(part), self.run)]
        return ids

    def text_id(self, text: str) -> int:
        """The ID of an ordinary token; the spelling of a marker is allowed."""
        if text not in self._texts:
            self._texts.append(text)
        return FIRST_TEXT_ID + self._texts.index(text)

    def pieces(self) -> list[str]:
        return [*self._tokens, *self._texts]

    def decode(self, token_ids: Sequence[int]) -> str:
        return "".join(map(self.text, token_ids))

    def spell(self, *texts: str) -> list[int]:
        """IDs of `texts` as ordinary tokens, one each, even where they spell a marker."""
        return [self.text_id(text) for text in texts]

    def text(self, token_id: int) -> str:
        return self._texts[token_id - FIRST_TEXT_ID] if token_id >= FIRST_TEXT_ID else self._tokens[token_id]


def plan_of(vocabulary: FakeVocabulary, *, tools: str | None = None, reasoning: str | None = None) -> ParserPlan:
    plan = build_plan(tool_parser=tools, reasoning_parser=reasoning, vocabulary=vocabulary)
    assert plan is not None
    return plan


def tool(name: str, **properties: Any) -> dict[str, Any]:
    """A request's tool object; `properties` are parameter schemas."""
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


def context_of(*tools: Mapping[str, Any], **fields: Any) -> RequestContext:
    fields.setdefault("tool_choice", "auto" if tools else "none")
    return RequestContext(tools=list(tools) or None, call_id_seed=b"seed", **fields)


def texts_of(vocabulary: FakeVocabulary, ids: Sequence[int], *, cut: bool = True) -> list[str]:
    """Released texts; a final `<eos>` is a stop token whose text is cut."""
    texts = [vocabulary.text(token_id) for token_id in ids]
    if cut and ids and ids[-1] in vocabulary.special_tokens:
        texts[-1] = ""
    return texts


@dataclass
class Runner:
    """Runs one plan and request over outputs written as text."""

    vocabulary: FakeVocabulary
    plan: ParserPlan
    context: RequestContext
    prompt: Sequence[int] | None = None

    def ids(self, output: str | Sequence[int]) -> list[int]:
        return self.vocabulary.encode(output) if isinstance(output, str) else list(output)

    def message(self, output: str | Sequence[int]) -> Message:
        ids = self.ids(output)
        parser = self.plan.open(self.context, prompt_token_ids=self.prompt)
        return parser.parse(ids, texts_of(self.vocabulary, ids))

    def deltas(
        self, output: str | Sequence[int], lens: Sequence[int] | int = 1, *, snapshots: bool = False
    ) -> list[Delta | None]:
        """`lens`: tokens of each chunk, or of every chunk. `snapshots`: through JSON between all chunks."""
        ids = self.ids(output)
        texts = texts_of(self.vocabulary, ids)
        parser = self.plan.open(self.context, prompt_token_ids=self.prompt)
        deltas = []
        for start, end, last in _chunks(len(ids), lens):
            if snapshots:
                parser = self.through_json(parser)
            deltas.append(parser.feed(ids[start:end], texts[start:end], finished=last))
        return deltas

    def chunked(self, *outputs: str) -> list[Delta | None]:
        """A delta for each of `outputs`, which are the chunks."""
        parts = [self.ids(output) for output in outputs]
        return self.deltas([token_id for part in parts for token_id in part], [len(part) for part in parts])

    def through_json(self, parser: OutputParser) -> OutputParser:
        return self.plan.restore(self.context, json.loads(json.dumps(parser.snapshot(), allow_nan=False)))

    def folds(self, output: str | Sequence[int]) -> dict[str, tuple[str, str, tuple[tuple[str, str], ...]]]:
        """Fold of every grouping worth trying, by name; snapshots included."""
        count = len(self.ids(output))
        groupings: dict[str, Sequence[int] | int] = {str(size): size for size in (1, 2, 3, 5, 7)}
        groupings["all"] = [count]
        groupings.update({f"{at}+{count - at}": [at, count - at] for at in range(1, count)})
        folds = {name: fold(self.deltas(output, lens)) for name, lens in groupings.items()}
        folds["snapshots"] = fold(self.deltas(output, 1, snapshots=True))
        return folds


def _chunks(count: int, lens: Sequence[int] | int) -> Iterator[tuple[int, int, bool]]:
    sizes = [min(lens, count - at) for at in range(0, count, lens)] if isinstance(lens, int) else list(lens)
    start = 0
    for position, size in enumerate(sizes or [0]):
        yield start, start + size, position == len(sizes or [0]) - 1
        start += size


def fold(deltas: Iterable[Delta | None]) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    """Sum of deltas: reasoning, content, (name, arguments) of each call."""
    reasoning = content = ""
    calls: dict[int, list[str]] = {}
    for delta in deltas:
        if delta is None:
            continue
        reasoning += delta.reasoning or ""
        content += delta.content or ""
        for entry in delta.calls:
            slot = calls.setdefault(entry.index, ["", ""])
            slot[0] += entry.name or ""
            slot[1] += entry.arguments or ""
    return reasoning, content, tuple((name, arguments) for _, (name, arguments) in sorted(calls.items()))


def summary(message: Message) -> tuple[str | None, str | None, tuple[tuple[str, str], ...]]:
    """What a message says, without IDs."""
    return message.reasoning, message.content, tuple((call.name, call.arguments) for call in message.calls)


def entries(deltas: Iterable[Delta | None]) -> list[list[tuple[int, str | None, str | None]]]:
    """(index, name, arguments) of the tool-call entries of each delta."""
    return [[(c.index, c.name, c.arguments) for c in delta.calls] if delta else [] for delta in deltas]
