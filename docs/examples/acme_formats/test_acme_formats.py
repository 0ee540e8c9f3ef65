"""The formats over whole outputs, over outputs cut at every place, and through snapshots."""

import json
from collections.abc import Iterable, Sequence

import pytest

from parsers.engine.context import RequestContext
from parsers.engine.parser import ParserPlan
from parsers.registry import build_plan

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    },
}
REQUEST = RequestContext(tools=[TOOL], tool_choice="auto", call_id_seed=b"test")


class Letters:
    """A vocabulary in which every character is a token."""

    special_tokens: dict[int, str] = {}
    model_type = chat_template = ""

    def token_id(self, text: str) -> int | None:
        return ord(text) if len(text) == 1 else None

    def encode(self, text: str) -> Sequence[int]:
        return [ord(character) for character in text]

    def extra(self, key: str) -> object:
        return None

    def pieces(self) -> Iterable[str]:
        return map(chr, range(128))

    def decode(self, token_ids: Sequence[int]) -> str:
        return "".join(map(chr, token_ids))


ACME = build_plan(tool_parser="acme", reasoning_parser="acme", vocabulary=Letters())
LINES = build_plan(tool_parser="acme_lines", reasoning_parser=None, vocabulary=Letters())
CASES = [
    (
        ACME,
        '[[thoughts]]They ask.[[answer]]Let me look.[[call get_weather]]{"city": "Paris"}[[end]]',
        ("They ask.", "Let me look.", [("get_weather", {"city": "Paris"})]),
    ),
    (ACME, "[[thoughts]]Easy.[[answer]]Hello [[you]]!", ("Easy.", "Hello [[you]]!", [])),
    (
        ACME,
        '[[answer]][[call get_weather]]{"city": "A"}[[end]][[call get_weather]]{"city": "B"}[[end]]',
        (None, None, [("get_weather", {"city": "A"}), ("get_weather", {"city": "B"})]),
    ),
    (
        LINES,
        "Let me look.\n!get_weather city='New York' days=3\n",
        (None, "Let me look.\n", [("get_weather", {"city": "New York", "days": 3})]),
    ),
    (LINES, "Wow!\n!important\nReally! ", (None, "Wow!\n!important\nReally! ", [])),
]


def whole(plan: ParserPlan, text: str) -> tuple:
    """(reasoning, content, calls) of the one-shot answer."""
    message = plan.open(REQUEST).parse([ord(character) for character in text], list(text))
    return message.reasoning, message.content, [(call.name, json.loads(call.arguments)) for call in message.calls]


def streamed(plan: ParserPlan, text: str, size: int) -> tuple:
    """The sum of the deltas of chunks of `size` tokens; the parser goes through its snapshot before each of them."""
    reasoning = content = ""
    calls: dict[int, list[str]] = {}
    parser = plan.open(REQUEST)
    for start in range(0, len(text), size):
        parser = plan.restore(REQUEST, json.loads(json.dumps(parser.snapshot())))
        chunk = text[start : start + size]
        delta = parser.feed(list(map(ord, chunk)), list(chunk), finished=start + size >= len(text))
        reasoning += delta.reasoning or "" if delta else ""
        content += delta.content or "" if delta else ""
        for call in delta.calls if delta else []:
            entry = calls.setdefault(call.index, ["", ""])
            entry[0] += call.name or ""
            entry[1] += call.arguments or ""
    return reasoning or None, content or None, [(name, json.loads(text)) for name, text in calls.values()]


@pytest.mark.parametrize(("plan", "text", "expected"), CASES)
def test_whole_answers(plan: ParserPlan, text: str, expected: tuple) -> None:
    assert whole(plan, text) == expected


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(("plan", "text", "expected"), CASES)
def test_streams_say_the_same(plan: ParserPlan, text: str, expected: tuple, size: int) -> None:
    assert streamed(plan, text, size) == expected
