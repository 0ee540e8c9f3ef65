"""Finding tokenizer folders, and putting together those that come from packages."""

import io
import json
import subprocess
import tarfile
import zipfile

import pytest

from derender_api.parity import tokenizers
from derender_api.parity.tokenizers import TokenizerMissing, locate

TOKENIZER = {"added_tokens": [{"id": 5, "content": "<spare>", "special": True}]}


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr(tokenizers, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


def write_source(folder, **source):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "source.json").write_text(json.dumps({"files": {"tokenizer.json": "models/tokenizer.json"}, **source}))


def pack(monkeypatch, *, wheel):
    """Makes the package manager put an archive into its working folder; returns its command lines."""
    commands = []

    def run(command, *, cwd, **more):
        commands.append(command)
        content = json.dumps(TOKENIZER).encode()
        if wheel:
            with zipfile.ZipFile(cwd / "package.whl", "w") as archive:
                archive.writestr("models/tokenizer.json", content)
        else:
            with tarfile.open(cwd / "package.tgz", "w:gz") as archive:
                member = tarfile.TarInfo("package/models/tokenizer.json")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_the_first_root_that_has_the_folder_wins(tmp_path):
    for root in ("one", "two"):
        (tmp_path / root / "tokenizers" / "x").mkdir(parents=True)
    (tmp_path / "two" / "tokenizers" / "x" / "tokenizer.json").write_text("{}")
    assert locate("tokenizers/x", roots=[tmp_path / "one", tmp_path / "two"]) == tmp_path / "two" / "tokenizers" / "x"


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(TokenizerMissing, match="no folder tokenizers/x below"):
        locate("tokenizers/x", roots=[tmp_path])


@pytest.mark.parametrize(("key", "name", "wheel"), [("npm", "@scope/x@1.0.0", False), ("pypi", "x==1.0.0", True)])
def test_a_tokenizer_from_a_package_is_put_together_once(monkeypatch, tmp_path, cache, key, name, wheel):
    write_source(tmp_path / "x", **{key: name}, added_tokens={"5": {"content": "<think>", "special": False}})
    commands = pack(monkeypatch, wheel=wheel)
    for _ in range(2):
        assert locate("x", roots=[tmp_path]) == cache / "x"
    assert len(commands) == 1
    assert commands[0][-1] == name
    made = json.loads((cache / "x" / "tokenizer.json").read_text())
    assert made == {"added_tokens": [{"id": 5, "content": "<think>", "special": False}]}
    assert sorted(each.name for each in (cache / "x").iterdir()) == ["config.json", "tokenizer.json"]


def test_a_package_that_cannot_be_had_is_an_error(monkeypatch, tmp_path, cache):
    write_source(tmp_path / "x", npm="@scope/x@1.0.0")

    def run(command, **more):
        raise FileNotFoundError(command[0])

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(TokenizerMissing, match=r"the package @scope/x@1\.0\.0 cannot be fetched"):
        locate("x", roots=[tmp_path])
