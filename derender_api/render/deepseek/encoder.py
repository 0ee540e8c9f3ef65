"""Which DeepSeek models are rendered without a template, and how."""

from collections.abc import Callable, Mapping
from functools import partial

from derender_api.loaded_model import LoadedModel
from derender_api.render.deepseek.v4 import V4, V41, v4_text
from derender_api.render.deepseek.v32 import v32_text

Encoder = Callable[..., str]

ENCODERS: Mapping[str, Encoder] = {
    "deepseek_v32": v32_text,
    "deepseek_v4": partial(v4_text, dialect=V4),
    "deepseek_v41": partial(v4_text, dialect=V41),
}
ARCHITECTURES = {
    "DeepseekV32ForCausalLM": "deepseek_v32",
    "DeepseekV4ForCausalLM": "deepseek_v4",
    "DeepseekV41ForCausalLM": "deepseek_v41",
}
"""Architectures whose models have an encoder in the mode `auto`."""


def deepseek_encoder(model: LoadedModel) -> Encoder | None:
    """What writes the model's prompts (messages; tools and kwargs by keyword), None for a chat template."""
    mode: str | None = model.configuration.tokenizer_mode
    if mode == "auto":
        mode = ARCHITECTURES.get(model.tokenizer.facts.architecture)
    return ENCODERS.get(mode) if mode else None
