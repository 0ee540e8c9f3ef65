"""Reads calls written as XML elements, one block per call, leniently.

    <function name="get_weather"><param name="city">Paris</param></function>

A block that is well-formed XML is read as XML, any other by its tags alone.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from .assembly import dump_json

HEADER = re.compile(r"""<function\s*name\s*=\s*(?:"([^"]*)"|'([^']*)')[^>]*>""")
PARAM = re.compile(r"""<param\s*name\s*=\s*(?:"([^"]*)"|'([^']*)')[^>]*>(.*?)</param>""", re.DOTALL)
PLAIN = re.compile(r"""<param\s*name\s*=\s*(?:"[^"]*"|'[^']*')\s*>""")
_NAMELESS = re.compile(r"<param(?!\s*name\s*=)[^>]*>")
COLLAPSED = re.compile(r"<(function|param)name=")
_CDATA = re.compile(r"\s*<!\[CDATA\[(.*?)\]\]>\s*\Z", re.DOTALL)
_WRAPPERS = ("properties", "arguments")

Pairs = list[tuple[str, str]]


# --- values -----------------------------------------------------------------------------------------------------------


def _literal(text: str) -> Any:
    """The value of a JSON or Python literal. Raises ValueError for other text and for what JSON cannot say."""
    try:
        value = json.loads(text)
    except ValueError:
        try:
            value = ast.literal_eval(text.strip())
        except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
            raise ValueError(text) from error
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, RecursionError) as error:
        raise ValueError(text) from error


def convert(value: Any, schema: object) -> Any:
    """A parameter's value: text stays text only where the schema says string, or where it is no literal."""
    if isinstance(schema, Mapping) and schema.get("type") == "string":
        return value if isinstance(value, str) else dump_json(value)
    if not isinstance(value, str):
        return value
    try:
        return _literal(value)
    except (ValueError, RecursionError):
        return value


def properties_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def arguments_of(pairs: Pairs, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Arguments from keys and texts; None where they make the block invalid. Unknown keys are ignored."""
    properties = properties_of(schema)
    arguments: dict[str, Any] = {}
    for key, text in pairs:
        if key in arguments:
            return None
        if properties and key not in properties:
            inner = _unwrapped(text, properties) if key in _WRAPPERS else {}
            if inner is None:
                return None
            arguments.update(inner)
        elif not isinstance(properties.get(key, {}), Mapping):
            return None
        else:
            arguments[key] = convert(text, properties.get(key))
    return arguments


def _unwrapped(text: str, properties: Mapping[str, Any]) -> dict[str, Any] | None:
    """The known members of a dict that was given as one parameter."""
    try:
        value = _literal(text)
    except (ValueError, RecursionError):
        return None
    members = value if isinstance(value, dict) else {}
    return {key: convert(member, properties[key]) for key, member in members.items() if key in properties} or None


# --- blocks -----------------------------------------------------------------------------------------------------------


def trimmed(raw: str) -> str:
    """A value by its tags alone."""
    cdata = _CDATA.match(raw)
    return cdata.group(1) if cdata else raw.strip()


def is_certain(raw: str, schema: object) -> bool:
    """Whether a value is the same whether or not its block turns out to be well-formed XML."""
    if "<" in raw:
        return "<![CDATA[" not in raw or _CDATA.match(raw) is not None
    if "&" in raw:
        return False
    return raw == raw.strip() or dump_json(convert(raw, schema)) == dump_json(convert(raw.strip(), schema))


def _tagged_pairs(block: str) -> list[tuple[str, str]]:
    return [((match[1] or match[2] or "").strip(), match[3]) for match in PARAM.finditer(block)]


def read_block(block: str) -> tuple[str, Pairs] | None:
    """(name, keys and texts) of a complete block; None where it is none."""
    block = COLLAPSED.sub(r"<\1 name=", block)
    found = _read_xml(block)
    if found is None:
        header = HEADER.match(block)
        if header is None or _NAMELESS.search(block):
            return None
        found = (header[1] or header[2] or "").strip(), [(key, trimmed(raw)) for key, raw in _tagged_pairs(block)]
    name, pairs = found
    return found if name and all(key for key, _ in pairs) else None


def _read_xml(block: str) -> tuple[str, Pairs] | None:
    """A well-formed block with a name. A value that holds elements is taken as it is written."""
    try:
        root = ElementTree.fromstring(block)
    except (ElementTree.ParseError, ValueError, RecursionError):
        return None
    name = (root.get("name") or "").strip()
    if root.tag != "function" or not name:
        return None
    params = root.findall("param")
    wrapper = root.find("arguments")
    if not params and wrapper is not None:
        params = wrapper.findall("param")
    written = dict(_tagged_pairs(block))
    pairs: Pairs = []
    for param in params:
        key = (param.get("name") or "").strip()
        text = param.text or ""
        pairs.append((key, written.get(key, text).strip() if len(param) else text))
    return name, pairs
