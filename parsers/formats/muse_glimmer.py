"""Meta Muse "Glimmer": messages as in `muse`, with other channels.

 to=self<|message|>The user asks for the weather.<|eom|>
<|start|>assistant to=get_weather<|message|><atem:invoke name="get_weather"></atem:invoke><|eot|>

Only `self` is thought; `commentary` is no answer; the reasoning parser wants every header to name a recipient.
"""

from __future__ import annotations

from typing import ClassVar

from parsers.engine.message_frames import BARE, Frame
from parsers.formats.muse import REASONING_HEADER, TOOL_HEADER, MuseReasoning, MuseTools

TOOL_FRAME = Frame(
    thoughts=frozenset({"self"}),
    answers=frozenset({"user", BARE}),
    dropped=frozenset(),
    header=TOOL_HEADER,
    quiet=frozenset({"commentary", "developer"}),
)
REASONING_FRAME = Frame(
    thoughts=frozenset({"self"}),
    answers=frozenset({"user"}),
    dropped=frozenset({"commentary", "developer"}),
    header=REASONING_HEADER,
    named=True,
    joins=True,
)


class GlimmerReasoning(MuseReasoning):
    """`muse_glimmer` as reasoning parser (newest 7.2)."""

    names = ("muse_glimmer",)
    frame: ClassVar[Frame] = REASONING_FRAME


class GlimmerTools(MuseTools):
    """`muse_glimmer` as tool parser (newest 6): values are decoded whatever their type."""

    names = ("muse_glimmer",)
    frame: ClassVar[Frame] = TOOL_FRAME
    keeps_text: ClassVar[bool] = False
