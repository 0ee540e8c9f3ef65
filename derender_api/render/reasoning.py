"""Whether a prompt leaves reasoning behind, and whether the engine must keep special tokens for the parsers."""

from collections.abc import Mapping, Sequence
from typing import Any

from derender_api.exceptions import BadRequest
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.render import ChatRenderRequest
from derender_api.render.deepseek.encoder import deepseek_encoder
from derender_api.render.families import is_harmony
from parsers.engine.context import RequestContext
from parsers.engine.exceptions import UnsupportedRequestError
from parsers.engine.stage import UnifiedFormat

TEXT_TOOLS = frozenset(
    {
        "deepseek_v3",
        "deepseek_v31",
        "dots",
        "ernie45",
        "granite-20b-fc",
        "hunyuan_a13b",
        "hy_v3",
        "hy_v4",
        "k2_horizon",
        "llama3_json",
        "llama4_json",
        "llama4_pythonic",
        "minimax_m3",
        "olmo3",
        "openai",
        "phi4_mini_json",
        "pythonic",
        "xlam",
    }
)
"""Tool parsers whose markers are ordinary text."""

TEXT_REASONING = frozenset(
    {
        "deepseek_r1",
        "deepseek_v3",
        "ernie45",
        "granite",
        "holo2",
        "hunyuan_a13b",
        "hy_v3",
        "hy_v4",
        "k2_horizon",
        "minimax_m2_append_think",
        "minimax_m3",
        "olmo3",
        "openai_gptoss",
        "poolside_v1",
        "step3",
        "step5",
    }
)
"""Reasoning parsers whose markers are ordinary text."""

FRAMING_TOOLS = frozenset({"beam", "hf"})
"""Tool parsers that read the framing of every answer, also where the request has no tools."""


EXACT_TEXT = frozenset({"beam", "hf", "kimi_k3"})
"""Parsers for which the engine must not put spaces around special tokens."""

SETTLED: Mapping[str, bool | None] = {
    "beam": True,
    "granite": None,
    "minimax_m2_append_think": False,
    "openai_gptoss": True,
}
"""Reasoning parsers that look at no prompt: what they say of every one."""

HOLO = "holo2"
THOUGHTS = ("<think>", "</think>")


def reasoning_ended(model: LoadedModel, context: RequestContext, token_ids: Sequence[int]) -> bool | None:
    """Whether output begins behind the reasoning; None where the model has no reasoning parser (protocol 10.1).

    Raises BadRequest where the request asks the parser for what it cannot do.
    """
    if not context.include_reasoning:
        return True
    plan, parser = model.plan, model.configuration.reasoning_parser
    if is_harmony(model):
        return True
    if plan is None or not parser:
        return None
    if parser in SETTLED:
        return SETTLED[parser]
    try:
        if plan.unified is not None:
            return _unified_ended(plan.unified, context, token_ids)
        stage = plan.reasoning.open(context, token_ids) if plan.reasoning is not None else None
    except UnsupportedRequestError as error:
        raise BadRequest(str(error)) from error
    last_mark_decides = parser == HOLO or deepseek_encoder(model) is not None
    return stage is None or stage.ended or (last_mark_decides and _closes_thoughts(model, token_ids))


def reasoning_kwargs(model: LoadedModel, kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """Arguments of the engine's reasoning parser: the effective template kwargs; None without a reasoning parser."""
    parser = model.configuration.reasoning_parser
    if not parser and not is_harmony(model):
        return None
    made = dict(kwargs)
    if parser == HOLO and not {"thinking", "enable_thinking"} & made.keys():
        made |= {"thinking": True, "enable_thinking": True}
    return {"chat_template_kwargs": made}


def _unified_ended(unified: UnifiedFormat, context: RequestContext, token_ids: Sequence[int]) -> bool:
    """From the place in which a machine that reads thoughts and calls begins; without places, from the kwargs."""
    place = getattr(unified.open(context, token_ids).state, "place", None)
    if place is not None:
        return bool(place != "think")
    begins_answer = context.template_flag("add_generation_prompt", default=True)
    return not begins_answer or not context.template_flag("enable_thinking", default=True)


def _closes_thoughts(model: LoadedModel, token_ids: Sequence[int]) -> bool:
    """Whether the last mark of thoughts in the prompt is a closing one."""
    opening, closing = (model.tokenizer.token_id(mark) for mark in THOUGHTS)
    return next((each == closing for each in reversed(token_ids) if each in (opening, closing)), False)


def keeps_special_tokens(request: ChatRenderRequest, model: LoadedModel) -> bool:
    """Whether the engine must keep special tokens in its text, which the model's parsers read as markers."""
    tool_parser, reasoning_parser = model.configuration.active_tool_parser, model.configuration.reasoning_parser
    if tool_parser in FRAMING_TOOLS or (reasoning_parser and reasoning_parser not in TEXT_REASONING):
        return True
    if not tool_parser or tool_parser in TEXT_TOOLS:
        return False
    if request.tools and request.tool_choice != "none":
        return True
    plan = model.plan
    return bool(reasoning_parser and plan and plan.tools and plan.tools.engine_based)


def wants_exact_text(model: LoadedModel) -> bool:
    """Whether special tokens that the engine keeps must be spelled without spaces around them."""
    configuration = model.configuration
    return not EXACT_TEXT.isdisjoint({configuration.active_tool_parser, configuration.reasoning_parser})
