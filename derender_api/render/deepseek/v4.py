"""Prompts of DeepSeek V4 and V4.1.

<BOS>Reasoning Effort: ...<|User|>hi<|Assistant|></think>Hello<EOS><|User|>weather?<|Assistant|><think>

Answers of tools are parts of the user's message. Thoughts in front of the last user message are forgotten, and
developer messages with them, unless there are tools or `drop_thinking` is false.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from derender_api.exceptions import BadRequest
from derender_api.protocol.openai_request import ChatMessage
from derender_api.render.deepseek.texts import (
    ASSISTANT,
    BEGIN,
    END,
    HIGH_EFFORT,
    MARK,
    MAX_EFFORT,
    NUMBERED_EFFORT,
    REMINDER,
    SYSTEM,
    THINK,
    THOUGHT,
    TOOLS_V4,
    USER,
)
from derender_api.render.deepseek.turns import Tools, Turn, calls_block, check_instructions, schemas, turns_of

NO_SUCH_EFFORT = (
    "DeepSeek V4.1 reasoning_effort must be low, high, xhigh, max, or an integer within [1, 100] "
    "in chat_template_kwargs"
)
NUMBERS = {None: 75, "none": 0, "low": 50, "high": 75, "xhigh": 75, "max": 100}
ASKING = frozenset({"user", "developer"})
SAID_BY_USERS = frozenset({"user", "tool"})


@dataclass(frozen=True, slots=True)
class Dialect:
    """In what V4 and V4.1 differ.

    `mark` begins tags, `calls` is the name of the block of calls, `opening` begins system messages, `reminds` allows
    reminders. `results_are_asked`: answers of tools count as the last user message; `between_results` stands between
    the parts of one. `effort` is the text that a reasoning effort puts in front.
    """

    mark: str
    calls: str
    opening: str
    reminds: bool
    results_are_asked: bool
    between_results: str
    effort: Callable[[Any], str]


def v4_effort(effort: Any) -> str:
    """V4 has three efforts."""
    if effort in ("minimal", "low", "medium"):
        return ""
    return MAX_EFFORT if effort == "max" else HIGH_EFFORT


def v41_effort(effort: Any) -> str:
    """V4.1 has numbers. Raises BadRequest for other ones."""
    number = NUMBERS.get(effort) if effort is None or isinstance(effort, str) else effort
    if type(number) is not int or not (1 <= number <= 100 or effort == "none"):
        raise BadRequest(NO_SUCH_EFFORT)
    return NUMBERED_EFFORT.format(effort=number)


V4 = Dialect(
    mark=MARK,
    calls="tool_calls",
    opening="",
    reminds=True,
    results_are_asked=True,
    between_results="\n",
    effort=v4_effort,
)
V41 = Dialect(
    mark=MARK + " ",
    calls="calls",
    opening=SYSTEM,
    reminds=False,
    results_are_asked=False,
    between_results="\n\n",
    effort=v41_effort,
)


def v4_text(
    messages: Sequence[ChatMessage], *, tools: Tools | None, kwargs: Mapping[str, Any], dialect: Dialect
) -> str:
    """The prompt. Raises BadRequest for what the format cannot express."""
    turns = turns_of(messages, between_parts="\n\n", between_results=dialect.between_results)
    turns = _merged(_with_tools(turns, tools) if tools else turns)
    effort = kwargs.get("reasoning_effort")
    effort_text = dialect.effort(effort)
    thinks = effort != "none" and _thinks(kwargs)
    drops = thinks and _drops(kwargs) and not any(turn.tools for turn in turns)
    if drops:
        last = _last_asked(turns, dialect)
        turns = [turn for index, turn in enumerate(turns) if index >= last or turn.role != "developer"]
    return _Prompt(turns, dialect, effort=effort_text if thinks else "", thinks=thinks, drops=drops).text()


def _thinks(kwargs: Mapping[str, Any]) -> bool:
    said = [kwargs[key] for key in ("thinking", "enable_thinking") if kwargs.get(key) is not None]
    return any(said) if said else True


def _drops(kwargs: Mapping[str, Any]) -> bool:
    said = kwargs.get("drop_thinking")
    return said is None or bool(said)


def _with_tools(turns: Sequence[Turn], tools: Tools) -> list[Turn]:
    """The first system message has the tools."""
    first = next((index for index, turn in enumerate(turns) if turn.role == "system"), None)
    if first is None:
        return [Turn("system", tools=tools), *turns]
    return [replace(turn, tools=tools) if index == first else turn for index, turn in enumerate(turns)]


def _merged(turns: Sequence[Turn]) -> list[Turn]:
    """What users and tools say in a row becomes one message, answers in the order of the calls."""
    merged: list[Turn] = []
    order: dict[str, int] = {}
    for is_users, group in groupby(turns, key=lambda turn: turn.role in SAID_BY_USERS):
        if not is_users:
            for turn in group:
                merged.append(turn)
                if turn.role == "assistant":
                    order = {str(call["id"]): number for number, call in enumerate(turn.calls)}
            continue
        said = list(group)
        answers = iter(sorted((each for each in said if each.role == "tool"), key=lambda it: order.get(it.call_id, 0)))
        texts = [f"<tool_result>{next(answers).text}</tool_result>" if it.role == "tool" else it.text for it in said]
        merged.append(Turn("user", "\n\n".join(texts), only_results=all(each.role == "tool" for each in said)))
    return merged


def _last_asked(turns: Sequence[Turn], dialect: Dialect) -> int:
    """Index of the last user or developer message, -1 without any."""
    asked = (n for n, turn in enumerate(turns) if turn.role in ASKING and not _goes_on(turns, n, dialect))
    return max(asked, default=-1)


def _goes_on(turns: Sequence[Turn], index: int, dialect: Dialect) -> bool:
    """Whether the assistant goes on behind a message of nothing but answers to its calls."""
    if dialect.results_are_asked or not turns[index].only_results:
        return False
    return index > 0 and turns[index - 1].role == "assistant"


class _Prompt:
    def __init__(self, turns: Sequence[Turn], dialect: Dialect, *, effort: str, thinks: bool, drops: bool) -> None:
        self._turns = turns
        self._dialect = dialect
        self._effort = effort
        self._thinks = thinks
        self._keeps_from = _last_asked(turns, dialect) if drops else -1

    def text(self) -> str:
        opening = ""
        if self._turns and (self._effort or self._turns[0].role == "system"):
            opening = self._dialect.opening + self._effort
        turns = (self._turn(index, turn) + self._answer(index, turn) for index, turn in enumerate(self._turns))
        return BEGIN + opening + "".join(turns)

    def _turn(self, index: int, turn: Turn) -> str:
        match turn.role:
            case "system":
                return (self._dialect.opening if index else "") + turn.text + self._tools(turn.tools)
            case "developer":
                check_instructions(turn, index)
                return USER + turn.text + self._tools(turn.tools)
            case "user":
                return USER + turn.text
            case "assistant":
                thoughts = turn.reasoning + THOUGHT if self._thinks and index > self._keeps_from else ""
                calls = calls_block(turn.calls, mark=self._dialect.mark, name=self._dialect.calls)
                return thoughts + turn.text + calls + END
            case "latest_reminder" if self._dialect.reminds:
                return REMINDER + turn.text
            case role:
                raise BadRequest(f"Invalid role: {role}")

    def _answer(self, index: int, turn: Turn) -> str:
        """Where the assistant's turn begins behind a message."""
        is_asked = turn.role in ASKING or (turn.role == "system" and not (self._dialect.opening and index == 0))
        follows = self._turns[index + 1].role if index + 1 < len(self._turns) else "assistant"
        if not is_asked or follows not in ("assistant", "latest_reminder"):
            return ""
        return ASSISTANT + (THINK if self._thinks and index >= self._keeps_from else THOUGHT)

    def _tools(self, tools: Tools) -> str:
        if not tools:
            return ""
        return TOOLS_V4.format(mark=self._dialect.mark, calls=self._dialect.calls, schemas=schemas(tools))
