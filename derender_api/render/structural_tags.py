"""Building blocks of structural tags: JSON that tells an engine's grammar compiler which text a model may write.

Key order and defaults are those of vLLM's answers, which an engine compiles and tests compare.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

Node = dict[str, Any]


def structural_tag(node: Node) -> str:
    """The tag as the text that `structured_outputs.structural_tag` holds."""
    return json.dumps({"type": "structural_tag", "format": node})


def tag(begin: str, content: Node, end: str | list[str]) -> Node:
    """Content between two texts."""
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def schema(value: Any, *, style: str = "json") -> Node:
    """Text of a JSON schema, written in a style; True allows every value."""
    return {
        "type": "json_schema",
        "json_schema": value,
        "style": style,
        "any_order": False,
        "max_whitespace_cnt": None,
        "excludes": [],
    }


def any_text(excludes: Sequence[str] = ()) -> Node:
    """Any text without `excludes`."""
    return {"type": "any_text", "excludes": list(excludes), "max_tokens": None, "max_chars": None}


def const(value: str) -> Node:
    """This text."""
    return {"type": "const_string", "value": value}


def regex(pattern: str) -> Node:
    """Text that matches."""
    return {"type": "regex", "pattern": pattern}


def sequence(*elements: Node) -> Node:
    """One after the other."""
    return {"type": "sequence", "elements": list(elements)}


def either(elements: Iterable[Node]) -> Node:
    """One of several."""
    return {"type": "or", "elements": list(elements)}


def either_or_alone(elements: Iterable[Node]) -> Node:
    """One of several; a single one alone."""
    nodes = list(elements)
    return nodes[0] if len(nodes) == 1 else either(nodes)


def optional(content: Node) -> Node:
    """Once or not at all."""
    return {"type": "optional", "content": content}


def star(content: Node) -> Node:
    """Any number of times."""
    return {"type": "star", "content": content}


def plus(content: Node) -> Node:
    """At least once."""
    return {"type": "plus", "content": content}


def separated(tags: Iterable[Node], *, single: bool, separator: str = "") -> Node:
    """At least one of the tags, with `separator` between them; `single`: no second one."""
    return {
        "type": "tags_with_separator",
        "tags": list(tags),
        "separator": separator,
        "at_least_one": True,
        "stop_after_first": single,
    }


def triggered(
    trigger: str, tags: Iterable[Node], *, single: bool, forced: bool = False, excludes: Sequence[str] = ()
) -> Node:
    """Free text without `excludes` in which one of the tags begins where `trigger` is written."""
    return {
        "type": "triggered_tags",
        "triggers": [trigger],
        "tags": list(tags),
        "at_least_one": forced,
        "stop_after_first": single,
        "excludes": list(excludes),
    }
