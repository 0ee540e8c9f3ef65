"""From a chat request to the parser's context, and the parser's part of one-shot answers and chunks (protocol 8.6)."""

import logging
import secrets
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from derender_api.exceptions import BadRequest
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.openai_request import ChatCompletionRequest, NamedTool
from derender_api.stream_state import Carried
from parsers.engine.assembly import Delta, Message
from parsers.engine.context import NamedToolChoice, RequestContext
from parsers.engine.detokenizer import Detokenizer, seeded_window
from parsers.engine.exceptions import UnsupportedRequestError
from parsers.engine.parser import OutputParser, ParserPlan

logger = logging.getLogger(__name__)

ALWAYS_DEFAULT = {"cohere_format": "cmd4"}  # a default of vLLM's command line
SEED_PROMPT_TOKENS = 16


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
        history_tool_calls=sum(len(message.tool_calls or ()) for message in request.messages),
        structural_tag=(request.structured_outputs or {}).get("structural_tag"),
        call_id_seed=call_id_seed,
    )


def template_kwargs(request: ChatCompletionRequest, model: LoadedModel) -> Mapping[str, Any]:
    """The effective chat-template kwargs: the request's, its fields on top, the server's defaults below (3.5)."""
    own = request.chat_template_kwargs or {}
    effective: dict[str, Any] = {
        **own,
        "add_generation_prompt": request.add_generation_prompt,
        "continue_final_message": request.continue_final_message,
    }
    if request.documents is not None:
        effective["documents"] = request.documents
    if request.reasoning_effort is not None:
        effective["reasoning_effort"] = request.reasoning_effort
        effective.setdefault("enable_thinking", request.reasoning_effort != "none")
    defaults = {**ALWAYS_DEFAULT, **model.configuration.default_chat_template_kwargs}
    for name, value in defaults.items():
        if effective.get(name) in (None, "auto"):
            effective[name] = value
    return effective


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
) -> Message:
    """The message of a complete output. A failure of the parser is logged, and all of the text is content."""
    try:
        return open_parser(plan, context, prompt_token_ids).parse(token_ids, texts)
    except BadRequest:
        raise
    except Exception:
        logger.exception("parser %s failed on a complete output", plan.name)
        return Message(reasoning=None, content="".join(texts))


def random_seed() -> bytes:
    """Seed of the call IDs of a one-shot answer: new every time."""
    return secrets.token_bytes(16)


def chunk_seed(request_id: str, index: int, prompt_token_ids: Sequence[int], carried: Carried) -> bytes:
    """Seed of the call IDs of a chunk: the same when the same chunk is sent again."""
    parts = [request_id, index, len(prompt_token_ids), list(prompt_token_ids[-SEED_PROMPT_TOKENS:])]
    return blake2b(repr([*parts, carried.output_token_ids]).encode("utf-8", "surrogatepass"), digest_size=16).digest()


class ReplayedParser:
    """The parser of a stream, rebuilt from the output so far: one call is linear in prompt and output."""

    def __init__(
        self,
        plan: ParserPlan,
        context: RequestContext,
        model: LoadedModel,
        *,
        prompt_token_ids: Sequence[int],
        carried: Carried,
        spaced: bool,
    ) -> None:
        codec = model.tokenizer.codec if spaced else model.tokenizer.codec_unspaced
        window = seeded_window(codec, prompt_token_ids, skip_special=False)
        self._detokenizer = Detokenizer(codec, skip_special=False, window=window)
        self._parser = open_parser(plan, context, prompt_token_ids)
        self._replay(carried)
        self._parser.calls_streamed = False

    def _replay(self, carried: Carried) -> None:
        texts = self._detokenizer.decode(carried.output_token_ids)
        start = 0
        for length in carried.output_chunk_lens:
            end = start + length
            self._parser.feed(carried.output_token_ids[start:end], texts[start:end], finished=False)
            start = end

    @property
    def calls_streamed(self) -> bool:
        """Whether this chunk has calls that are kept, before `parallel_tool_calls` drops any."""
        return self._parser.calls_streamed

    def step(self, token_ids: Sequence[int], *, decoded: int, finished: bool) -> Delta:
        """The delta of this chunk. The parser sees all IDs, and the text of the first `decoded` of them."""
        texts = self._detokenizer.decode(token_ids[:decoded])
        texts += [""] * (len(token_ids) - len(texts))
        return self._parser.feed(token_ids, texts, finished=finished) or Delta()
