"""What becomes of the rows of the table: asked by the admin page, answered by the HTTP layer above this package.

`settings.DERENDER["MODEL_INSPECTOR"]` names the answering object by dotted path (see parsers.validation for why).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, cast

from django.conf import settings
from django.utils.module_loading import import_string

from parsers.configuration import ModelConfiguration


class Status(StrEnum):
    """How a model stands in the process that answers."""

    LOADED = "loaded"
    WAITING = "loads on first use"
    FAILED = "failed"
    SHADOWED = "name taken"
    PENDING = "being taken over"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class ModelState:
    """The state of one model; `detail` is a sentence for people: what is loaded, or why it is not."""

    status: Status
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A served model that is not in the table; `source` says where it comes from."""

    configuration: ModelConfiguration
    state: ModelState
    source: str


class Inspector(Protocol):
    """Knows the served models of this process."""

    def state(self, configuration: ModelConfiguration) -> ModelState:
        """How the model of an enabled row stands."""
        ...

    def check(self, configuration: ModelConfiguration) -> str:
        """Load the model anew, and say what was found; raises ModelConfigurationError."""
        ...

    def elsewhere(self) -> Sequence[Elsewhere]:
        """The served models that are not in the table."""
        ...

    def playground(self, name: str) -> str:
        """URL of the page where the model can be tried."""
        ...


def inspector() -> Inspector:
    """The configured inspector."""
    return cast(Inspector, import_string(str(settings.DERENDER["MODEL_INSPECTOR"])))
