"""Tencent Hunyuan "HY" v4: as v3, without a separator behind the name and with tags whose suffix differs per model.

<think:x>The user asks for the weather.</think:x>Let me look.<tool_calls:x><tool_call:x>get_weather
<arg_key:x>city</arg_key:x><arg_value:x>Paris</arg_value:x></tool_call:x></tool_calls:x>

(in one line). Inside a block, spelled tags count as well.
"""

from __future__ import annotations

import re
from typing import ClassVar

from parsers.engine.assembly import unique_keys
from parsers.engine.context import RequestContext
from parsers.engine.exceptions import ParserConfigurationError
from parsers.engine.lexer import Lexer
from parsers.engine.stage import Outcome, ToolFormat, ToolStage
from parsers.engine.tagged_pairs import TaggedCalls, Tags
from parsers.engine.vocabulary import Vocabulary
from parsers.formats.hy_v3 import TAGS, HyV3Reasoning, bind, suffixed

_SUFFIXED = re.compile(r"<(?:think|tool_calls|tool_call|arg_key|arg_value)((?::[^<>]*)?)>\Z")


def suffix_of(vocabulary: Vocabulary) -> str:
    """The suffix of this model's tags: that of the first vocabulary entry that looks like one of them."""
    for piece in vocabulary.pieces():
        if piece.startswith("<") and (match := _SUFFIXED.match(piece)):
            return match.group(1)
    return ""


class StrictTaggedCalls(TaggedCalls):
    """A block that is not well-formed throughout is no call for a one-shot answer (newest 4)."""

    strict: ClassVar[bool] = True
    header_ends: ClassVar[frozenset[str]] = frozenset({"key", "end_call"})

    def __init__(self, tags: Tags, context: RequestContext) -> None:
        super().__init__(tags, context)
        self.spells_content = context.structural_tag is not None
        self._names = {text: name for name, text in tags.texts.items()}
        inner = Lexer(text for name, text in tags.texts.items() if name != "calls")
        self._lexers = {
            **dict.fromkeys(("block", "name", "args", "key", "gap"), inner),
            "value": Lexer([tags.texts["end_value"]]),
        }
        if self.spells_content:
            self._lexers["content"] = Lexer([tags.texts["calls"]])


class HyV4Tools(ToolFormat):
    """`hy_v4` (newest 4)."""

    names = ("hy_v4",)
    merges_entries = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        special = vocabulary.extra("model_specific_special_tokens")
        if isinstance(special, dict) and special.get("think_begin_token"):
            raise ParserConfigurationError(
                "the tokenizer names a think_begin_token of its own, which hy_v4 does not support"
            )
        self._tags = bind(vocabulary, TAGS, suffix_of(vocabulary))
        self.marks = {token_id: self._tags.texts[name] for token_id, name in self._tags.by_id.items()}

    def open(self, context: RequestContext, *, with_reasoning: bool) -> ToolStage:
        return StrictTaggedCalls(self._tags, context)

    def settle(self, outcome: Outcome) -> None:
        if outcome.malformed:
            outcome.calls = []
        for call in outcome.calls:
            call.arguments = unique_keys(call.arguments)
        outcome.called = bool(outcome.calls)


class HyV4Reasoning(HyV3Reasoning):
    """`hy_v4` (newest 5): thinks unless the template was asked not to."""

    names = ("hy_v4",)
    needs_tags = False
    default_effort: ClassVar[str] = "high"

    def spellings(self) -> tuple[str, str]:
        suffix = suffix_of(self.vocabulary)
        return suffixed("<think>", suffix), suffixed("</think>", suffix)
