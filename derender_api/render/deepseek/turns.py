"""Messages as DeepSeek's prompts have them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from derender_api.exceptions import BadRequest
from derender_api.protocol.openai_request import ChatMessage
from derender_api.render.conversation import part_texts, template_messages

Tools = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message. `call_id` is the call that a tool answers, `only_results` whether a user's is made of answers."""

    role: str
    text: str = ""
    reasoning: str = ""
    calls: tuple[Mapping[str, Any], ...] = ()
    tools: Tools = ()
    call_id: str = ""
    only_results: bool = False

    def shown(self) -> str:
        """The message as errors show it."""
        return str({"role": self.role, "content": self.text})


def turns_of(
    messages: Sequence[ChatMessage], *, between_parts: str, between_results: str, drops_empty: bool = False
) -> list[Turn]:
    """The turns. What stands between the parts of a message, and of a tool's; whether empty parts count.

    Raises BadRequest or InvalidBody.
    """
    made = template_messages(messages, wants_parts=False, knows_developer=True)
    turns = []
    for index, (message, sent) in enumerate(zip(made, messages, strict=True)):
        texts = part_texts(sent.content, index)
        between = between_results if sent.role == "tool" else between_parts
        turns.append(
            Turn(
                role=message["role"],
                text=between.join(filter(None, texts) if drops_empty else texts),
                reasoning=_text(message.get("reasoning")),
                calls=tuple(message.get("tool_calls") or ()),
                tools=_tools(message.get("tools"), index),
                call_id=_text(message.get("tool_call_id")),
            )
        )
    return turns


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _tools(value: Any, index: int) -> Tools:
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(it, dict) and isinstance(it.get("function"), dict) for it in value):
        return value
    raise BadRequest(f"messages[{index}].tools must be a list of functions.")


def check_instructions(turn: Turn, place: int) -> None:
    """Raise BadRequest for a developer message without text."""
    if not turn.text:
        raise BadRequest(f"messages[{place}] is an empty developer message, which DeepSeek's format does not have.")


def schemas(tools: Tools) -> str:
    """The functions, one in JSON a line."""
    return "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in tools)


def calls_block(calls: Sequence[Mapping[str, Any]], *, mark: str, name: str) -> str:
    """The block of an assistant's calls, empty without any. `mark` begins each of its tags."""
    if not calls:
        return ""
    invocations = "\n".join(_invocation(call["function"], mark) for call in calls)
    return f"\n\n<{mark}{name}>\n{invocations}\n</{mark}{name}>"


def _invocation(function: Mapping[str, Any], mark: str) -> str:
    parameters = "\n".join(_parameter(name, value, mark) for name, value in function["arguments"].items())
    return f'<{mark}invoke name="{function["name"]}">\n{parameters}\n</{mark}invoke>'


def _parameter(name: str, value: Any, mark: str) -> str:
    is_text = isinstance(value, str)
    text = value if is_text else json.dumps(value, ensure_ascii=False)
    return f'<{mark}parameter name="{name}" string="{str(is_text).lower()}">{text}</{mark}parameter>'
