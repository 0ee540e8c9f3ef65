"""Calls of Llama 4: a Python list, in markers or without.

Sample:

    <|python_start|>[get_weather(city="Paris"), search(query='museums')]<|python_end|>
"""

from __future__ import annotations

from typing import ClassVar

from .pythonic import Pythonic


class Llama4Pythonic(Pythonic):
    """`llama4_pythonic` (pythonic_misc 3)."""

    names = ("llama4_pythonic",)
    tags: ClassVar[tuple[str, ...]] = ("<|python_start|>", "<|python_end|>")
