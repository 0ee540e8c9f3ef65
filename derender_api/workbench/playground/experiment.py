"""One experiment of the playground: an output, a model, a request and a chunking, and what the service answers to it.

The answers come from the services that the API calls, so that they are the API's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from derender_api.exception_handler import api_error
from derender_api.exceptions import error_content
from derender_api.loaded_model import LoadedModel
from derender_api.parity.answers import fold
from derender_api.parity.application import REQUEST_ID, oneshot_body
from derender_api.parity.observed import HttpAnswer, oneshot_answer, recorded_chunk, recorded_oneshot
from derender_api.parity.suite import MODEL_NAME, Case, dumps
from derender_api.protocol.decoding import decode_shaped
from derender_api.protocol.derender import CHAT_SHAPES, DerenderChatBulkRequest, DerenderChatRequest
from derender_api.services import derender_chat, derender_chat_chunks

OWN = "own"
"""Name of a grouping whose lengths were typed."""
LONGEST_OUTPUT = 4096
"""Tokens of an output that the page shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What is tried. `lens` are the tokens in each chunk, `grouping` the name of that chunking."""

    model: LoadedModel
    token_ids: Sequence[int]
    prompt_token_ids: Sequence[int]
    request: Mapping[str, Any]
    grouping: str
    lens: Sequence[int]
    finish_reason: str | None

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """First and behind-the-last token of each chunk."""
        return list(pairwise((0, *accumulate(self.lens))))

    def case(self) -> Case:
        """The experiment as a case without answers."""
        return Case(
            suite="",
            profile="",
            id=REQUEST_ID,
            request={"model": MODEL_NAME, **self.request},
            prompt_token_ids=list(self.prompt_token_ids),
            output_token_ids=list(self.token_ids),
            finish_reason=self.finish_reason,
            stop_reason=None,
            logprobs=None,
            oneshot={},
            streams={},
        )


@dataclass(frozen=True, slots=True)
class Answers:
    """What the service answers. `oneshot` and `chunks` are in the form of the suites; a refusal has its body.

    `status` is that of the stream; where it is not 200, `chunks` holds the error body alone.
    """

    oneshot: Mapping[str, Any]
    status: int
    chunks: Sequence[Any]

    @property
    def refusal(self) -> Mapping[str, Any] | None:
        """Status and body of the first refusal; None where both were answered."""
        if self.oneshot["status"] != 200:
            return self.oneshot
        return None if self.status == 200 else {"status": self.status, "body": self.chunks[0]}

    @property
    def agree(self) -> bool:
        """Whether the stream adds up to the one-shot answer, white space at the ends apart."""
        folded, whole = fold(self.chunks), oneshot_answer(self.oneshot)
        return folded is not None and whole is not None and folded.loose == whole.loose


def answers_to(experiment: Experiment) -> Answers:
    """The one-shot answer and the stream."""
    case = experiment.case()
    oneshot = recorded_oneshot(_answer(oneshot_body(case), experiment.model))
    streamed = _answer(_stream_body(experiment, case), experiment.model)
    if streamed.status != 200:
        return Answers(oneshot, streamed.status, [streamed.body])
    return Answers(oneshot, 200, [recorded_chunk({"chunk": chunk}) for chunk in streamed.body["chunks"]])


def _stream_body(experiment: Experiment, case: Case) -> dict[str, Any]:
    """All chunks in one call: what a call for each would give."""
    chunks = []
    for position, (start, end) in enumerate(experiment.bounds):
        last = position == len(experiment.lens) - 1
        reason = experiment.finish_reason if last else None
        choice = {"index": 0, "token_ids": case.output_token_ids[start:end], "finish_reason": reason}
        chunks.append({"request_id": REQUEST_ID, "choices": [choice]})
    return {
        "stream": True,
        "generate_chunks": chunks,
        "stream_state_format": "compact",
        "prompt_token_ids": case.prompt_token_ids,
        "prompt_tokens": len(case.prompt_token_ids),
        "chat_request": {**case.request, "stream": True},
    }


def _answer(body: Mapping[str, Any], model: LoadedModel) -> HttpAnswer:
    """The API's answer to `body`, by `model`, errors included."""
    try:
        match decode_shaped(dumps(body), CHAT_SHAPES):
            case DerenderChatRequest() as request:
                return HttpAnswer(200, derender_chat(request, model=model))
            case DerenderChatBulkRequest() as request:
                return HttpAnswer(200, derender_chat_chunks(request, model=model))
            case other:
                raise TypeError(f"unexpected {type(other).__name__}")
    except Exception as exception:
        error = api_error(exception)
        if error.status >= 500:
            raise
        return HttpAnswer(error.status, error_content(error))
