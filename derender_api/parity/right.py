"""The right answers of right.jsonl: what a user of a public bug report should have got.

Texts are compared without white space at their ends, arguments as JSON. The file was written for people and holds a few
remarks in place of values; each kind of remark has one reading here.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from derender_api.parity.answers import Answer, is_json

_QUOTED_OR_NULL = re.compile(r'"(?P<text>.*)" or null\b.*', re.DOTALL)
_MARKUP = re.compile(r"[<{\[]\S")


@dataclass(frozen=True, slots=True)
class RightAnswer:
    """The judgement on one report. `value` is the answer, or a remark about an HTTP exchange (a string)."""

    id: str
    source: str
    why: str
    vllm_oneshot: str
    vllm_stream: str
    value: Mapping[str, Any] | str

    def accepts(self, answer: Answer | None) -> bool:
        """Whether `answer` says what is right. A refusal (None) never is."""
        if answer is None or isinstance(self.value, str):
            return False
        return (
            _accepts_text(self.value["reasoning"], answer.reasoning)
            and _accepts_text(self.value["content"], answer.content)
            and _accepts_calls(self.value["tool_calls"], answer.calls)
            and _accepts_finish(self.value["finish_reason"], answer)
        )

    @property
    def is_answer(self) -> bool:
        """Whether the judgement is about an answer rather than about an HTTP exchange."""
        return not isinstance(self.value, str)


def right_answer(value: Mapping[str, Any]) -> RightAnswer:
    """One line of right.jsonl."""
    return RightAnswer(
        id=value["id"],
        source=value["source"],
        why=value["why"],
        vllm_oneshot=value["vllm_oneshot"],
        vllm_stream=value["vllm_stream"],
        value=value["right"],
    )


def _accepts_text(right: str | None, text: str | None) -> bool:
    """A remark in parentheses accepts any text; `"x" or null` accepts both; `the prose ...` text without markup."""
    text = (text or "").strip()
    if right is None:
        return not text
    if right.startswith("(") and right.endswith(")"):
        return True
    quoted = _QUOTED_OR_NULL.fullmatch(right)
    if quoted:
        return text in ("", quoted["text"].strip())
    if right.startswith("the prose"):
        return not _MARKUP.search(text) and (bool(text) or right.endswith("or null"))
    return text == right.strip()


def _accepts_calls(right: Any, calls: tuple[tuple[str, str], ...]) -> bool:
    """`(any)` accepts all; `(none, or one that is visibly incomplete)` no call whose arguments are whole JSON."""
    if right == "(any)":
        return True
    if isinstance(right, str):
        return len(calls) <= 1 and not any(is_json(arguments) for _, arguments in calls)
    wanted = [(call["name"], call["arguments"]) for call in right]
    return len(wanted) == len(calls) and all(
        name == given and (arguments == text or (is_json(text) and json.loads(text) == arguments))
        for (name, arguments), (given, text) in zip(wanted, calls, strict=True)
    )


def _accepts_finish(right: str, answer: Answer) -> bool:
    if right.startswith("("):
        return answer.finish_reason == ("tool_calls" if answer.calls else "stop")
    return answer.finish_reason == right
