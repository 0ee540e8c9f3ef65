"""Which grammar the calls of each tool parser have."""

from collections.abc import Mapping

from derender_api.loaded_model import LoadedModel
from derender_api.render.grammars.base import CallGrammar
from derender_api.render.grammars.harmony import HARMONY
from derender_api.render.grammars.kimi_k3 import KIMI_K3
from derender_api.render.grammars.pairs import GLM, LING3, HyCalls
from derender_api.render.grammars.plain import HERMES, LLAMA, LONGCAT, MIMO, QWEN_XML
from derender_api.render.grammars.sections import (
    DEEPSEEK_V3,
    DEEPSEEK_V4,
    DEEPSEEK_V31,
    DEEPSEEK_V32,
    DEEPSEEK_V41,
    KIMI_K2,
    MINIMAX_M2,
    PLAMO3,
)

GRAMMARS: Mapping[str, CallGrammar] = {
    "deepseek_v3": DEEPSEEK_V3,
    "deepseek_v31": DEEPSEEK_V31,
    "deepseek_v32": DEEPSEEK_V32,
    "deepseek_v4": DEEPSEEK_V4,
    "deepseek_v41": DEEPSEEK_V41,
    "glm45": GLM,
    "glm47": GLM,
    "hermes": HERMES,
    "kimi_k2": KIMI_K2,
    "kimi_k3": KIMI_K3,
    "ling3": LING3,
    "llama3_json": LLAMA,
    "llama4_json": LLAMA,
    "longcat": LONGCAT,
    "mimo": MIMO,
    "minimax_m2": MINIMAX_M2,
    "openai": HARMONY,
    "plamo3": PLAMO3,
    "qwen3_coder": QWEN_XML,
    "qwen3_json": HERMES,
    "qwen3_xml": QWEN_XML,
    "step3p5": QWEN_XML,
    "step5": QWEN_XML,
}
HY_V4 = "hy_v4"
HY_SUFFIX = ":6124c78e"


def call_grammar(parser: str, model: LoadedModel) -> CallGrammar | None:
    """The grammar of a parser's calls, None where it has none."""
    if parser == HY_V4:
        is_suffixed = model.tokenizer.token_id(f"<tool_calls{HY_SUFFIX}>") is not None
        return HyCalls(HY_SUFFIX if is_suffixed else "")
    return GRAMMARS.get(parser)
