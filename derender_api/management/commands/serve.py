"""`manage.py serve [MODEL]`: serves models with the production server. Flags are named as vLLM's."""

import json
import logging
import os
import re
import time
from argparse import ArgumentTypeError
from ipaddress import ip_address
from pathlib import Path
from typing import Any, get_args

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from derender_api.authorization import lets_everyone_in
from derender_api.catalog import catalog
from derender_api.model_sources import read_config_file
from derender_api.server import ServerError, ServerOptions, default_workers, run_server
from parsers.configuration import (
    ModelConfiguration,
    ModelConfigurationError,
    TokenizerMode,
    configuration_from_mapping,
)

logger = logging.getLogger(__name__)

MODEL_FLAGS = (
    "served_model_name",
    "revision",
    "tokenizer",
    "tokenizer_mode",
    "tool_call_parser",
    "reasoning_parser",
    "enable_auto_tool_choice",
    "chat_template",
    "default_chat_template_kwargs",
    "max_model_len",
    "max_logprobs",
    "stream_state_format",
    "trust_request_chat_template",
    "chat_template_content_format",
    "exclude_tools_when_tool_choice_none",
    "generation_config",
    "override_generation_config",
    "engine_url",
    "engine_model",
)
"""Flags that describe MODEL; they make no sense without it."""

VALIDATION_SECONDS = 1.5
"""Time spent at start on loading models; what is left is loaded by its first request."""

LENGTH_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


class Command(BaseCommand):
    """Start the server."""

    help = (
        "Serve MODEL, or the models of --config, besides those of the settings and of the ServedModel table. "
        "Without any of these the bundled demo model is served."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the flags."""
        parser.add_argument("model", nargs="?", metavar="MODEL", help="folder or hub id with the model's tokenizer")
        parser.add_argument("--config", type=Path, metavar="FILE", help='JSON or TOML: {"models": [{...}, ...]}')
        _add_model_arguments(parser.add_argument_group("the served model"))
        server = parser.add_argument_group("the server")
        server.add_argument(
            "--api-key",
            nargs="+",
            metavar="KEY",
            help="demand one of these bearer tokens below /v1 (or set DERENDER_API_KEY, or manage.py create_api_key)",
        )
        server.add_argument("--host", default="0.0.0.0", help="address to listen on (default: all)")
        server.add_argument("--port", type=_port, default=8000)
        server.add_argument("--workers", type=int, default=default_workers(), help="processes (default: one per CPU)")
        server.add_argument("--threads", type=int, default=4, help="threads per worker")
        server.add_argument(
            "--max-concurrent-requests",
            type=int,
            metavar="N",
            help="answer further requests with 503 (or set DERENDER_MAX_CONCURRENT_REQUESTS; default: no limit)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Validate the models, then serve until SIGTERM."""
        # The workers fork after tokenizers were used; the library's own thread pool does not survive that.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        if options["workers"] < 1 or options["threads"] < 1:
            raise CommandError("--workers and --threads must be at least 1.")
        if (options["max_concurrent_requests"] or 0) < 0:
            raise CommandError("--max-concurrent-requests must be at least 1, or 0 for no limit.")
        for flag in ("api_key", "max_concurrent_requests"):
            if options[flag] is not None:
                settings.DERENDER = {**settings.DERENDER, flag.upper(): options[flag]}
        try:
            catalog.serve(command_line_models(options))
            self._load_models()
            _warn_of_strangers(options["host"])
            run_server(ServerOptions(**{key: options[key] for key in ("host", "port", "workers", "threads")}))
        except (ModelConfigurationError, ServerError) as exc:
            raise CommandError(str(exc)) from exc

    def _load_models(self) -> None:
        started = time.monotonic()
        left = catalog.validate(seconds=VALIDATION_SECONDS)
        models = catalog.models()
        shown = ", ".join(model.configuration.name for model in models[:5]) + (", ..." if len(models) > 5 else "")
        logger.info("Serving %d models: %s", len(models), shown)
        logger.info("Loaded %d of them in %.1f s", len(models) - left, time.monotonic() - started)
        if left:
            logger.info("The other %d are loaded by their first request", left)


def _warn_of_strangers(host: str) -> None:
    """The keys are read here, too, so that every worker knows them from its first request on."""
    try:
        is_loopback = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if lets_everyone_in() and not is_loopback:
        logger.warning(
            "No API key is set: everyone who reaches this machine may use the service. "
            "Make one (manage.py create_api_key NAME), or serve on --host 127.0.0.1."
        )


def command_line_models(options: dict[str, Any]) -> list[ModelConfiguration]:
    """The models that the command line names, by MODEL and its flags or by --config; may be empty."""
    given = [flag for flag in MODEL_FLAGS if options.get(flag) not in (None, False)]
    if options["model"] and options["config"]:
        raise ModelConfigurationError("MODEL and --config exclude each other; put MODEL into the file.")
    if given and not options["model"]:
        raise ModelConfigurationError(
            f"--{given[0].replace('_', '-')} describes MODEL, which is missing; with --config it belongs into the file."
        )
    if options["config"]:
        return read_config_file(options["config"])
    return [_model_of_flags(options)] if options["model"] else []


def _model_of_flags(options: dict[str, Any]) -> ModelConfiguration:
    values = {flag: options[flag] for flag in MODEL_FLAGS if flag not in ("served_model_name", "engine_url")}
    name, *aliases = options["served_model_name"] or [None]
    names = {"model": options["model"], "name": name, "aliases": aliases}
    return configuration_from_mapping({**values, **names, "engine_urls": options["engine_url"]})


def _add_model_arguments(group: Any) -> None:
    group.add_argument("--served-model-name", nargs="+", metavar="NAME", help="names in requests; the first in answers")
    group.add_argument("--tokenizer", help="folder or hub id of the tokenizer (default: MODEL)")
    group.add_argument("--revision", help="revision of the hub repository")
    group.add_argument("--tokenizer-mode", choices=get_args(TokenizerMode))
    group.add_argument("--tool-call-parser", metavar="PARSER")
    group.add_argument("--reasoning-parser", metavar="PARSER")
    group.add_argument("--enable-auto-tool-choice", action="store_true", help="without it the tool parser does not run")
    group.add_argument("--chat-template", help="file, or the template itself")
    group.add_argument("--default-chat-template-kwargs", type=_json_object, metavar="JSON")
    group.add_argument("--max-model-len", type=_length, metavar="TOKENS", help="also 32k (x 1000), 32K (x 1024)")
    group.add_argument("--max-logprobs", type=int, help="most logprobs per token (default: 20; -1: no limit)")
    group.add_argument(
        "--stream-state-format",
        choices=["replay", "compact"],
        help="form of stream states for clients that ask for none (default: replay, as vLLM's)",
    )
    _add_render_arguments(group)
    group.add_argument(
        "--engine-url", nargs="+", metavar="URL", help="engines that generate: answer /v1/chat/completions through them"
    )
    group.add_argument("--engine-model", metavar="NAME", help="the model's name there (default: not told)")


def _add_render_arguments(group: Any) -> None:
    group.add_argument(
        "--trust-request-chat-template", action="store_true", help="requests may bring their own chat template"
    )
    group.add_argument(
        "--chat-template-content-format",
        choices=("auto", "string", "openai"),
        help="content of messages for the template: text or list of parts (default: auto, what the template reads)",
    )
    group.add_argument(
        "--exclude-tools-when-tool-choice-none",
        action="store_true",
        help='no tools in prompts where the choice is "none"',
    )
    group.add_argument(
        "--generation-config",
        metavar="SOURCE",
        help='default sampling parameters: "auto" (default: the model\'s), "vllm" (none), or a folder',
    )
    group.add_argument("--override-generation-config", type=_json_object, metavar="JSON")


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as exc:
        raise ArgumentTypeError(f"not JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise ArgumentTypeError('expected a JSON object such as {"enable_thinking": false}')
    return value


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 2**16:
        raise ArgumentTypeError(f"{text!r} is not a port (1 to 65535)")
    return int(text)


def _length(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgKMG]?)", text)
    if match is None:
        raise ArgumentTypeError(f"{text!r} is not a number of tokens such as 32768, 32k or 32K")
    return int(float(match[1]) * LENGTH_UNITS[match[2]])
