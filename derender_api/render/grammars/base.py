"""The interface of call grammars, and the tools that they write."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from derender_api.render.structural_tags import Node


@dataclass(frozen=True, slots=True)
class CallTool:
    """A tool as grammars see it: `parameters` None where the request names none."""

    name: str
    parameters: Any
    strict: bool

    @property
    def schema(self) -> Any:
        """The schema its arguments are held to; True for every value, as for all tools that are not strict."""
        return self.parameters if self.strict and self.parameters is not None else True


class CallGrammar(Protocol):
    """How one family's calls are written. `single`: no second call."""

    def forced(self, tools: Sequence[CallTool], *, single: bool) -> Node:
        """At least one call."""
        ...

    def named(self, tool: CallTool) -> Node:
        """Exactly one call of this tool."""
        ...

    def guarded(self, tools: Sequence[CallTool], *, single: bool) -> Node | None:
        """Free text, in which calls are well-formed; None where the family leaves that to the model."""
        ...


def guards_calls(tools: Sequence[CallTool], *, single: bool) -> bool:
    """Whether a request with the choice "auto" wants its calls guarded: a strict tool, or no second call."""
    return single or any(tool.strict for tool in tools)
