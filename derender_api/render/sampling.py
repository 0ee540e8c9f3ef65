"""Sampling parameters for the engine: the request's, the model's defaults, and the rules that hold for them (10.1).

What has the engine's own default is left out, as vLLM does, in the order of its sampling parameters.
"""

from collections.abc import Mapping
from typing import Any

from derender_api.conf import conf
from derender_api.exceptions import BadRequest, RequestRuleViolation
from derender_api.loaded_model import LoadedModel
from derender_api.protocol.openai_request import ChatCompletionRequest, CompletionRequest, GenerationRequest

Json = dict[str, Any]

FINAL_ONLY, DELTA = 2, 1
COMPLETION_TOKENS = 16
"""Output tokens of a completion that asks for no number; also the engine's default, which is left out."""
SMALLEST_TEMPERATURE = 0.01
LARGEST_BIAS = 100.0
DEFAULTS: Mapping[str, Any] = {
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
}


def chat_sampling(
    request: ChatCompletionRequest,
    model: LoadedModel,
    *,
    prompt_tokens: int,
    structured_outputs: Json | None,
    keeps_special: bool,
    exact_text: bool,
) -> Json:
    """The sampling parameters of a chat request. `keeps_special`, `exact_text`: what its parsers need of the text.

    Raises BadRequest for values out of range."""
    logprobs = (request.top_logprobs or 0) if request.logprobs else None
    prompt_logprobs = request.prompt_logprobs
    if prompt_logprobs is None and request.echo:
        prompt_logprobs = request.top_logprobs
    limit = request.max_completion_tokens if request.max_completion_tokens is not None else request.max_tokens
    return _sampling(
        request,
        model,
        n=1 if request.n is None else request.n,
        logprobs=logprobs,
        prompt_logprobs=prompt_logprobs,
        max_tokens=max_tokens(limit, prompt_tokens, model),
        structured_outputs=structured_outputs,
        keeps_special=keeps_special,
        exact_text=keeps_special and exact_text,
    )


def completion_sampling(
    request: CompletionRequest, model: LoadedModel, *, prompt_tokens: int, structured_outputs: Json | None
) -> Json:
    """The sampling parameters of one prompt of a completion request. Raises BadRequest for values out of range."""
    limit = COMPLETION_TOKENS if request.max_tokens is None else request.max_tokens
    if request.echo and limit == 0:
        limit = 1
    prompt_logprobs = request.prompt_logprobs
    if prompt_logprobs is None and request.echo:
        prompt_logprobs = request.logprobs
    return _sampling(
        request,
        model,
        n=request.n,
        logprobs=request.logprobs,
        prompt_logprobs=prompt_logprobs,
        max_tokens=max_tokens(limit, prompt_tokens, model),
        structured_outputs=structured_outputs,
    )


def check_max_tokens(requested: int | None, model: LoadedModel) -> None:
    """Raise RequestRuleViolation where more output is asked for than the context could ever hold."""
    if requested is not None and requested > model.max_model_len:
        raise RequestRuleViolation(
            f"max_tokens={requested} cannot be greater than max_model_len={model.max_model_len}. "
            "Please request fewer output tokens.",
            param="max_tokens",
            value=requested,
        )


def max_tokens(requested: int | None, prompt_tokens: int, model: LoadedModel) -> int:
    """Output tokens: what the context leaves, the request asks for and the model's defaults allow."""
    room = model.max_model_len - prompt_tokens
    limits = (room, requested, model.default_sampling.get("max_new_tokens"))
    return min(each for each in limits if each is not None)


def _sampling(
    request: GenerationRequest,
    model: LoadedModel,
    *,
    n: int,
    logprobs: int | None,
    prompt_logprobs: int | None,
    max_tokens: int,
    structured_outputs: Json | None,
    keeps_special: bool = False,
    exact_text: bool = False,
) -> Json:
    values = {name: _value(request, name, model) for name in DEFAULTS}
    stop = [request.stop] if isinstance(request.stop, str) else list(request.stop or ())
    _check(values, request, n=n, max_tokens=max_tokens, stop=stop)
    is_greedy = values["temperature"] == 0
    if 0 < values["temperature"] < SMALLEST_TEMPERATURE:
        values["temperature"] = SMALLEST_TEMPERATURE
    skips_special = not keeps_special and request.skip_special_tokens is not False
    held_back = max(map(len, stop)) - 1 if stop and not request.include_stop_str_in_output else 0
    budget = request.thinking_token_budget
    chosen: Json = {
        "n": _unless(n, 1),
        "presence_penalty": values["presence_penalty"],
        "frequency_penalty": values["frequency_penalty"],
        "repetition_penalty": values["repetition_penalty"],
        "temperature": values["temperature"],
        "top_p": None if is_greedy else values["top_p"],
        "top_k": None if is_greedy else _unless(values["top_k"], 0),
        "min_p": None if is_greedy else values["min_p"],
        "seed": _unless(request.seed, -1),
        "stop": stop,
        "stop_token_ids": list(request.stop_token_ids or ()),
        "ignore_eos": request.ignore_eos or None,
        "max_tokens": _unless(max_tokens, COMPLETION_TOKENS),
        "min_tokens": request.min_tokens or None,
        "logprobs": None if request.logprob_token_ids else logprobs,
        "prompt_logprobs": prompt_logprobs,
        "logprob_token_ids": request.logprob_token_ids or None,
        "skip_special_tokens": None if skips_special else False,
        "spaces_between_special_tokens": None if request.spaces_between_special_tokens and not exact_text else False,
        "include_stop_str_in_output": request.include_stop_str_in_output or None,
        "output_kind": DELTA if request.stream else FINAL_ONLY,
        "stream_interval": request.stream_interval,
        "skip_clone": True,
        "output_text_buffer_length": held_back or None,
        "structured_outputs": structured_outputs,
        "logit_bias": _logit_bias(request.logit_bias),
        "allowed_token_ids": request.allowed_token_ids,
        "extra_args": request.vllm_xargs or None,
        "bad_words": request.bad_words,
        "skip_reading_prefix_cache": prompt_logprobs is not None,
        "thinking_token_budget": _unless(budget, -1),
        "repetition_detection": _repetition_detection(request.repetition_detection),
        "routed_experts_prompt_start": request.routed_experts_prompt_start,
    }
    return {name: value for name, value in chosen.items() if value is not None}


def _value(request: GenerationRequest, name: str, model: LoadedModel) -> Any:
    """The request's value, else the model's default, else the engine's."""
    value = getattr(request, name)
    return model.default_sampling.get(name, DEFAULTS[name]) if value is None else value


def _unless(value: Any, default: Any) -> Any:
    return None if value == default else value


def _logit_bias(bias: Mapping[str, float] | None) -> Json | None:
    if bias is None:
        return None
    wrong = [key for key in bias if not key.lstrip("-").isdecimal()]
    if wrong:
        raise RequestRuleViolation(
            f"logit_bias contains key(s) that cannot be converted to integer token IDs: {wrong}",
            param="logit_bias",
            value=wrong,
        )
    return {key: min(max(value, -LARGEST_BIAS), LARGEST_BIAS) for key, value in bias.items()}


def _repetition_detection(given: Mapping[str, Any] | None) -> Json | None:
    if given is None:
        return None
    made = {key: given.get(key, 0) for key in ("max_pattern_size", "min_pattern_size", "min_count")}
    wrong = next((key for key, value in made.items() if not isinstance(value, int)), None)
    if wrong is not None:
        raise BadRequest(f"repetition_detection.{wrong} must be an integer.", param="repetition_detection")
    if not 0 <= made["min_pattern_size"] <= made["max_pattern_size"]:
        raise BadRequest(
            "max_pattern_size, min_pattern_size must be >=0, with min_pattern_size <= max_pattern_size. "
            "Set both to 0 to disable repetitive pattern detection."
        )
    return made


def _check(values: Mapping[str, Any], request: GenerationRequest, *, n: int, max_tokens: int, stop: list[str]) -> None:
    """Raise the error of the first value out of range."""
    if n < 1:
        raise BadRequest(f"n must be at least 1, got {n}.")
    if n > conf.max_n_sequences:
        raise BadRequest(
            f"n must be at most {conf.max_n_sequences}, got {n}. To increase this limit, set the VLLM_MAX_N_SEQUENCES "
            "environment variable."
        )
    _check_values(values)
    if max_tokens < 1:
        raise RequestRuleViolation(
            f"max_tokens must be at least 1, got {max_tokens}.", param="max_tokens", value=max_tokens
        )
    if request.min_tokens < 0:
        raise BadRequest(f"min_tokens must be greater than or equal to 0, got {request.min_tokens}.")
    if request.min_tokens > max_tokens:
        raise BadRequest(f"min_tokens must be less than or equal to max_tokens={max_tokens}, got {request.min_tokens}.")
    if "" in stop:
        raise BadRequest("stop cannot contain an empty string.")
    if "" in request.bad_words:
        raise BadRequest(f"bad_words cannot contain an empty string. Got bad_words={request.bad_words}")
    if values["temperature"] == 0 and n > 1:
        raise BadRequest(f"n must be 1 when using greedy sampling, got {n}.")


def _check_values(values: Mapping[str, Any]) -> None:
    for name in ("presence_penalty", "frequency_penalty"):
        if not -2 <= values[name] <= 2:
            raise BadRequest(f"{name} must be in [-2, 2], got {values[name]}.")
    if not values["repetition_penalty"] > 0:
        raise BadRequest(f"repetition_penalty must be greater than zero, got {values['repetition_penalty']}.")
    temperature, top_p, top_k, min_p = (values[name] for name in ("temperature", "top_p", "top_k", "min_p"))
    if not 0 <= temperature <= 2:
        bound = "non-negative" if temperature < 0 else "in [0, 2]"
        raise RequestRuleViolation(
            f"temperature must be {bound}, got {temperature}.", param="temperature", value=temperature
        )
    if not 0 < top_p <= 1:
        raise RequestRuleViolation(f"top_p must be in (0, 1], got {top_p}.", param="top_p", value=top_p)
    if top_k < -1:
        raise BadRequest(f"top_k must be 0 (disable), or at least 1, got {top_k}.")
    if not 0 <= min_p <= 1:
        raise BadRequest(f"min_p must be in [0, 1], got {min_p}.")
