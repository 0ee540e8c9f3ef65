"""System checks of `settings.DERENDER`; `manage.py check` and every start run them."""

import os
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from derender_api.authorization import lets_everyone_in
from derender_api.conf import DerenderSettings
from derender_api.model_sources import configured_models
from parsers.configuration import ModelConfigurationError

KNOWN_KEYS = frozenset(name.upper() for name in vars(DerenderSettings) if not name.startswith("_")) | {
    "MODEL_VALIDATORS",
    "MODEL_INSPECTOR",
}
POSITIVE_INTEGERS = ("MAX_BODY_BYTES", "MAX_N_SEQUENCES", "MAX_STOP_STRINGS", "MAX_COMPLETION_PROMPTS")


@register
def check_settings(*, app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """E001 unknown keys, E002 limits that are not positive integers, E003 models that cannot be served."""
    given = getattr(settings, "DERENDER", {})
    messages: list[CheckMessage] = [
        Error(
            f"settings.DERENDER has an unknown key {key!r}.",
            hint=f"Known keys: {', '.join(sorted(KNOWN_KEYS))}.",
            id="derender_api.E001",
        )
        for key in sorted(set(given) - KNOWN_KEYS)
    ]
    messages += [
        Error(
            f"settings.DERENDER[{key!r}] must be a positive integer.",
            hint="Set it, or the environment variable DERENDER_" + key + ", to a number above 0.",
            id="derender_api.E002",
        )
        for key in POSITIVE_INTEGERS
        if key in given and not (isinstance(given[key], int) and given[key] > 0)
    ]
    try:
        configured_models()
    except ModelConfigurationError as exc:
        messages.append(
            Error(str(exc), hint="Correct the file or settings.DERENDER['MODELS'].", id="derender_api.E003")
        )
    return messages


@register(deploy=True)
def check_deployment(*, app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W001: everyone who reaches the port may use the service; W002: a restart ends stream states and sessions."""
    messages: list[CheckMessage] = []
    if lets_everyone_in():
        hint = "Make one (manage.py create_api_key NAME), or set DERENDER_API_KEY or DERENDER_REQUIRE_API_KEYS."
        messages.append(Warning("No API key is set.", hint=hint, id="derender_api.W001"))
    if not settings.ENVIRONMENT.secret_key:
        hint = "Set DERENDER_SECRET_KEY: the one made up at every start is unknown to other servers and the next start."
        messages.append(Warning("No secret key is set.", hint=hint, id="derender_api.W002"))
    return messages


@register
def check_variables(*, app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W003: a variable of the environment that looks like a setting and is none; most often a slip of the pen."""
    known = settings.ENVIRONMENT.variables()
    unknown = sorted(name for name in os.environ if name.startswith("DERENDER_") and name not in known)
    return [
        Warning(
            f"The environment variable {name} is no setting.",
            hint=f"Did you mean {', '.join(meant)}?"
            if (meant := get_close_matches(name, known, cutoff=0.8))
            else "Remove it.",
            id="derender_api.W003",
        )
        for name in unknown
        if not name.startswith("DERENDER_TEST_")
    ]
