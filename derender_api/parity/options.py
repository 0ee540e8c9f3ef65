"""How a run is to be made: which cases, how thoroughly, against what."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """How to run. `only` selects cases whose `suite/profile/id` contains it, `profile` those of one profile.

    `every_split`: the self rule tries every two-way split instead of a few. `fast`: the parser core alone answers the
    recorded streams, but for a sample of cases. `http_streams`: the self rule too goes through the HTTP application
    (slow). `compact`: streams over HTTP are in the compact form. `url`: a running server instead of this process.
    """

    root: Path | None = None
    profile: str | None = None
    only: str | None = None
    every_split: bool = False
    fast: bool = False
    http_streams: bool = False
    compact: bool = False
    url: str | None = None
    processes: int | None = None
