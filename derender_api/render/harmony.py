"""Prompts of gpt-oss models: the Harmony format, written without a chat template, as vLLM does.

<|start|>system<|message|>You are ChatGPT, ...<|end|><|start|>developer<|message|># Instructions

Be terse.<|end|><|start|>user<|message|>Hi<|end|><|start|>assistant

What clients write is text, also where it spells a special token.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from derender_api.conf import conf
from derender_api.exceptions import BadRequest, RequestRuleViolation
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.openai_request import ChatMessage
from derender_api.render.conversation import part_texts, tool_call
from derender_api.render.harmony_tools import tools_section
from derender_api.render.prompt import check_encodable

SYSTEM = """\
You are ChatGPT, a large language model trained by OpenAI.
Knowledge cutoff: 2024-06
Current date: {date}

Reasoning: {effort}

# Valid channels: analysis, commentary, final. Channel must be included for every message."""
CALLS_GO_TO = "\nCalls to these tools must go to the commentary channel: 'functions'."
EFFORTS = ("high", "medium", "low")
INSTRUCTIONS = frozenset({"system", "developer"})
START_OF_MARK = re.compile(r"<\|(?=\w+\|>)")

Part = tuple[str, bool]
"""Text, and whether it is a special token."""
Message = Mapping[str, Any]


def harmony_tokens(
    messages: Sequence[ChatMessage],
    model: LoadedModel,
    *,
    tools: Sequence[Mapping[str, Any]] | None,
    effort: str | None = None,
) -> list[int]:
    """The prompt's token IDs. Raises BadRequest for roles and efforts that Harmony does not have."""
    token_ids: list[int] = []
    for text, is_special in _prompt([each.model_dump(exclude_unset=True) for each in messages], tools or (), effort):
        token_ids += [_special(text, model)] if is_special else _ordinary(text, model)
    return token_ids


def _prompt(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], effort: str | None) -> Iterator[Part]:
    yield from _message("system", _system_text(effort, has_tools=bool(tools)))
    first = messages[0] if messages and messages[0]["role"] in INSTRUCTIONS else None
    instructions = "".join(part_texts(first.get("content"), 0)) if first else ""
    if instructions or tools:
        sections = [f"# Instructions\n\n{instructions}"] if instructions else []
        yield from _message("developer", "\n\n".join([*sections, *([tools_section(tools)] if tools else [])]))
    yield from _conversation(messages, start=1 if first else 0)
    yield "<|start|>", True
    yield "assistant", False


def _system_text(effort: str | None, *, has_tools: bool) -> str:
    if effort == "none":
        raise RequestRuleViolation("Harmony does not support reasoning_effort='none'", param="reasoning_effort")
    if effort is not None and effort not in EFFORTS:
        raise RequestRuleViolation(
            f"reasoning_effort='{effort}' is not supported by Harmony. Supported values are: {', '.join(EFFORTS)}.",
            param="reasoning_effort",
        )
    date = conf.system_start_date or datetime.now().strftime("%Y-%m-%d")
    text = SYSTEM.format(date=date, effort=effort or "medium")
    return text + CALLS_GO_TO if has_tools else text


def _conversation(messages: Sequence[Message], *, start: int) -> Iterator[Part]:
    names = {
        call["id"]: call["function"].get("name", "")
        for message in messages
        if message["role"] == "assistant"
        for call in message.get("tool_calls") or ()
        if isinstance(call.get("id"), str) and isinstance(call.get("function"), Mapping)
    }
    answers = [index for index, message in enumerate(messages) if _is_answer(message)]
    for index in range(start, len(messages)):
        message = messages[index]
        texts = part_texts(message.get("content"), index)
        text = "".join(texts)
        match message["role"]:
            case "assistant":
                thinks = not answers or index > answers[-1]
                yield from _assistant(message, texts, index, keeps_thoughts=thinks)
            case "tool":
                call_id = message.get("tool_call_id")
                name = names.get(call_id, "") if isinstance(call_id, str) else ""
                yield from _message(f"functions.{name}", text, channel="commentary to=assistant")
            case "user":
                yield from _message("user", *texts)
            case "system" | "developer":
                yield from _message("developer", f"# Instructions\n\n{text}")
            case role:
                raise BadRequest(
                    f"messages[{index}].role: Harmony has no role '{role}'; it has 'user', 'assistant', 'system', "
                    "'developer' and 'tool'."
                )


def _is_answer(message: Message) -> bool:
    """Whether a message is an answer to the user; thoughts before the last one are forgotten."""
    return message["role"] == "assistant" and bool(message.get("content")) and not message.get("tool_calls")


def _assistant(message: Message, texts: Sequence[str], index: int, *, keeps_thoughts: bool) -> Iterator[Part]:
    thoughts = message.get("reasoning") or message.get("reasoning_content")
    calls = message.get("tool_calls") or ()
    if keeps_thoughts and isinstance(thoughts, str) and thoughts:
        yield from _message("assistant", thoughts, channel="analysis")
    text = "".join(texts)
    if text and calls:
        yield from _message("assistant", text, channel="commentary")
    elif text:
        yield from _message("assistant", *texts, channel="final")
    for number, call in enumerate(calls):
        name = tool_call(call, f"messages.{index}.tool_calls.{number}")["function"]["name"]
        # What the model wrote, not what it means.
        yield from _message(
            f"assistant to=functions.{name}", call["function"]["arguments"], channel="commentary json", end="<|call|>"
        )


def _message(author: str, *texts: str, channel: str = "", end: str = "<|end|>") -> Iterator[Part]:
    """A message. No token spans two of its texts."""
    yield "<|start|>", True
    yield author, False
    if channel:
        yield "<|channel|>", True
        yield channel, False
    yield "<|message|>", True
    for text in texts:
        yield text, False
    yield end, True


def _special(text: str, model: LoadedModel) -> int:
    token_id = model.tokenizer.token_id(text)
    if token_id is None:
        raise BadRequest(f"The model's tokenizer has no token {text}, without which Harmony cannot be written.")
    return token_id


def _ordinary(text: str, model: LoadedModel) -> list[int]:
    """Token IDs of a text in which no special token is one: each is cut behind `<|`, where words end anyway."""
    check_encodable(text)
    token_ids: list[int] = []
    position = 0
    for found in START_OF_MARK.finditer(text):
        token_ids += model.tokenizer.encode(text[position : found.end()])
        position = found.end()
    return token_ids + model.tokenizer.encode(text[position:])
