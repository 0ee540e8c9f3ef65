"""What a parser needs to know of the request it answers, and the two rules that depend on nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from string import ascii_letters, digits
from typing import Any, Literal

_ALPHABET = ascii_letters + digits


@dataclass(frozen=True, slots=True)
class NamedToolChoice:
    """`tool_choice` naming one function."""

    name: str


ToolChoice = Literal["none", "auto", "required"] | NamedToolChoice | None


@dataclass(frozen=True)
class RequestContext:
    """The part of a chat request that changes how output is parsed (protocol 3.5).

    `tools` are the request's tool objects as plain dicts; `template_kwargs` the effective chat-template kwargs,
    `own_template_kwargs` those of the request alone. `call_id_seed` makes generated call IDs reproducible.
    """

    tools: Sequence[Mapping[str, Any]] | None = None
    tool_choice: ToolChoice = "none"
    parallel_tool_calls: bool = True
    include_reasoning: bool = True
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    own_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    history_tool_calls: int = 0
    structural_tag: Any = None
    call_id_seed: bytes = b""

    @cached_property
    def parameters(self) -> Mapping[str, Mapping[str, Any]]:
        """Function name -> its parameters schema ({} where it has none)."""
        schemas: dict[str, Mapping[str, Any]] = {}
        for tool in self.tools or ():
            function = tool.get("function")
            if isinstance(function, Mapping) and isinstance(function.get("name"), str):
                schema = function.get("parameters")
                schemas.setdefault(function["name"], schema if isinstance(schema, Mapping) else {})
        return schemas

    @property
    def keeps_calls(self) -> bool:
        """Whether calls appear in the answer at all (protocol 8.6).

        An explicit null asks for nothing else than "auto".
        """
        if self.tool_choice == "auto" or self.tool_choice is None:
            return bool(self.tools)
        return self.forces_call

    @property
    def forces_call(self) -> bool:
        """`tool_choice` is "required" or names a function."""
        return self.tool_choice == "required" or isinstance(self.tool_choice, NamedToolChoice)

    def template_flag(self, *names: str, default: bool) -> bool:
        """Truth of the first template kwargs that are set; null counts as absent (engine 1.1)."""
        values = [self.template_kwargs[name] for name in names if self.template_kwargs.get(name) is not None]
        return any(map(bool, values)) if values else default

    def random_hex(self, index: int, digits: int = 16) -> str:
        """`digits` hex digits for call `index`, the same for the same seed."""
        digest = blake2b(index.to_bytes(8, "big"), key=self.call_id_seed[:64], digest_size=32)
        return digest.hexdigest()[:digits]

    def random_letters(self, index: int, count: int) -> str:
        """`count` letters and digits for call `index`, the same for the same seed."""
        digest = blake2b(index.to_bytes(8, "big"), key=self.call_id_seed[:64], digest_size=32).digest()
        return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:count])

    def call_id(self, index: int) -> str:
        """The ID of call `index` where the format has none of its own."""
        return f"chatcmpl-tool-{self.random_hex(index)}"


def finish_reason(context: RequestContext, reason: str | None, has_calls: bool) -> str:
    """The answer's finish reason: "tool_calls" replaces "stop" unless the choice names a function (protocol 8.6)."""
    reason = reason or "stop"
    if has_calls and reason == "stop" and not isinstance(context.tool_choice, NamedToolChoice):
        return "tool_calls"
    return reason
