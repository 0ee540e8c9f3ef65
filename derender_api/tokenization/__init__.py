"""Tokenizers: loading them from a folder or the hub, and what the rest of the service asks of them.

This package is the only place that imports transformers and mistral-common, and it does so only for the tokenizers
that need them: a tokenizer.json of the generic class is read with the `tokenizers` library alone.
"""

from derender_api.tokenization.handle import ModelFacts, TokenizerHandle
from derender_api.tokenization.loading import TokenizerError, load_facts, load_tokenizer

__all__ = ["ModelFacts", "TokenizerError", "TokenizerHandle", "load_facts", "load_tokenizer"]
