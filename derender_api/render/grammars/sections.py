"""Calls in a section of their own: DeepSeek, Kimi K2, MiniMax M2, PLaMo 3."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from derender_api.render.grammars.base import CallTool, guards_calls
from derender_api.render.grammars.plain import THOUGHTS
from derender_api.render.structural_tags import Node, const, regex, schema, separated, sequence, tag, triggered


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionCalls:
    """A section from `open` to `close` (or one of them), calls from `begin` to `end` in it, `separator` between them.

    `lead` is the text in front of a section that is forced. Such a section is a tag, or with `spelled` its parts in
    sequence. A named call is `merged` with the section's tag, stands `alone` in the sequence, or is a `list` of one.
    `trigger` defaults to `open`; `before` is what precedes the arguments within a call.
    """

    open: str
    close: str | tuple[str, ...]
    begin: str
    end: str
    trigger: str = ""
    separator: str = ""
    lead: str = ""
    spelled: bool = True
    named_call: Literal["merged", "alone", "list"] = "alone"
    style: str = "json"
    excludes: tuple[str, ...] = THOUGHTS
    before: tuple[Node, ...] = ()

    def forced(self, tools: Sequence[CallTool], *, single: bool) -> Node:
        """The section."""
        return self._section(self._list(tools, single=single))

    def named(self, tool: CallTool) -> Node:
        """The section with one call."""
        if self.named_call == "list":
            return self._section(self._list([tool], single=True))
        if self.named_call == "merged":
            return tag(self.open + self._begin(tool), self._arguments(tool), f"{self.end}{self.close}")
        return self._section(self._call(tool))

    def guarded(self, tools: Sequence[CallTool], *, single: bool) -> Node | None:
        """Free text with sections."""
        if not guards_calls(tools, single=single):
            return None
        section = tag(self.open, self._list(tools, single=single), self._close())
        return triggered(self.trigger or self.open, [section], single=single, excludes=self.excludes)

    def _section(self, content: Node) -> Node:
        if not self.spelled:
            return tag(self.open, content, self._close())
        return sequence(const(self.lead + self.open), content, const(str(self.close)))

    def _close(self) -> str | list[str]:
        return self.close if isinstance(self.close, str) else list(self.close)

    def _list(self, tools: Sequence[CallTool], *, single: bool) -> Node:
        return separated(map(self._call, tools), single=single, separator=self.separator)

    def _call(self, tool: CallTool) -> Node:
        return tag(self._begin(tool), self._arguments(tool), self.end)

    def _begin(self, tool: CallTool) -> str:
        return self.begin.replace("{name}", tool.name)

    def _arguments(self, tool: CallTool) -> Node:
        arguments = schema(tool.schema, style=self.style)
        return sequence(*self.before, arguments) if self.before else arguments


def _dsml(section: str, invoke: str, *, style: str) -> SectionCalls:
    return SectionCalls(
        open=f"<｜DSML｜{section}>\n",
        close=f"</｜DSML｜{section}>",
        begin=f'<｜DSML｜{invoke} name="{{name}}">\n',
        end=f"</｜DSML｜{invoke}>\n",
        trigger=f"<｜DSML｜{section}>",
        lead="\n\n",
        style=style,
    )


DEEPSEEK_V3 = SectionCalls(
    open="<｜tool▁calls▁begin｜>",
    close="<｜tool▁calls▁end｜>",
    begin="<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n",
    end="\n```<｜tool▁call▁end｜>",
    separator="\n",
    spelled=False,
    named_call="merged",
)
DEEPSEEK_V31 = SectionCalls(
    open="<｜tool▁calls▁begin｜>",
    close="<｜tool▁calls▁end｜>",
    begin="<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>",
    end="<｜tool▁call▁end｜>",
    spelled=False,
    named_call="merged",
)
DEEPSEEK_V32 = _dsml("function_calls", "invoke", style="deepseek_xml")
DEEPSEEK_V4 = _dsml("tool_calls", "invoke", style="deepseek_xml")
DEEPSEEK_V41 = _dsml(" calls", " invoke", style="deepseek_v4_1_xml")
KIMI_K2 = SectionCalls(
    open="<|tool_calls_section_begin|>",
    close="<|tool_calls_section_end|>",
    begin="<|tool_call_begin|>functions.{name}:",
    end="<|tool_call_end|>",
    excludes=(*THOUGHTS, "<|tool_call_begin|>"),
    before=(regex(r"\d+"), const("<|tool_call_argument_begin|>")),
)
MINIMAX_M2 = SectionCalls(
    open="<minimax:tool_call>\n",
    close="</minimax:tool_call>",
    begin='<invoke name="{name}">\n',
    end="</invoke>\n",
    trigger="<minimax:tool_call>",
    lead="\n",
    named_call="list",
    style="minimax_xml",
)
PLAMO3 = SectionCalls(
    open="<|plamo:begin_tool_requests:plamo|>",
    close=("<|plamo:end_tool_requests:plamo|>", "<|plamo:end_tool_requests:plamo|><|plamo:tag|>"),
    begin=(
        "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>{name}<|plamo:end_tool_name:plamo|>"
        "<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>"
    ),
    end="<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>",
    spelled=False,
    named_call="list",
    excludes=(),
)
