"""Asks for all answers to a case: over HTTP, and from the parser core alone.

One-shot answers and the recorded streams go through the HTTP application (or to the server at a URL); in a fast run the
core answers the streams of most cases. The many groupings of the self rule drive the core; by size they are answered
twice, by one parser and by parsers restored at every boundary, two-way splits by restored ones only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from derender_api.parity import application
from derender_api.parity.core import CoreStreams
from derender_api.parity.groupings import lengths, self_groupings
from derender_api.parity.observed import Observed, Streamed, oneshot_answer, recorded_oneshot
from derender_api.parity.options import Options
from derender_api.parity.suite import Case

SAMPLED = 8
"""A fast run streams one case in so many over HTTP, chosen by its ID."""
FEW_OVER_HTTP = 8
CORE_FAILURE = "core"


@dataclass(frozen=True, slots=True)
class Driver:
    """Asks for the answers to a case. `core` answers the self rule's streams; None: HTTP does."""

    application: application.Application
    core: CoreStreams | None
    options: Options

    def observe(self, case: Case) -> Observed:
        """All answers to a case."""
        oneshot = recorded_oneshot(application.post_oneshot(self.application, case))
        ours = self._with_recorded(case, Observed(oneshot, {}))
        return self._with_selves(case, ours) if _is_streamable(case, oneshot) else ours

    def _with_recorded(self, case: Case, ours: Observed) -> Observed:
        """The same with the recorded groupings: over HTTP, in a fast run from the core but for a sample of cases.

        What the core does not decide (stop strings) or refuses itself goes over HTTP only.
        """
        groupings = {name: recorded.lens for name, recorded in case.streams.items()}
        core: Mapping[str, Streamed] = {}
        if self.core and not case.request.get("stop"):
            core = self._core_streams(self.core.streams, case, groupings)
            if CORE_FAILURE in core:
                core = {}
            elif self.options.fast and crc32(case.id.encode()) % SAMPLED:
                return replace(ours, streams=core)
        streams = {name: self._post_stream(case, lens) for name, lens in groupings.items()}
        return replace(ours, streams=streams, core=core)

    def _with_selves(self, case: Case, ours: Observed) -> Observed:
        """The same with the groupings of the self rule, the recorded ones among them.

        Recorded groupings that send the finish reason apart are left out where the output ends with a stop token: in
        its own chunk it is not known as one, and becomes text.
        """
        recorded = {
            f"recorded {name}": streamed
            for name, streamed in ours.streams.items()
            if not name.endswith("f") or case.finish_reason != "stop"
        }
        seed = crc32(case.id.encode())
        names = list(self_groupings(len(case.output_token_ids), every_split=self.options.every_split, seed=seed))
        if self.core is None or case.request.get("stop"):
            chosen = names if self.options.http_streams else names[:FEW_OVER_HTTP]
            selves = {name: self._post_stream(case, self._lengths(case, name)) for name in chosen}
            return replace(ours, selves={**recorded, **selves})
        splits = {name: self._lengths(case, name) for name in names if "|" in name}
        sizes = {name: self._lengths(case, name) for name in names if "|" not in name}
        steady = self._core_streams(self.core.streams, case, sizes)
        restored = self._core_streams(self.core.restored_streams, case, {**sizes, **splits})
        unsteady = {name: restored[name] for name in steady if restored.get(name) != steady[name]}
        return replace(ours, selves={**recorded, **restored, **steady}, unsteady=unsteady)

    def _post_stream(self, case: Case, lens: Sequence[int]) -> Streamed:
        return application.post_stream(self.application, case, lens, compact=self.options.compact)

    @staticmethod
    def _core_streams(
        answer: Callable[[Case, Mapping[str, Sequence[int]]], dict[str, Streamed]],
        case: Case,
        groupings: Mapping[str, Sequence[int]],
    ) -> dict[str, Streamed]:
        """The core's streams; an exception in it is a stream that was refused."""
        try:
            return answer(case, groupings)
        except Exception as error:
            return {CORE_FAILURE: Streamed(500, [{"exception": repr(error)}])}

    @staticmethod
    def _lengths(case: Case, name: str) -> tuple[int, ...]:
        return lengths(name, len(case.output_token_ids))


def _is_streamable(case: Case, oneshot: Mapping[str, Any]) -> bool:
    """Whether streams of a case can say what its one-shot answer says.

    They cannot where that was refused, and where a stop string that the engine reports cuts it: its text was sent
    before. Without a finish reason a stream has no end.
    """
    is_whole = bool(case.output_token_ids and case.finish_reason) and not isinstance(case.stop_reason, str)
    return is_whole and oneshot_answer(oneshot) is not None
