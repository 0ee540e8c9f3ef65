"""An experiment as a parity case: a profile and a line of a suite, and suites made of saved cases."""

import gzip
import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from derender_api.parity.suite import MODEL_NAME, Profile
from derender_api.workbench.models import SavedCase
from derender_api.workbench.playground.experiment import OWN, Answers, Experiment


def profile_of(experiment: Experiment) -> dict[str, Any]:
    """The entry of profiles.json that stands for the model. The tokenizer is its folder's path on this machine."""
    configuration = experiment.model.configuration
    source = configuration.tokenizer_source
    folder = Path(source).expanduser()
    parsers = f"{configuration.active_tool_parser or ''}+{configuration.reasoning_parser or ''}"
    profile = {
        "name": f"{parsers}@{folder.name}",
        "tokenizer": str(folder.resolve()) if folder.is_dir() else source,
        "tool_parser": configuration.tool_call_parser,
        "reasoning_parser": configuration.reasoning_parser,
        "enable_auto_tool_choice": configuration.enable_auto_tool_choice,
        "default_chat_template_kwargs": dict(configuration.default_chat_template_kwargs) or None,
        "max_model_len": configuration.max_model_len,
        "tokenizer_mode": configuration.tokenizer_mode,
    }
    return {key: value for key, value in profile.items() if value is not None}


def case_of(experiment: Experiment, answers: Answers, *, case_id: str) -> dict[str, Any]:
    """The line of cases.jsonl.gz, with this service's own answers.

    `chunkings` is for `record_parity`, which groups the tokens the same way; own lengths have no name there.
    """
    lens, named = list(experiment.lens), experiment.grouping != OWN
    return {
        "id": case_id,
        "profile": profile_of(experiment)["name"],
        "request": {"model": MODEL_NAME, **experiment.request},
        "prompt_token_ids": list(experiment.prompt_token_ids),
        "output_token_ids": list(experiment.token_ids),
        "finish_reason": experiment.finish_reason,
        "stop_reason": None,
        **({"chunkings": [experiment.grouping]} if named else {}),
        "oneshot": dict(answers.oneshot),
        "streams": {experiment.grouping: {"lens": lens, "status": answers.status, "chunks": list(answers.chunks)}},
    }


def suite_archive(cases: Iterable[SavedCase], *, name: str) -> bytes:
    """A ZIP file with the suite `name`: profiles.json and cases.jsonl.gz."""
    profiles: dict[str, Profile] = {}
    lines = []
    for saved in cases:
        profile = _named_apart(Profile(**saved.profile), profiles)
        profiles[profile.name] = profile
        lines.append(json.dumps({**saved.case, "profile": profile.name}))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/profiles.json", json.dumps([_as_json(each) for each in profiles.values()], indent=1))
        archive.writestr(f"{name}/cases.jsonl.gz", gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    return target.getvalue()


def _named_apart(profile: Profile, known: Mapping[str, Profile]) -> Profile:
    """The profile under a name that no other profile of the suite has."""
    number, wanted = 1, profile
    while wanted.name in known and known[wanted.name] != wanted:
        number += 1
        wanted = replace(profile, name=f"{profile.name}-{number}")
    return wanted


def _as_json(profile: Profile) -> dict[str, Any]:
    names = Profile.__dataclass_fields__
    return {name: value for name in names if (value := getattr(profile, name)) is not None}
