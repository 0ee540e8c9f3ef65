"""From a chat request to the parser's context, and the parser's part of one-shot answers and chunks (protocol 8.6)."""

import logging
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Self

from derender_api import any_json
from derender_api.conf import conf
from derender_api.exceptions import BadRequest
from derender_api.loaded_model import LoadedModel
from derender_api.log_format import shown_content
from derender_api.metrics import count_cache_lookup, count_outcome
from derender_api.parser_cache import StreamKeys, bytes_of_ids, digest_of, earlier_keys, parser_cache
from derender_api.protocol.openai_request import ChatCompletionRequest, NamedTool
from derender_api.random_bytes import random_bytes
from derender_api.stop import StopRules
from derender_api.stop_watch import StopWatch
from derender_api.stream_state import Carried
from parsers.engine.assembly import Delta, Message
from parsers.engine.context import NamedToolChoice, RequestContext
from parsers.engine.detokenizer import Detokenizer, Window, seeded_window
from parsers.engine.exceptions import UnsupportedRequestError
from parsers.engine.parser import OutputParser, ParserPlan

logger = logging.getLogger(__name__)

ALWAYS_DEFAULT = {"cohere_format": "cmd4"}  # a default of vLLM's command line
SEED_PROMPT_TOKENS = 16
LOOK_BACK = 64
"""Chunks that other processes may have answered since this one remembered the parser."""
NO_TOKEN = -1
"""ID of text that no token of the chunk releases."""


def request_context(request: ChatCompletionRequest, model: LoadedModel, *, call_id_seed: bytes) -> RequestContext:
    """What the parser needs to know of the request."""
    choice = request.tool_choice
    tools = request.sent_tools
    return RequestContext(
        tools=tools,
        tool_choice=NamedToolChoice(choice.function.name) if isinstance(choice, NamedTool) else choice,
        parallel_tool_calls=request.parallel_tool_calls is not False,
        include_reasoning=request.include_reasoning,
        template_kwargs=template_kwargs(request, model),
        own_template_kwargs=request.chat_template_kwargs or {},
        history_tool_calls=sum(
            len(message.tool_calls or ()) for message in request.messages if message.role == "assistant"
        ),
        structural_tag=(request.structured_outputs or {}).get("structural_tag"),
        call_id_seed=call_id_seed,
    )


def template_kwargs(request: ChatCompletionRequest, model: LoadedModel) -> Mapping[str, Any]:
    """The effective chat-template kwargs: the request's, its fields on top, the server's defaults below (3.5)."""
    effective: dict[str, Any] = {
        **(request.chat_template_kwargs or {}),
        "add_generation_prompt": request.add_generation_prompt,
        "continue_final_message": request.continue_final_message,
    }
    if request.documents is not None:
        effective["documents"] = request.documents
    if request.reasoning_effort is not None:
        effective["reasoning_effort"] = request.reasoning_effort
        effective.setdefault("enable_thinking", request.reasoning_effort != "none")
    return over_defaults(effective, model)


def over_defaults(kwargs: Mapping[str, Any], model: LoadedModel) -> dict[str, Any]:
    """Template arguments over those of the server; null and "auto" say nothing."""
    own = model.configuration.default_chat_template_kwargs
    defaults = {**own, **{name: value for name, value in ALWAYS_DEFAULT.items() if name not in own}}
    return {**defaults, **{name: value for name, value in kwargs.items() if value not in (None, "auto")}}


def open_parser(plan: ParserPlan, context: RequestContext, prompt_token_ids: Sequence[int] | None) -> OutputParser:
    """A parser for one stream. Raises BadRequest if the request asks for what the formats cannot do."""
    try:
        return plan.open(context, prompt_token_ids=prompt_token_ids)
    except UnsupportedRequestError as error:
        raise BadRequest(str(error)) from error


def parse_output(
    plan: ParserPlan,
    context: RequestContext,
    *,
    token_ids: Sequence[int],
    texts: Sequence[str],
    prompt_token_ids: Sequence[int] | None,
    truncated: bool = False,
) -> Message:
    """The message of a complete output. A failure of the parser is logged, and all of the text is content.

    `truncated`: the engine stopped at its length limit.
    """
    try:
        parser = open_parser(plan, context, prompt_token_ids)
        message = parser.parse(token_ids, texts)
    except BadRequest:
        raise
    except Exception:
        logger.exception("parser %s failed on a complete output%s", plan.name, shown_content(texts=texts))
        count_outcome(plan.name, "failed")
        return Message(reasoning=None, content="".join(texts))
    count_outcome(plan.name, _outcome(parser, token_ids, message.content, truncated=truncated))
    return message


def _outcome(parser: OutputParser, token_ids: Sequence[int], content: str | None, *, truncated: bool) -> str:
    """What became of the markup of an answer, as the metrics name it."""
    if truncated:
        return "truncated"
    if parser.malformed:
        return "malformed"
    # Only markup that the output has as tokens is looked for: vocabularies may have hundreds of special tokens.
    met = parser.marks.keys() & set(token_ids)
    given_back = content and any(parser.marks[token_id] in content for token_id in met)
    return "given_back" if given_back else "parsed"


def random_seed() -> bytes:
    """Seed of the call IDs of a one-shot answer: new every time."""
    return random_bytes(16)


def stream_seed(request_id: str, index: int, prompt_token_ids: Sequence[int], carried: Carried) -> bytes:
    """Seed of the call IDs of a stream: the same when a chunk is sent again.

    In the compact form it is chosen with the first chunk and travels with the state.
    """
    if carried.call_id_seed:
        return bytes.fromhex(carried.call_id_seed)
    name = f"{index} {len(prompt_token_ids)} {request_id}".encode("utf-8", "surrogatepass")
    return digest_of(name, bytes_of_ids(prompt_token_ids[-SEED_PROMPT_TOKENS:]))


@lru_cache(maxsize=64)
def _any_of(spellings: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(spellings))) or "(?!)")


class StreamParser:
    """The parser of a stream, where the output so far has left it, with the detokenizer that feeds it."""

    def __init__(self, parser: OutputParser, detokenizer: Detokenizer, watch: StopWatch | None) -> None:
        parser.calls_streamed = False
        self._parser = parser
        self._detokenizer = detokenizer
        self._watch = watch

    def resumed(self) -> Self:
        """The same parser, for the next chunk."""
        self._parser.calls_streamed = self._parser.malformed = False
        return self

    @property
    def matched(self) -> str | None:
        """The stop string that ended the output, None where none did."""
        return self._watch.matched if self._watch else None

    @property
    def calls_streamed(self) -> bool:
        """Whether this chunk has calls that are kept, before `parallel_tool_calls` drops any."""
        return self._parser.calls_streamed

    @property
    def calls_revoked(self) -> bool:
        """Whether the stream has ended and its only call was cut, so that it counts as none."""
        return self._parser.calls_revoked

    def outcome(self, delta: Delta, *, ends: bool, truncated: bool) -> str | None:
        """What became of the markup of the stream where it `ends`; before that, of this chunk, if it is remarkable."""
        if ends and truncated:
            return "truncated"
        if self._parser.malformed:
            return "malformed"
        if delta.content and any(sign in delta.content for sign in "<["):
            spelled = _any_of(frozenset(self._parser.marks.values()))
            if spelled.search(delta.content):
                return "given_back"
        return "parsed" if ends else None

    def step(self, token_ids: Sequence[int], *, decoded: int, finished: bool) -> Delta:
        """The delta of this chunk. The parser sees all IDs, and the text of the first `decoded` of them."""
        texts = self._detokenizer.decode(token_ids[:decoded])
        texts += [""] * (len(token_ids) - len(texts))
        return self._feed(token_ids, texts, finished=finished) or Delta()

    def _feed(self, token_ids: Sequence[int], texts: list[str], *, finished: bool) -> Delta | None:
        """A step of the parser with what the stop strings leave of the text; the output ends where one is complete."""
        if self._watch is None:
            return self._parser.feed(token_ids, texts, finished=finished)
        if self._watch.matched is not None:
            return None
        texts = self._watch.pass_on(texts)
        if finished and (held := self._watch.release()):
            token_ids, texts = [*token_ids, NO_TOKEN], [*texts, held]
        return self._parser.feed(token_ids, texts, finished=finished or self._watch.matched is not None)

    def replay(self, token_ids: Sequence[int], lengths: Sequence[int]) -> None:
        """Steps again through the chunks of an earlier output."""
        texts = self._detokenizer.decode(token_ids)
        start = 0
        for length in lengths:
            end = start + length
            self._feed(token_ids[start:end], texts[start:end], finished=False)
            start = end
        self.resumed()

    def snapshot(self) -> tuple[dict[str, Any], Window]:
        """What the parser (with the search for stop strings) and the detokenizer must remember."""
        snapshot = self._parser.snapshot()
        if self._watch is not None:
            snapshot["stop"] = self._watch.state()
        return snapshot, self._detokenizer.window


class StreamParsers:
    """Opens the parser of a stream from what the client carries, and notes where a chunk leaves it."""

    def __init__(
        self,
        plan: ParserPlan,
        context: RequestContext,
        model: LoadedModel,
        *,
        prompt_token_ids: Sequence[int],
        carried: Carried,
        spaced: bool,
        stop_rules: StopRules,
    ) -> None:
        self._plan = plan
        self._stop_rules = stop_rules
        self._context = context
        self._model = model
        self._prompt_token_ids = prompt_token_ids
        self._carried = carried
        self._keyed = 0, 0
        self._codec = model.tokenizer.codec if spaced else model.tokenizer.codec_unspaced

    def open(self) -> StreamParser:
        """The parser behind the output so far. Raises InvalidSnapshotError for a state it did not write."""
        carried = self._carried
        if carried.live is not None:
            return carried.live.resumed()
        if carried.parser is not None:
            return self._restored(carried.parser, carried.window)
        if not carried.output_token_ids:
            return self._new()
        chunks, tokens, kept = self._remembered()
        if kept is None:
            parser = self._new()
        else:
            snapshot, (pieces, prefix, read) = any_json.loads(kept)
            parser = self._restored(snapshot, Window(pieces=tuple(pieces), prefix=prefix, read=read))
        if chunks < len(carried.output_chunk_lens):
            parser.replay(carried.output_token_ids[tokens:], carried.output_chunk_lens[chunks:])
        return parser

    def _remembered(self) -> tuple[int, int, bytes | None]:
        """The latest parser that this process remembers: how many chunks and tokens lead to it, and its state.

        Where several processes answer a stream in turns, it is one of a few chunks before.
        """
        token_ids, lengths = self._carried.output_token_ids, self._carried.output_chunk_lens
        if kept := parser_cache.get(self._key()):
            count_cache_lookup("hit")
            return len(lengths), len(token_ids), kept
        if len(parser_cache):
            for chunks, tokens, key in earlier_keys(self._origin, token_ids, lengths, most=LOOK_BACK):
                if kept := parser_cache.get(key):
                    count_cache_lookup("near")
                    return chunks, tokens, kept
        count_cache_lookup("miss")
        return 0, 0, None

    def close(self, parser: StreamParser) -> None:
        """Notes where the parser stands, for the next chunk."""
        if self._carried.form == "live":
            self._carried.live = parser
            return
        snapshot, window = parser.snapshot()
        if self._carried.form == "compact":
            self._carried.parser, self._carried.window = snapshot, window
        elif self._carried.output_token_ids and conf.parser_cache_entries:
            state = [snapshot, [window.pieces, window.prefix, window.read]]
            parser_cache.put(self._key(), any_json.dumps(state))

    def _new(self) -> StreamParser:
        parser = open_parser(self._plan, self._context, self._prompt_token_ids)
        window = seeded_window(self._codec, self._prompt_token_ids, skip_special=False)
        return StreamParser(parser, Detokenizer(self._codec, skip_special=False, window=window), self._watch())

    def _watch(self) -> StopWatch | None:
        return StopWatch.of(self._stop_rules)

    def _restored(self, snapshot: Mapping[str, Any], window: Window) -> StreamParser:
        watch = self._watch()
        if watch is not None and "stop" in snapshot:
            watch.resume(snapshot["stop"])
        parser = self._plan.restore(self._context, snapshot)
        return StreamParser(parser, Detokenizer(self._codec, skip_special=False, window=window), watch)

    @cached_property
    def _keys(self) -> StreamKeys:
        return StreamKeys(self._origin)

    @cached_property
    def _origin(self) -> bytes:
        """A digest of all that leads to the stream: model, request and prompt."""
        context = self._context
        request = [
            context.tools,
            context.tool_choice,
            context.parallel_tool_calls,
            context.include_reasoning,
            context.template_kwargs,
            context.own_template_kwargs,
            context.history_tool_calls,
            context.structural_tag,
            self._stop_rules,
        ]
        names = f"{self._model.configuration!r} {self._plan.name} {id(self._codec)}".encode()
        return digest_of(names, any_json.dumps(request), bytes_of_ids(self._prompt_token_ids))

    def _key(self) -> bytes:
        """The key of the parser behind the output so far."""
        token_ids, lengths = self._carried.output_token_ids, self._carried.output_chunk_lens
        tokens, chunks = self._keyed
        self._keys.extend(token_ids[tokens:], lengths[chunks:])
        self._keyed = len(token_ids), len(lengths)
        return self._keys.key
