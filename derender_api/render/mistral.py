"""Prompts of Mistral's own tokenizers, whose library encodes conversations without a template (protocol 10.1)."""

from collections.abc import Mapping, Sequence
from typing import Any

from derender_api.exceptions import BadRequest
from derender_api.protocol.openai_request import ChatMessage
from derender_api.render.conversation import part_texts, tool_call
from derender_api.tokenization.handle import ChatEncoder

ID_LENGTH = 9
"""Call IDs have so many characters; of longer ones the last count."""
GENERATION_AFTER_ASSISTANT = (
    "Cannot set `add_generation_prompt` to True when the last message is from the assistant. Consider using "
    "`continue_final_message` instead."
)
CONTINUES_NO_ASSISTANT = "Cannot set `continue_final_message` to True when the last message is not from the assistant."
CONTINUES_AND_GENERATES = "Cannot set both `add_generation_prompt` and `continue_final_message` to True."
EMPTY = "Cannot apply chat template to an empty conversation. Provide at least one message."

Message = dict[str, Any]


def mistral_tokens(
    conversation: Sequence[ChatMessage],
    encoder: ChatEncoder,
    *,
    tools: Sequence[Mapping[str, Any]] | None,
    add_generation_prompt: bool,
    continue_final_message: bool,
) -> list[int]:
    """The prompt's token IDs. Raises BadRequest for what the library refuses."""
    if add_generation_prompt and continue_final_message:
        raise BadRequest(CONTINUES_AND_GENERATES)
    messages = [_message(each.model_dump(exclude_unset=True), index) for index, each in enumerate(conversation)]
    if not messages:
        raise BadRequest(EMPTY)
    ends_with_assistant = messages[-1]["role"] == "assistant"
    if continue_final_message and not ends_with_assistant:
        raise BadRequest(CONTINUES_NO_ASSISTANT)
    if add_generation_prompt and ends_with_assistant:
        raise BadRequest(GENERATION_AFTER_ASSISTANT)
    try:
        return encoder.encode(
            messages,
            tools=[_tool(tool["function"]) for tool in tools] if tools else None,
            continue_final_message=continue_final_message,
        )
    except ValueError as error:
        raise BadRequest(str(error)) from error


def _message(sent: Message, index: int) -> Message:
    role = "system" if sent["role"] == "developer" else sent["role"]
    made: Message = {"role": role, "content": _content(sent, index)}
    if role == "assistant":
        calls = sent.get("tool_calls") or ()
        if calls:
            made["tool_calls"] = [_call(call, f"messages.{index}.tool_calls.{n}") for n, call in enumerate(calls)]
            made["content"] = made["content"] or None
    if role == "tool":
        made["tool_call_id"] = _short(sent.get("tool_call_id"))
    return made


def _content(sent: Message, index: int) -> str | list[Message]:
    """Text as it is, parts as chunks; thoughts are a chunk in front."""
    content = sent.get("content")
    thoughts = sent.get("reasoning") or sent.get("reasoning_content")
    thoughts = thoughts if sent["role"] == "assistant" and isinstance(thoughts, str) else None
    texts = part_texts(content, index)
    if not thoughts and not isinstance(content, list):
        return "".join(texts)
    chunks = [_thinking(thoughts)] if thoughts else []
    for part, text in zip(content if isinstance(content, list) else texts, texts, strict=True):
        is_thought = isinstance(part, dict) and part.get("type") == "thinking"
        chunks.append(_thinking(text) if is_thought else {"type": "text", "text": text})
    return chunks


def _thinking(text: str) -> Message:
    return {"type": "thinking", "thinking": text}


def _call(call: Message, place: str) -> Message:
    made = tool_call(call, place)
    return {**made, "id": _short(made["id"])}


def _short(call_id: Any) -> str | None:
    return call_id[-ID_LENGTH:] if isinstance(call_id, str) else None


def _tool(function: Mapping[str, Any]) -> Message:
    return {
        "type": "function",
        "function": {
            "name": function["name"],
            "description": function["description"] or "",
            "parameters": function["parameters"] or {},
        },
    }
