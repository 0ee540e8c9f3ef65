"""Prompts of DeepSeek V3.2.

<BOS><|User|>hi<|Assistant|></think>Hello<EOS><|User|>weather?<|Assistant|><think>
"""

from collections.abc import Mapping, Sequence
from typing import Any

from derender_api.exceptions import BadRequest
from derender_api.protocol.openai_request import ChatMessage
from derender_api.render.chat_text import EMPTY
from derender_api.render.deepseek.texts import ASSISTANT, BEGIN, END, MARK, THINK, THOUGHT, TOOLS_V32, USER
from derender_api.render.deepseek.turns import Tools, Turn, calls_block, check_instructions, schemas, turns_of

NO_CALLS = "No tool calls but found tool output"
LOST_INSTRUCTIONS = (
    "messages[{index}]: DeepSeek V3.2 has no place for a developer message in front of the last user message when it "
    "thinks; send a system message."
)
NO_THOUGHTS = "ThinkingMode: thinking, invalid message without reasoning/tool_calls `{message}` after last user message"


def v32_text(messages: Sequence[ChatMessage], *, tools: Tools | None, kwargs: Mapping[str, Any]) -> str:
    """The prompt. Raises BadRequest for what the format cannot express."""
    turns = turns_of(messages, between_parts="\n", between_results="\n", drops_empty=True)
    if not turns:
        raise BadRequest(EMPTY)
    if tools:
        turns.insert(0, Turn("system", tools=tools))
    return _Prompt(turns, thinks=bool(kwargs.get("thinking") or kwargs.get("enable_thinking"))).text()


class _Prompt:
    def __init__(self, turns: Sequence[Turn], *, thinks: bool) -> None:
        self._turns = turns
        self._thinks = thinks
        self._last_user = max((n for n, turn in enumerate(turns) if turn.role in ("user", "developer")), default=-1)

    def text(self) -> str:
        if self._thinks and self._turns[-1].role == "user":
            for index, turn in enumerate(self._turns[: self._last_user]):
                if turn.role == "developer":
                    raise BadRequest(LOST_INSTRUCTIONS.format(index=index))
        return BEGIN + "".join(self._turn(index, turn) for index, turn in enumerate(self._turns))

    def _turn(self, index: int, turn: Turn) -> str:
        match turn.role:
            case "system":
                return _tools(turn.tools) + turn.text
            case "developer":
                check_instructions(turn, index)
                asked = f"{_tools(turn.tools)}\n\n# The user's message is: {turn.text}"
                return f"{USER}{asked}{ASSISTANT}{self._thought(index == self._last_user)}"
            case "user":
                return f"{USER}{turn.text}{ASSISTANT}{self._thought(index == self._last_user)}"
            case "assistant":
                return self._assistant(index, turn)
            case "tool":
                return self._result(index, turn)
            case role:
                raise BadRequest(f"Invalid role: {role}")

    def _thought(self, is_current: bool) -> str:
        return THINK if self._thinks and is_current else THOUGHT

    def _assistant(self, index: int, turn: Turn) -> str:
        thoughts = ""
        if self._thinks and index > self._last_user:
            if not turn.reasoning and not turn.calls:
                raise BadRequest(NO_THOUGHTS.format(message=turn.shown()))
            thoughts = turn.reasoning + THOUGHT
        return thoughts + turn.text + calls_block(turn.calls, mark=MARK, name="function_calls") + END

    def _result(self, index: int, turn: Turn) -> str:
        asked = index - 1
        while asked >= 0 and self._turns[asked].role == "tool":
            asked -= 1
        number = index - asked
        if asked >= 0 and self._turns[asked].role != "assistant":
            raise BadRequest(f"Invalid messages at {index}:\n{self._turns[asked].shown()}")
        if asked < 0 or number > len(self._turns[asked].calls):
            raise BadRequest(NO_CALLS)
        text = ("\n\n<function_results>" if number == 1 else "") + f"\n<result>{turn.text}</result>"
        if number == len(self._turns[asked].calls):
            text += f"\n</function_results>\n\n{self._thought(index > self._last_user)}"
        return text


def _tools(tools: Tools) -> str:
    return TOOLS_V32.format(schemas=schemas(tools)) if tools else ""
