"""Harmony: thoughts, a preamble, then calls or the answer, in channels; constraints apply to the answer's channel."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from derender_api.render.grammars.base import CallTool, guards_calls
from derender_api.render.structural_tags import Node, any_text, const, either, optional, schema, sequence, tag

CHANNELS = ("commentary", "analysis", "final")
CONTENT_TYPES = ("json", "<|constrain|>json")
ENDS = ["<|end|>", ""]


class HarmonyCalls:
    """Calls have a recipient in front of their channel or behind it."""

    def forced(self, tools: Sequence[CallTool], *, single: bool) -> Node:
        """A call, behind thoughts and a preamble."""
        return self._message(_calls(tools))

    def named(self, tool: CallTool) -> Node:
        """A call of this tool."""
        return self._message(_calls([tool]))

    def guarded(self, tools: Sequence[CallTool], *, single: bool) -> Node | None:
        """A call or an answer."""
        if not guards_calls(tools, single=single):
            return None
        finals = (*_final_openings(), "<|channel|>final<|message|>")
        return self._message([*_calls(tools), *(tag(begin, any_text(), ENDS) for begin in finals)])

    def _message(self, last: Iterator[Node] | list[Node]) -> Node:
        return sequence(_before("analysis"), _before("commentary"), either(last))


def answer_constraint(outputs: Mapping[str, Any], content: Node) -> Node:
    """A constraint of the answer alone; JSON is announced as such."""
    if outputs.get("json") is None and outputs.get("json_object") is None:
        last = tag("<|channel|>final<|message|>", content, ENDS)
    else:
        last = either(tag(begin, content, ENDS) for begin in _final_openings())
    return sequence(_before("analysis"), last)


def _before(channel: str) -> Node:
    """A message in another channel, or none."""
    return optional(
        sequence(tag(f"<|channel|>{channel}<|message|>", any_text(), "<|end|>"), const("<|start|>assistant"))
    )


def _final_openings() -> list[str]:
    return [f"<|channel|>final {kind}<|message|>" for kind in CONTENT_TYPES]


def _calls(tools: Sequence[CallTool]) -> Iterator[Node]:
    for tool in tools:
        for spelling in (" to=functions.{name}<|channel|>{channel}", "<|channel|>{channel} to=functions.{name}"):
            for kind, channel in product(CONTENT_TYPES, CHANNELS):
                begin = spelling.replace("{channel}", channel).replace("{name}", tool.name)
                yield tag(f"{begin} {kind}<|message|>", schema(tool.schema), ENDS)


HARMONY = HarmonyCalls()
