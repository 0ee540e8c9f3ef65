"""Response templates: the Hugging Face way of describing a model's output in its tokenizer configuration (newest 9.1).

A template names an anchor, behind which the answer begins, and up to three fields (thinking, content, tool_calls) with
the delimiters around each. It is checked and compiled once per model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import regex

from .exceptions import ParserConfigurationError
from .response_values import ValueReader, value_reader

FIELDS = ("thinking", "content", "tool_calls")
_KEYS = frozenset({"version", "defaults", "start_anchor", "start_anchor_pattern", "fields"})
_DELIMITER_KEYS = frozenset({"open", "open_pattern", "close", "close_pattern"})
_FIELD_KEYS = _DELIMITER_KEYS | {
    "content",
    "content_args",
    "repeats",
    "join",
    "optional",
    "transform",
    "transform_each",
}

LONGEST = 1024
"""Code points that a delimiter may have. What begins like one and is longer is text."""


class InvalidTemplateError(ValueError):
    """What is wrong with a template; the operator's fault."""


@dataclass(frozen=True, slots=True)
class Found:
    """A delimiter's place in a text. `pending`: more text may still change it."""

    start: int
    end: int
    captures: Mapping[str, str]
    pending: bool


class Delimiter:
    """Literals, the longest of which counts, or a regular expression."""

    def __init__(self, literals: Sequence[str] = (), pattern: str | None = None) -> None:
        self.literals = tuple(sorted(literals, key=len, reverse=True))
        self.is_pattern = pattern is not None
        source = "|".join(map(regex.escape, self.literals)) if pattern is None else pattern
        try:
            self._pattern = regex.compile(source, regex.DOTALL)
        except regex.error as error:
            raise InvalidTemplateError(f"pattern {source!r}: {error}") from error
        self._needed = _final_literal(source)

    @property
    def groups(self) -> frozenset[str]:
        return frozenset(self._pattern.groupindex)

    def search(self, text: str, position: int, *, final: bool) -> Found | None:
        """The first match from `position` on; where there is none and more may come, the first beginning of one."""
        match = self._pattern.search(text, position) if self._needed in text else None
        while match is not None and match.end() - match.start() > LONGEST:
            match = self._pattern.search(text, match.end() - LONGEST)
        if match is not None:
            open_end = match.end() == len(text) and not final
            return Found(match.start(), match.end(), _captures(match), open_end and self._may_change(match))
        if final:
            return None
        match = self._pattern.search(text, position, partial=True)
        if match is None or match.start() == len(text):
            return None
        return Found(match.start(), match.end(), {}, True)

    def _may_change(self, match: regex.Match[str]) -> bool:
        if self.is_pattern or match.start() == match.end():
            return True
        found = match.group()
        return any(text != found and text.startswith(found) for text in self.literals)

    def last(self, text: str) -> int | None:
        """Where the last match ends."""
        end = None
        for match in self._pattern.finditer(text):
            end = match.end()
        return end


def _captures(match: regex.Match[str]) -> Mapping[str, str]:
    return {name: text for name, text in match.groupdict().items() if text is not None}


def _final_literal(source: str) -> str:
    """Text that every match of `source` ends with, "" where that is not obvious. Spares searches that must fail."""
    if re.search(r"\(\?[a-zA-Z]", source) or _has_alternatives(source):
        return ""
    tail = re.search(r"(?:\\[^\w\s]|[^\\()\[\]{}?*+.^$|])*\Z", source)
    text = tail.group() if tail else ""
    before = source[: len(source) - len(text)]
    if before.endswith("\\") or (before and before[-1] not in ")]}.?*+"):
        return ""
    return re.sub(r"\\(.)", r"\1", text)


def _has_alternatives(source: str) -> bool:
    depth = 0
    for character in re.sub(r"\\.|\[[^\]]*\]", "", source):
        depth += (character == "(") - (character == ")")
        if character == "|" and depth == 0:
            return True
    return False


@dataclass(frozen=True, slots=True)
class FieldTemplate:
    """One field: where it begins and ends, and for calls how its text is read."""

    name: str
    open: Delimiter | None
    close: Delimiter | None
    reader: ValueReader | None = None


@dataclass(frozen=True, slots=True)
class ResponseTemplate:
    """A compiled template. `implicit` is the field of text outside all others, None where such text is nobody's."""

    anchor: Delimiter
    fields: Mapping[str, FieldTemplate]
    implicit: str | None


def compile_template(source: object) -> ResponseTemplate:
    """Raises InvalidTemplateError."""
    template = _object(source, "response_template", _KEYS)
    if template.get("version", 1) != 1:
        raise InvalidTemplateError(f"unsupported version {template['version']!r}")
    if set(_object(template.get("defaults", {}), "defaults")) - {"role"}:
        raise InvalidTemplateError("defaults may only set `role`")
    if ("start_anchor" in template) == ("start_anchor_pattern" in template):
        raise InvalidTemplateError("exactly one of `start_anchor` and `start_anchor_pattern` is needed")
    anchor = _delimiter(template, "start_anchor")
    assert anchor is not None
    fields = {}
    for name, value in _object(template.get("fields"), "fields").items():
        if name not in FIELDS:
            raise InvalidTemplateError(f"unknown field {name!r}; known: {', '.join(FIELDS)}")
        fields[name] = _field(name, _object(value, name, _FIELD_KEYS))
    implicit = [name for name, field in fields.items() if field.open is None]
    if len(implicit) > 1:
        raise InvalidTemplateError(f"more than one field without an opening delimiter: {', '.join(implicit)}")
    if not implicit and "content" not in fields:
        fields["content"] = FieldTemplate("content", None, None)
        implicit = ["content"]
    return ResponseTemplate(anchor, fields, implicit[0] if implicit else None)


def _object(value: object, name: str, known: frozenset[str] | None = None) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidTemplateError(f"`{name}` must be an object")
    unknown = set(value) - known if known is not None else ()
    if unknown:
        raise InvalidTemplateError(f"`{name}` has unknown keys: {', '.join(sorted(unknown))}")
    return value


def _field(name: str, source: Mapping[str, Any]) -> FieldTemplate:
    opening, closing = _delimiter(source, "open"), _delimiter(source, "close")
    if name != "tool_calls":
        if source.get("content", "text") != "text" or "transform" in source or "join" in source:
            raise InvalidTemplateError(f"`{name}` can only be text, without transform or join")
        return FieldTemplate(name, opening, closing)
    captures = frozenset().union(*(delimiter.groups for delimiter in (opening, closing) if delimiter is not None))
    if captures and "transform" not in source:
        raise InvalidTemplateError(f"`{name}` has named groups but no transform")
    try:
        reader = value_reader(source)
    except (KeyError, TypeError, ValueError, regex.error) as error:
        raise InvalidTemplateError(f"`{name}`: {error}") from error
    return FieldTemplate(name, opening, closing, reader)


def _delimiter(source: Mapping[str, Any], key: str) -> Delimiter | None:
    literal, pattern = source.get(key), source.get(f"{key}_pattern")
    if literal is not None and pattern is not None:
        raise InvalidTemplateError(f"`{key}` and `{key}_pattern` exclude each other")
    if pattern is not None:
        if not isinstance(pattern, str):
            raise InvalidTemplateError(f"`{key}_pattern` must be a string")
        return Delimiter(pattern=pattern)
    if literal is None:
        return None
    literals = [literal] if isinstance(literal, str) else literal
    if not isinstance(literals, list) or not literals or not all(isinstance(text, str) and text for text in literals):
        raise InvalidTemplateError(f"`{key}` must be a string or a list of strings, none of them empty")
    return Delimiter(literals)


def template_of(source: object, *, flags: str, needs: Sequence[str]) -> ResponseTemplate:
    """The compiled template of a tokenizer. `needs` are the fields without which `flags` make no sense.

    Raises ParserConfigurationError, naming the flags.
    """
    if source is None:
        raise ParserConfigurationError(
            f"{flags} requires `response_template` metadata in the tokenizer configuration: "
            "add it to tokenizer_config.json or choose another parser"
        )
    try:
        template = compile_template(source)
    except InvalidTemplateError as error:
        raise ParserConfigurationError(f"Invalid response_template metadata: {error} ({flags} reads it)") from error
    for name in needs:
        if name not in template.fields:
            raise ParserConfigurationError(f"{flags} requires a response_template with a `{name}` field")
    return template
