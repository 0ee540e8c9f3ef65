"""Calls that stand alone in the text: Hermes, Longcat, Qwen3-Coder and its relatives, MiMo, Llama."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from derender_api.render.grammars.base import CallTool, guards_calls
from derender_api.render.structural_tags import Node, schema, separated, tag, triggered

THOUGHTS = ("<think>", "</think>")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainCalls:
    """`spellings`: pairs of what a call begins and ends with, `{name}` being the tool's name.

    `trigger` is what every call begins with, `excludes` what free text must not hold, `style` how arguments look.
    """

    spellings: tuple[tuple[str, str], ...]
    trigger: str
    excludes: tuple[str, ...] = ()
    style: str = "json"

    def forced(self, tools: Sequence[CallTool], *, single: bool) -> Node:
        """Several spellings are alternatives of a list; a single one is waited for in the text."""
        if len(self.spellings) > 1:
            return separated(self._calls(tools), single=single)
        return triggered(self.trigger, self._calls(tools), single=single, forced=True, excludes=self.excludes)

    def named(self, tool: CallTool) -> Node:
        """The call alone."""
        calls = list(self._calls([tool]))
        return calls[0] if len(calls) == 1 else separated(calls, single=True)

    def guarded(self, tools: Sequence[CallTool], *, single: bool) -> Node | None:
        """Free text with calls."""
        if not guards_calls(tools, single=single):
            return None
        return triggered(self.trigger, self._calls(tools), single=single, excludes=self.excludes)

    def _calls(self, tools: Sequence[CallTool]) -> Iterator[Node]:
        for tool in tools:
            for begin, end in self.spellings:
                yield tag(begin.replace("{name}", tool.name), schema(tool.schema, style=self.style), end)


def json_block(marker: str) -> PlainCalls:
    """JSON objects between `<marker>` and `</marker>`, with or without line breaks."""
    call = '{"name": "{name}", "arguments": '
    return PlainCalls(
        spellings=((f"<{marker}>\n{call}", f"}}\n</{marker}>"), (f"<{marker}>{call}", f"}}</{marker}>")),
        trigger=f"<{marker}>",
    )


HERMES = json_block("tool_call")
LONGCAT = json_block("longcat_tool_call")
QWEN_XML = PlainCalls(
    spellings=(("<tool_call>\n<function={name}>\n", "\n</function>\n</tool_call>"),),
    trigger="<tool_call>\n<function=",
    excludes=THOUGHTS,
    style="qwen_xml",
)
MIMO = PlainCalls(
    spellings=(("<tool_call><function={name}>", "</function></tool_call>"),),
    trigger="<tool_call>",
    excludes=(*THOUGHTS, "</tool_call>", "<function="),
    style="qwen_xml",
)
LLAMA = PlainCalls(spellings=(('{"name": "{name}", "parameters": ', "}"),), trigger='{"name": ', excludes=THOUGHTS)
