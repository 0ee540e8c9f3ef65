"""Streams from the parser core alone: what the service does with a chunk, without HTTP and without replaying.

The self rule needs hundreds of groupings per output; here each costs what its tokens cost. Groupings by size are
answered twice, by one parser and by parsers restored from a JSON snapshot at every boundary; two-way splits by restored
ones only.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

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
    """One output, decoded: `texts[i]` is what token i released; a stop token that is cut releases nothing."""

    plan: ParserPlan | None
    context: RequestContext
    prompt_token_ids: Sequence[int]
    token_ids: Sequence[int]
    texts: Sequence[str]
    finish_reason: str


@dataclass(frozen=True, slots=True)
class CoreStreams:
    """Answers streams of one model with the parser core."""

    model: LoadedModel

    def streams(
        self, case: Case, groupings: Mapping[str, Sequence[int]]
    ) -> tuple[dict[str, Streamed], dict[str, Streamed]]:
        """The stream of every grouping (name -> lengths), and those that differ when restored at every boundary."""
        output = decoded_output(self.model, case)
        streams, unsteady = {}, {}
        for name, lens in groupings.items():
            restored = Streamed(200, list(_chunks(output, lens, restoring=True)))
            streams[name] = restored
            if "|" not in name:
                streams[name] = Streamed(200, list(_chunks(output, lens, restoring=False)))
                if streams[name] != restored:
                    unsteady[name] = restored
        return streams, unsteady


def _chunks(output: Output, lens: Sequence[int], *, restoring: bool) -> Iterator[list[Any]]:
    """The chunks of a stream in the recordings' form."""
    parser = output.plan.open(output.context, prompt_token_ids=output.prompt_token_ids) if output.plan else None
    ends = [sum(lens[:count]) for count in range(len(lens) + 1)]
    for start, end in pairwise(ends):
        last = end == len(output.token_ids)
        token_ids, texts = output.token_ids[start:end], output.texts[start:end]
        delta = parser.feed(token_ids, texts, finished=last) if parser else Delta(content="".join(texts) or None)
        reason = None
        if last:
            streamed = parser.calls_streamed if parser else False
            reason = finish_reason(output.context, output.finish_reason, streamed)
        yield [{**({"role": "assistant"} if not start else {}), **_as_json(delta)}, reason]
        if parser and output.plan and restoring and not last:
            parser = output.plan.restore(output.context, json.loads(json.dumps(parser.snapshot())))


def _as_json(delta: Delta | None) -> dict[str, Any]:
    if delta is None:
        return {}
    calls = [
        {
            "id": call.id,
            "type": call.type,
            "index": call.index,
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in delta.calls
    ]
    fields = {"content": delta.content, "reasoning": delta.reasoning, "tool_calls": calls or None}
    return {name: value for name, value in fields.items() if value is not None}


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
    texts = Detokenizer(codec, skip_special=skip_special, window=window).decode(token_ids[: ending.decoded])
    return Output(
        plan=model.plan,
        context=request_context(request, model, call_id_seed=b"parity"),
        prompt_token_ids=prompt,
        token_ids=token_ids,
        texts=[*texts, *([""] * (len(token_ids) - len(texts)))],
        finish_reason=case.finish_reason or "stop",
    )
