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
from parsers.configuration import ModelConfigurationError
from parsers.engine.assembly import Delta
from parsers.engine.context import NamedToolChoice, RequestContext, finish_reason
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


# --- temporary
def _ctx(model, req):
    own = dict(req.get("chat_template_kwargs") or {})
    kw = dict(own)
    kw["add_generation_prompt"] = req.get("add_generation_prompt", True)
    kw["continue_final_message"] = req.get("continue_final_message", False)
    if req.get("documents") is not None:
        kw["documents"] = req["documents"]
    if req.get("reasoning_effort") is not None:
        kw["reasoning_effort"] = req["reasoning_effort"]
        if "enable_thinking" not in own:
            kw["enable_thinking"] = req["reasoning_effort"] != "none"
    for k, v in (model.configuration.default_chat_template_kwargs or {}).items():
        if kw.get(k) is None or kw.get(k) == "auto":
            kw[k] = v
    tools = req.get("tools")
    tc = req["tool_choice"] if "tool_choice" in req else ("auto" if tools else "none")
    if isinstance(tc, dict):
        tc = NamedToolChoice(tc["function"]["name"])
    hist = sum(len(m.get("tool_calls") or ()) for m in req.get("messages", []) if isinstance(m, dict))
    return RequestContext(
        tools=tools,
        tool_choice=tc,
        parallel_tool_calls=req.get("parallel_tool_calls", True) is not False,
        include_reasoning=req.get("include_reasoning", True),
        template_kwargs=kw,
        own_template_kwargs=own,
        history_tool_calls=hist,
        call_id_seed=b"x",
    )


def decoded_output(model, case):
    req, ids, h = case.request, case.output_token_ids, model.tokenizer
    cut = False
    if (
        ids
        and case.finish_reason == "stop"
        and not isinstance(case.stop_reason, str)
        and not req.get("include_stop_str_in_output")
    ):
        last, ign = ids[-1], req.get("ignore_eos")
        cut = (
            last == case.stop_reason
            if case.stop_reason is not None
            else (last == h.eos_id and not ign)
            or last in (req.get("stop_token_ids") or [])
            or (last in h.model_eos_ids and not ign)
        )
    skip = model.plan is None and req.get("skip_special_tokens") is not False
    d = Detokenizer(h.codec, skip_special=skip, window=seeded_window(h.codec, case.prompt_token_ids, skip_special=skip))
    texts = d.decode(ids[:-1] if cut else ids) + ([""] if cut else [])
    return Output(model.plan, _ctx(model, req), case.prompt_token_ids, ids, texts, case.finish_reason)
