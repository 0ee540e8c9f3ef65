"""Tencent Hunyuan "HY" v3: thoughts, then calls as tagged pairs. A tokenizer may give the tags a suffix (`<think:x>`).

<think>The user asks for the weather.</think>Let me look.
<tool_calls>
<tool_call>get_weather<tool_sep>
<arg_key>city</arg_key>
<arg_value>Paris</arg_value>
</tool_call>
</tool_calls>
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from parsers.engine.assembly import unique_keys
from parsers.engine.context import RequestContext
from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.stage import Outcome, ToolFormat, ToolStage
from parsers.engine.tagged_pairs import TaggedCalls, Tags
from parsers.engine.vocabulary import Vocabulary
from parsers.formats.deepseek_r1 import ThinkFormat

TAGS = {
    "calls": "<tool_calls>",
    "end_calls": "</tool_calls>",
    "call": "<tool_call>",
    "end_call": "</tool_call>",
    "key": "<arg_key>",
    "end_key": "</arg_key>",
    "value": "<arg_value>",
    "end_value": "</arg_value>",
}
SEPARATOR = {"separator": "<tool_sep>"}


def suffixed(tag: str, suffix: str) -> str:
    """`<think>` with its suffix: `<think:x>`."""
    return f"{tag[:-1]}{suffix}>"


def bind(vocabulary: Vocabulary, tags: Mapping[str, str], suffix: str) -> Tags:
    """Raises ParserConfigurationError if the tokenizer lacks the tags around a block of calls."""
    texts = {name: suffixed(tag, suffix) for name, tag in tags.items()}
    ids = {name: vocabulary.token_id(text) for name, text in texts.items()}
    if ids["calls"] is None or ids["end_calls"] is None:
        raise ParserConfigurationError(f"the tokenizer has no {texts['calls']} and {texts['end_calls']} tokens")
    return Tags(
        texts=texts,
        by_id={token_id: name for name, token_id in ids.items() if token_id is not None},
        spelled={texts[name]: name for name, token_id in ids.items() if token_id is None},
    )


class HyV3Tools(ToolFormat):
    """`hy_v3` (newest 2)."""

    names = ("hy_v3",)
    guided_choice = True
    merges_entries = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        suffix = vocabulary.extra("token_suffix")
        self._tags = bind(vocabulary, TAGS | SEPARATOR, suffix if isinstance(suffix, str) else "")
        self.marks = {token_id: self._tags.texts[name] for token_id, name in self._tags.by_id.items()}

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return TaggedCalls(self._tags, context)

    def settle(self, outcome: Outcome) -> None:
        for call in outcome.calls:
            call.arguments = unique_keys(call.arguments)
        outcome.called = bool(outcome.calls) or self._tags.texts["calls"] in outcome.raw


class HyV3Reasoning(ThinkFormat):
    """`hy_v3` (newest 3): thinks only if the template was asked for an effort."""

    names = ("hy_v3",)
    default_effort: ClassVar[str] = "no_think"

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.marks = dict(vocabulary.special_tokens) | dict(self.marks)

    def spellings(self) -> tuple[str, str]:
        suffix = self.vocabulary.extra("token_suffix")
        suffix = suffix if isinstance(suffix, str) else ""
        return suffixed("<think>", suffix), suffixed("</think>", suffix)

    def thinks(self, context: RequestContext) -> bool:
        return (context.template_kwargs.get("reasoning_effort") or self.default_effort) != "no_think"
