"""StepFun Step-3.5, Step-3.7 and Step-5: the markup of `qwen3`.

    <think>
    The user asks for the weather.
    </think>
    <tool_call>
    <function=get_weather>
    <parameter=city>
    Paris
    </parameter>
    </function>
    </tool_call>

Step-5 is read by `step5` for its calls and by `deepseek_r1` for its thoughts.
"""

from __future__ import annotations

from dataclasses import replace

from parsers.engine.context import RequestContext
from parsers.formats import qwen3
from parsers.formats.base import MarkerReasoning, MarkerTools


class Step3p5Reasoning(MarkerReasoning):
    """`step3p5` (xml 13): thinks whatever the template kwargs say; blank ends of the thoughts are dropped."""

    names = ("step3p5",)
    grammar = replace(qwen3.GRAMMAR, strips_reasoning=True)

    def thinks(self, context: RequestContext) -> bool:
        return True


class Step3p5Tools(MarkerTools):
    """`step3p5` (xml 4)."""

    names = ("step3p5",)
    grammar = qwen3.GRAMMAR


class Step5Tools(MarkerTools):
    """`step5` (xml 5): white space around calls stays."""

    names = ("step5",)
    grammar = replace(qwen3.GRAMMAR, boundaries=(), strips_content=False, drops_blank=False)
