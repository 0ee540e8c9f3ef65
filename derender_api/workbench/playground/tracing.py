"""Follows an output through the parser, one token at a time: what each of its texts became, and when that was known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from derender_api.parity.core import Output, decoded_output
from derender_api.workbench.playground.attribution import Attribution, Kind, Span
from derender_api.workbench.playground.experiment import Experiment
from parsers.engine.context import RequestContext
from parsers.engine.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning
from parsers.engine.parser import OutputParser, ParserPlan


@dataclass(frozen=True, slots=True)
class TracedToken:
    """A token of the output: its vocabulary piece, and the pieces of the text that it released."""

    index: int
    token_id: int
    piece: str
    spans: Sequence[Span]


class TracedParser(OutputParser):
    """A parser that keeps the events of each step, which are joined to deltas otherwise."""

    seen: list[Event]

    def _step(self, token_ids: Sequence[int], texts: Sequence[str], raw: list[str] | None = None) -> list[Event]:
        events = super()._step(token_ids, texts, raw)
        self.seen = list(events)
        return events

    def _flush(self, raw: list[str] | None = None) -> list[Event]:
        events = super()._flush(raw)
        self.seen += events
        return events


def trace(experiment: Experiment) -> list[TracedToken]:
    """Every token of the output with what became of it. Raises BadRequest and ValidationError as the API would."""
    model = experiment.model
    output = decoded_output(model, experiment.case())
    spans = _parsed(output, output.plan, model.tokenizer.special_tokens) if output.plan else _plain(output)
    return [
        TracedToken(index, token_id, model.tokenizer.piece(token_id), spans[index])
        for index, token_id in enumerate(output.token_ids)
    ]


def _plain(output: Output) -> list[list[Span]]:
    """Without a parser all text is content as it comes."""
    return [[Span(text, Kind.CONTENT, index)] for index, text in enumerate(output.cut_texts)]


def _parsed(output: Output, plan: ParserPlan, special: Mapping[int, str]) -> list[list[Span]]:
    parser = TracedParser(plan, output.context, output.prompt_token_ids)
    attribution = Attribution(marks=plan.marks.keys() | special.keys())
    last = len(output.token_ids) - 1
    ends = output.finish_reason is not None
    texts = output.cut_texts if ends else output.texts
    for index, (token_id, text) in enumerate(zip(output.token_ids, texts, strict=True)):
        attribution.add(token_id, text)
        parser.seen = []
        parser.feed([token_id], [text], finished=ends and index == last)
        for event in parser.seen:
            _attribute(event, attribution, output.context)
    return attribution.finish(is_cut=not ends)


def _attribute(event: Event, attribution: Attribution, context: RequestContext) -> None:
    """What an event says about the text. What this request leaves out of its answers is dropped."""
    match event:
        case Reasoning(text=text, late=False):
            attribution.sent(Kind.REASONING if context.include_reasoning else Kind.DROPPED, text)
        case Content(text=text):
            attribution.sent(Kind.CONTENT, text)
        case CallStart(index=index, name=name):
            attribution.sent(Kind.NAME if _is_kept(index, context) else Kind.DROPPED, name)
        case CallArguments(index=index, text=text, raw=raw):
            kind = Kind.ARGUMENTS if _is_kept(index, context) else Kind.DROPPED
            attribution.sent(kind, text, anew=raw not in (None, text))
        case CallEnd(malformed=False):
            attribution.closed()


def _is_kept(index: int, context: RequestContext) -> bool:
    return context.keeps_calls and (index == 0 or context.parallel_tool_calls)
