"""Messages of a request as chat templates get them (protocol 10.1).

Tool-call arguments become objects, text parts one text (or a list, where the template loops over it), reasoning appears
under both of its names. Templates without a developer role get one system message made of all instructions.
"""

import json
from collections.abc import Sequence
from typing import Any

from derender_api.exceptions import BadRequest, InvalidBody
from derender_api.protocol.openai_request import ChatMessage

Message = dict[str, Any]

TEXT_KEYS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal", "thinking": "thinking"}
"""Kinds of parts that are text, with the key that holds it."""
ROLES_WITHOUT_CONTENT = frozenset({"assistant", "function"})
INSTRUCTIONS = frozenset({"system", "developer"})


def template_messages(messages: Sequence[ChatMessage], *, wants_parts: bool, knows_developer: bool) -> list[Message]:
    """The messages for a template. Raises BadRequest or InvalidBody for what no text template can show."""
    sent = [message.model_dump(exclude_unset=True) for message in messages]
    if not knows_developer and any(message["role"] == "developer" for message in sent):
        sent = _with_one_system_message(sent)
    return [_template_message(message, index, wants_parts=wants_parts) for index, message in enumerate(sent)]


def _with_one_system_message(messages: Sequence[Message]) -> list[Message]:
    """The messages with all instructions in front, as one system message."""
    instructions = [(index, each) for index, each in enumerate(messages) if each["role"] in INSTRUCTIONS]
    others = [each for each in messages if each["role"] not in INSTRUCTIONS]
    if len(instructions) == 1 and instructions[0][0] == 0:
        return [{**instructions[0][1], "role": "system"}, *others]
    texts = ["\n".join(part_texts(each.get("content"), index)) for index, each in instructions]
    return [{"role": "system", "content": _Whole("\n\n".join(filter(None, texts)))}, *others]


class _Whole(str):
    """A text that stays one where templates get lists of parts."""


def _template_message(message: Message, index: int, *, wants_parts: bool) -> Message:
    role, content = message["role"], message.get("content")
    if content is None and "content" in message and role not in ROLES_WITHOUT_CONTENT:
        raise InvalidBody(
            f"1 validation error:\n  body.messages.{index}.content: Input should be text or a list of parts, got null",
            param=f"body.messages.{index}.content",
        )
    texts = part_texts(content, index)
    as_parts = wants_parts and role != "tool" and not isinstance(content, _Whole)
    made: Message = {
        "role": role,
        "content": [{"type": "text", "text": text} for text in texts] if as_parts else "\n".join(filter(None, texts)),
    }
    if role == "assistant":
        made |= _assistant_fields(message, index)
    if role == "tool" and message.get("tool_call_id") is not None:
        made["tool_call_id"] = message["tool_call_id"]
    if isinstance(message.get("name"), str):
        made["name"] = message["name"]
    if role == "developer":
        made["tools"] = message.get("tools")
    return made


def _assistant_fields(message: Message, index: int) -> Message:
    fields: Message = {}
    if calls := message.get("tool_calls"):
        fields["tool_calls"] = [tool_call(call, f"messages.{index}.tool_calls.{n}") for n, call in enumerate(calls)]
    reasoning = message.get("reasoning")
    if reasoning is None:
        reasoning = message.get("reasoning_content")
    if reasoning is not None:
        fields |= {"reasoning": reasoning, "reasoning_content": reasoning}
    return fields


def tool_call(call: Message, place: str) -> Message:
    """A tool call with its arguments as an object; what is no JSON object becomes an empty one.

    Raises BadRequest or InvalidBody, which names `place`.
    """
    if call.get("type") not in (None, "function"):
        raise BadRequest(
            "chat completions only support assistant tool_calls of type 'function'. (parameter=tool_calls)",
            param="tool_calls",
        )
    function = call.get("function")
    for key, value in (("type", call.get("type")), ("id", call.get("id")), ("function", function)):
        if value is None:
            raise _invalid(f"{place}.{key}", "Field required")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise _invalid(f"{place}.function.name", "Input should be a valid string")
    if not isinstance(function.get("arguments"), str):
        raise _invalid(f"{place}.function.arguments", "Input should be a valid string")
    return {
        "id": call["id"],
        "function": {"arguments": _object(function["arguments"]), "name": function["name"]},
        "type": "function",
    }


def _object(arguments: str) -> dict[str, Any]:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def part_texts(content: Any, index: int) -> list[str]:
    """The text of every part of message `index`. Raises BadRequest for a part that is none."""
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    return [_text(part, f"messages[{index}].content[{number}]") for number, part in enumerate(content)]


def _text(part: Any, place: str) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type")
    key = TEXT_KEYS.get(kind) if isinstance(kind, str) else None
    if key is not None:
        if isinstance(part.get(key), str):
            return str(part[key])
        raise BadRequest(f"{place} is a part of type '{kind}' without '{key}'.")
    shown = f"of type '{kind}'" if kind is not None else f"with the keys {', '.join(map(str, part)) or '(none)'}"
    raise BadRequest(
        f"{place} is a part {shown}, which cannot be rendered: model is not a multimodal model, only text parts "
        f"({', '.join(TEXT_KEYS)}) are."
    )


def _invalid(place: str, problem: str) -> InvalidBody:
    return InvalidBody(f"1 validation error:\n  body.{place}: {problem}", param=f"body.{place}")
