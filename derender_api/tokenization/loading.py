"""Finds the tokenizer of a folder or hub ID and chooses the library that reads it."""

from pathlib import Path

from derender_api.tokenization.fast import is_readable_alone, load_fast
from derender_api.tokenization.files import read_facts
from derender_api.tokenization.handle import ModelFacts, TokenizerHandle
from derender_api.tokenization.hugging_face import load_with_transformers
from derender_api.tokenization.mistral import load_mistral, mistral_file
from parsers.configuration import ModelConfigurationError

DOWNLOADED = ("*.json", "*.jinja", "*.model", "*.model.v*", "*.tiktoken", "*.txt", "tokenization_*.py")

TOKENIZER_FILES = ("tokenizer*.json", "tekken.json", "*.model", "*.model.v*", "vocab.*", "*.tiktoken")


class TokenizerError(ModelConfigurationError):
    """A tokenizer that cannot be loaded. The operator's fault; the text names the flag and the cure."""


def load_tokenizer(
    path: str, *, revision: str | None = None, mode: str = "auto", flag: str = "--tokenizer"
) -> TokenizerHandle:
    """Load the tokenizer of a folder or a hub ID.

    `mode` is vLLM's `--tokenizer-mode`: "auto", "hf", "slow" or "mistral". `flag` is where `path` came from, for
    messages. Raises TokenizerError.
    """
    folder = _folder(path, revision, flag=flag)
    if not any(next(folder.glob(pattern), None) for pattern in TOKENIZER_FILES):
        raise TokenizerError(f"{flag} {path}: holds no tokenizer ({', '.join(TOKENIZER_FILES)}); give its folder.")
    try:
        return _load(folder, mode)
    except TokenizerError:
        raise
    except ImportError as error:
        raise TokenizerError(
            f"{flag} {path}: needs {error.name}; install it (pip install 'derender[mistral]')."
        ) from error
    except Exception as error:
        raise TokenizerError(
            f"{flag} {path}: cannot be loaded ({error}); check the folder and --tokenizer-mode."
        ) from error


def load_facts(path: str, *, revision: str | None = None) -> ModelFacts:
    """What the configuration files of a folder or hub ID say about the model. Raises TokenizerError."""
    return read_facts(_folder(path, revision, flag="MODEL"))


def _load(folder: Path, mode: str) -> TokenizerHandle:
    mistral = mistral_file(folder)
    if mode == "mistral" or (mode == "auto" and mistral and not (folder / "tokenizer.json").exists()):
        if mistral is None:
            raise TokenizerError(
                f"--tokenizer-mode mistral: {folder} has neither tekken.json nor tokenizer.model.v*; "
                "use --tokenizer-mode hf."
            )
        return load_mistral(mistral)
    if mode != "slow" and is_readable_alone(folder):
        return load_fast(folder)
    return load_with_transformers(folder, use_fast=mode != "slow")


def _folder(path: str, revision: str | None, *, flag: str) -> Path:
    """`path` itself if it is a folder, else the files of that hub ID, downloaded or from the hub's cache."""
    folder = Path(path).expanduser()
    if folder.is_dir():
        return folder
    if path.startswith(("/", ".", "~")) or path.count("/") > 1:
        raise TokenizerError(f"{flag} {path}: there is no such folder.")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(path, revision=revision, allow_patterns=list(DOWNLOADED)))
    except Exception as error:
        raise TokenizerError(
            f"{flag} {path}: not a folder, and the hub does not give it ({error}); "
            "check the name, --revision and the network."
        ) from error
