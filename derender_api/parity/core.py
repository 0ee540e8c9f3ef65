"""Streams from the parser core alone: what the service does with a chunk, without HTTP and without replaying.

The self rule needs hundreds of groupings per output; here each costs what its tokens cost.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from derender_api.answers import chat_delta
from derender_api.loaded_model import LoadedModel
from derender_api.parity.observed import Streamed
from derender_api.parity.suite import Case
from derender_api.parsing import request_context
from derender_api.protocol.openai_request import ChatCompletionRequest
from derender_api.stop import StopRules, end_of_output
from parsers.configuration import ModelConfigurationError
from parsers.engine.assembly import Delta
from parsers.engine.context import RequestContext, finish_reason
from parsers.engine.detokenizer import Detokenizer, seeded_window
from parsers.engine.parser import ParserPlan
from parsers.registry import reasoning_formats, tool_formats


def load(model: LoadedModel) -> str | None:
    """Load a model; None, or why its cases cannot be run ("not built: ..." for parsers that this build has not)."""
    configuration = model.configuration
    missing = [
        f"{kind} parser {name}"
        for kind, name, known in (
            ("tool", configuration.active_tool_parser, tool_formats()),
            ("reasoning", configuration.reasoning_parser, reasoning_formats()),
        )
        if name and name not in known
    ]
    if missing:
        return f"not built: {', '.join(missing)}"
    try:
        model.load()
    except ModelConfigurationError as error:
        return f"cannot start: {error}"
    return None


@dataclass(frozen=True, slots=True)
class Output:
    """One output, decoded: `texts[i]` is what token i released.

    `decoded` is how many of them are text where the finish reason comes with the last token: a stop token is not.
    """

    plan: ParserPlan | None
    context: RequestContext
    prompt_token_ids: Sequence[int]
    token_ids: Sequence[int]
    texts: Sequence[str]
    decoded: int
    finish_reason: str | None

    @property
    def cut_texts(self) -> list[str]:
        """The texts without that of a stop token; their number stays."""
        return [*self.texts[: self.decoded], *([""] * (len(self.texts) - self.decoded))]


@dataclass(frozen=True, slots=True)
class CoreStreams:
    """Answers streams of one model with the parser core."""

    model: LoadedModel

    def streams(self, case: Case, groupings: Mapping[str, Sequence[int]]) -> dict[str, Streamed]:
        """The stream of every grouping (name -> lengths)."""
        output = decoded_output(self.model, case)
        return {name: Streamed(200, list(_chunks(output, lens))) for name, lens in groupings.items()}

    def restored_streams(self, case: Case, groupings: Mapping[str, Sequence[int]]) -> dict[str, Streamed]:
        """The same, with a parser that is restored from its JSON snapshot at every boundary."""
        output = decoded_output(self.model, case)
        return {name: Streamed(200, list(_chunks(output, lens, restoring=True))) for name, lens in groupings.items()}


def _chunks(output: Output, lens: Sequence[int], *, restoring: bool = False) -> Iterator[list[Any]]:
    """The chunks of a stream in the recordings' form."""
    plan, context = output.plan, output.context
    parser = plan.open(context, prompt_token_ids=output.prompt_token_ids) if plan else None
    start = 0
    for index, length in enumerate(lens):
        last = index == len(lens) - 1
        chunk = slice(start, start + length)
        start += length
        token_ids, texts = output.token_ids[chunk], (output.cut_texts if last else output.texts)[chunk]
        delta: Delta | None
        if parser is None:
            delta = Delta(content="".join(texts) or None)
        elif token_ids or (last and index):
            delta = parser.feed(token_ids, texts, finished=last and output.finish_reason is not None)
        else:
            delta = None
        reason = output.finish_reason if last else None
        if parser and reason is not None:
            reason = finish_reason(context, reason, parser.calls_streamed)
        yield [{**({} if index else {"role": "assistant"}), **_as_json(delta)}, reason]
        if parser and plan and restoring and not last:
            parser = plan.restore(context, json.loads(json.dumps(parser.snapshot())))


def _as_json(delta: Delta | None) -> dict[str, Any]:
    if delta is None:
        return {}
    return {name: value for name, value in chat_delta(delta, is_first=False).items() if value is not None}


def decoded_output(model: LoadedModel, case: Case) -> Output:
    """A case's output as the service decodes it, whole or in chunks (protocol 8.2 to 8.6)."""
    request = ChatCompletionRequest.model_validate(case.request)
    tokenizer, token_ids, prompt = model.tokenizer, case.output_token_ids, case.prompt_token_ids
    ending = end_of_output(
        token_ids,
        finish_reason=case.finish_reason,
        stop_reason=case.stop_reason,
        rules=StopRules.of(request),
        tokenizer=tokenizer,
    )
    codec = tokenizer.codec if request.spaces_between_special_tokens else tokenizer.codec_unspaced
    skip_special = model.plan is None and request.skip_special_tokens is not False
    window = seeded_window(codec, prompt, skip_special=skip_special)
    return Output(
        plan=model.plan,
        context=request_context(request, model, call_id_seed=b"parity"),
        prompt_token_ids=prompt,
        token_ids=token_ids,
        texts=Detokenizer(codec, skip_special=skip_special, window=window).decode(token_ids),
        decoded=ending.decoded,
        finish_reason=case.finish_reason,
    )
