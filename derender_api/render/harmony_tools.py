"""Tools as gpt-oss models read them: a TypeScript namespace, spelled as OpenAI's Harmony renderer does.

// Current weather
type get_weather = (_: {
// Name of the city
city: string,
unit?: "c" | "f", // default: c
}) => any;
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

STEP = " " * 4
BRANCH_STEP = " " * 3
PLAIN_TYPES = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean"}

Schema = Mapping[str, Any]


def tools_section(tools: Sequence[Mapping[str, Any]]) -> str:
    """The developer message's part about functions. `tools` are complete tool objects."""
    lines = ["# Tools", "", "## functions", "", "namespace functions {", ""]
    for tool in tools:
        lines += [*_signature(tool["function"]), ""]
    return "\n".join([*lines, "} // namespace functions"])


def _signature(function: Mapping[str, Any]) -> Iterator[str]:
    for line in (function["description"] or "").splitlines():
        yield f"// {line}"
    parameters = function["parameters"]
    arguments = "" if parameters is None else f"_: {_type(parameters, '')}"
    yield f"type {function['name']} = ({arguments}) => any;"


def _type(schema: Any, indent: str) -> str:
    """The type of a schema; lines after the first begin with `indent`."""
    if not isinstance(schema, Mapping):
        return "any"
    if isinstance(schema.get("oneOf"), list):
        return " | ".join(_type(each, indent) for each in schema["oneOf"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(PLAIN_TYPES.get(str(each), str(each)) for each in kind)
    match kind:
        case "object":
            return _object(schema, indent)
        case "array":
            return f"{_type(schema['items'], indent)}[]" if "items" in schema else "Array<any>"
        case "string" if isinstance(schema.get("enum"), list) and schema["enum"]:
            made = " | ".join(f'"{each}"' for each in schema["enum"] if isinstance(each, str))
        case _:
            made = PLAIN_TYPES.get(kind, "any") if isinstance(kind, str) else "any"
    return f"{made} | null" if schema.get("nullable") is True and made != "any" else made


def _object(schema: Schema, indent: str) -> str:
    lines = [f"{indent}// {schema['description']}"] if isinstance(schema.get("description"), str) else []
    lines.append("{")
    properties, required = schema.get("properties"), schema.get("required")
    wanted = required if isinstance(required, list) else []
    if isinstance(properties, Mapping):
        for key, value in properties.items():
            lines += _property(key, value if isinstance(value, Mapping) else {}, indent, is_optional=key not in wanted)
    return "\n".join([*lines, f"{indent}}}"])


def _property(key: str, schema: Schema, indent: str, *, is_optional: bool) -> Iterator[str]:
    yield from (f"{indent}//{line}" for line in _comments(schema))
    name = f"{indent}{key}{'?' if is_optional else ''}:"
    if isinstance(schema.get("oneOf"), list):
        if "default" in schema:
            yield f"{indent}// default: {_shown_default(schema)}"
        yield name
        yield from (f"{indent} | {_branch(each, indent)}" for each in schema["oneOf"])
        yield f"{indent},"
        return
    default = f" // default: {_shown_default(schema)}" if "default" in schema else ""
    yield f"{name} {_type(schema, indent + STEP)},{default}"


def _comments(schema: Schema) -> Iterator[str]:
    """Title, description and examples of a property."""
    if isinstance(schema.get("title"), str):
        yield f" {schema['title']}"
        yield ""
    if isinstance(schema.get("description"), str):
        yield f" {schema['description']}"
    if isinstance(schema.get("examples"), list) and schema["examples"]:
        yield " Examples:"
        yield from (f" - {_json(each)}" for each in schema["examples"] if isinstance(each, str))


def _branch(schema: Any, indent: str) -> str:
    made = _type(schema, indent + BRANCH_STEP)
    notes = []
    if isinstance(schema, Mapping):
        if isinstance(schema.get("description"), str) and schema.get("type") != "object":
            notes.append(schema["description"])
        if "default" in schema:
            notes.append(f"default: {_shown_default(schema)}")
    return f"{made} // {' '.join(notes)}" if notes else made


def _shown_default(schema: Schema) -> str:
    """A default as JSON; one of an enumeration without quotes."""
    default = schema["default"]
    return default if isinstance(default, str) and isinstance(schema.get("enum"), list) else _json(default)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
