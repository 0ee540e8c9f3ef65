"""Families of models whose prompts are not made with a chat template."""

from derender_api.loaded_model import LoadedModel

HARMONY_MODEL = "gpt_oss"


def is_harmony(model: LoadedModel) -> bool:
    """Whether the model speaks Harmony, which is rendered without its template."""
    return model.tokenizer.model_type == HARMONY_MODEL
