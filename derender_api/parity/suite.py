"""Recorded suites: what was sent to vLLM and what it answered, read from a folder.

A suite folder holds profiles.json (the servers) and cases.jsonl.gz (one case a line); tests/data/parity/README.md
describes both files.
"""

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from parsers.configuration import ContentFormat, ModelConfiguration, TokenizerMode

MODEL_NAME = "model"
"""The model name that recorded requests carry unless their profile says otherwise."""

JSON_TYPE = {"content-type": "application/json"}


class SuiteError(Exception):
    """A suite folder, or a file in it, cannot be read: whoever names the folder has to mend it."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One recorded server: a tokenizer folder (relative), parsers, flags, and the day of its prompts."""

    name: str
    tokenizer: str
    model: str = MODEL_NAME
    tool_parser: str | None = None
    reasoning_parser: str | None = None
    enable_auto_tool_choice: bool | None = None
    default_chat_template_kwargs: Mapping[str, Any] | None = None
    max_model_len: int | None = None
    tokenizer_mode: TokenizerMode = "auto"
    chat_template: str | None = None
    chat_template_content_format: ContentFormat = "auto"
    trust_request_chat_template: bool = False
    exclude_tools_when_tool_choice_none: bool = False
    generation_config: str = "auto"
    override_generation_config: Mapping[str, Any] | None = None
    system_date: str | None = None

    def configuration(self, *, folder: Path, name: str | None = None) -> ModelConfiguration:
        """The served model that stands for this profile, with the tokenizer in `folder`.

        Auto tool choice is on wherever a tool parser is, unless the profile says otherwise.
        """
        auto = bool(self.tool_parser) if self.enable_auto_tool_choice is None else self.enable_auto_tool_choice
        return ModelConfiguration(
            name=name or self.model,
            model=str(folder),
            tokenizer_mode=self.tokenizer_mode,
            tool_call_parser=self.tool_parser,
            reasoning_parser=self.reasoning_parser,
            enable_auto_tool_choice=auto,
            default_chat_template_kwargs=dict(self.default_chat_template_kwargs or {}),
            max_model_len=self.max_model_len,
            chat_template=self.chat_template,
            chat_template_content_format=self.chat_template_content_format,
            trust_request_chat_template=self.trust_request_chat_template,
            exclude_tools_when_tool_choice_none=self.exclude_tools_when_tool_choice_none,
            generation_config=self.generation_config,
            override_generation_config=dict(self.override_generation_config or {}),
        )


@dataclass(frozen=True, slots=True)
class RecordedStream:
    """One recorded stream of a case.

    `chunks[i]` is `[delta without null and empty fields, finish_reason]`, or the error body (a mapping) where the
    call was refused; `lens[i]` is the number of tokens in it, 0 for a chunk with the finish reason alone.
    """

    lens: tuple[int, ...]
    status: int
    chunks: list[Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A parser case: one output of a model, answered one-shot and as streams."""

    suite: str
    profile: str
    id: str
    request: dict[str, Any]
    prompt_token_ids: list[int]
    output_token_ids: list[int]
    finish_reason: str | None
    stop_reason: int | str | None
    logprobs: Any
    oneshot: dict[str, Any]
    streams: dict[str, RecordedStream]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One HTTP request and the recorded answer, `body` being JSON or, where it is none, text."""

    method: str
    path: str
    headers: Mapping[str, str]
    sent: bytes
    status: int
    body: Any


@dataclass(frozen=True, slots=True)
class HttpCase:
    """Whole HTTP exchanges, one after the other."""

    suite: str
    profile: str
    id: str
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite folder. `lines` are the undecoded cases of each profile, in file order."""

    name: str
    folder: Path
    profiles: dict[str, Profile]
    lines: dict[str, list[bytes]]
    right: dict[str, dict[str, Any]]


def read_suite(folder: Path) -> Suite:
    """The suite in `folder`. Raises SuiteError where a file is missing, is not JSON, or names an unknown profile."""
    try:
        profiles = {each["name"]: Profile(**each) for each in json.loads((folder / "profiles.json").read_text("utf-8"))}
        with gzip.open(folder / "cases.jsonl.gz", "rb") as file:
            lines: dict[str, list[bytes]] = {name: [] for name in profiles}
            for line in file:
                lines[orjson.loads(line)["profile"]].append(line)
        right = {each["id"]: each for each in _read_lines(folder / "right.jsonl")}
    except KeyError as error:
        raise SuiteError(f"{folder}: a case names the profile {error}, which profiles.json does not hold") from error
    except (OSError, TypeError, ValueError) as error:
        raise SuiteError(f"{folder}: {error}") from error
    return Suite(name=folder.name, folder=folder, profiles=profiles, lines=lines, right=right)


def find_suites(path: Path) -> list[Path]:
    """The suite folders at or directly below `path`, in order. Raises SuiteError where there is none."""
    folders = [each.parent for each in (path / "profiles.json", *sorted(path.glob("*/profiles.json"))) if each.exists()]
    if not folders:
        raise SuiteError(f"{path}: no suite here (a folder with profiles.json and cases.jsonl.gz)")
    return folders


def read_case(line: bytes, *, suite: str) -> Case | HttpCase:
    """One line of cases.jsonl.gz."""
    value = orjson.loads(line)
    if "oneshot" not in value:
        value = json.loads(line)  # integers beyond 64 bits are floats to orjson
        return HttpCase(suite, value["profile"], value["id"], tuple(http_exchanges(value)))
    return Case(
        suite=suite,
        profile=value["profile"],
        id=value["id"],
        request=value["request"],
        prompt_token_ids=value["prompt_token_ids"],
        output_token_ids=value["output_token_ids"],
        finish_reason=value.get("finish_reason", "stop"),
        stop_reason=value.get("stop_reason"),
        logprobs=value.get("logprobs"),
        oneshot=value["oneshot"],
        streams={
            name: RecordedStream(tuple(each["lens"]), each["status"], each["chunks"])
            for name, each in value["streams"].items()
        },
    )


def http_exchanges(value: dict[str, Any]) -> Iterator[Exchange]:
    """The exchanges of an HTTP case; with `answers` null, of one that is yet to be answered (status 0).

    A `post` body that is text was sent as it is, null as no body, both without a content type.
    """
    requests = [
        ("POST", path, {} if body is None or isinstance(body, str) else JSON_TYPE, body)
        for path, body in value.get("post", ())
    ]
    requests += [tuple(each) for each in value.get("raw", ())]
    answers = value["answers"] or [{"status": 0, "body": None}] * len(requests)
    for (method, path, headers, body), answer in zip(requests, answers, strict=True):
        sent = b"" if body is None else body.encode("utf-8", "surrogatepass") if isinstance(body, str) else dumps(body)
        yield Exchange(method, path, headers or {}, sent, answer["status"], answer["body"])


def dumps(value: Any) -> bytes:
    """JSON as a client sends it. Integers beyond 64 bits and lone surrogates survive, which orjson refuses."""
    return json.dumps(value, separators=(",", ":")).encode()


def _read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line] if path.exists() else []
