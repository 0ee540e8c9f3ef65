"""What converting a whole Python call list gives, with the standard `ast` module: the yardstick of the readers' tests.

Also hypothesis strategies for call lists and for damaged ones.
"""

import ast
import json
import math

from hypothesis import strategies as st

# The one literal of the strategies that overflows: no JSON, so it stays the text that the model wrote.
_INFINITE = "1e999"
_NAMES = {"true": True, "false": False, "null": None}


def calls_of(text):
    """(name, arguments) of each call of a list, None if it is no call list (pythonic_misc 1.1)."""
    try:
        first = ast.parse(text).body[0]
        if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.List):
            return None
        return tuple(_call(each) for each in first.value.elts) or None
    except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return None


def _call(node):
    if not isinstance(node, ast.Call):
        raise ValueError
    arguments = {each.arg: _value(each.value) for each in node.keywords}
    return _callee(node.func), json.dumps(arguments, ensure_ascii=False)


def _callee(node):
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_callee(node.value)}.{node.attr}"
    raise ValueError


def _value(node):
    match node:
        case ast.Constant(value=float() as value) if math.isinf(value):
            return _INFINITE
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.Name(id="true" | "false" | "null" as name):
            return _NAMES[name]
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            return [_value(each) for each in elements]
        case ast.Dict(keys=keys, values=values):
            return {_key(key): _value(value) for key, value in zip(keys, values, strict=True)}
        case ast.JoinedStr(values=parts) if all(isinstance(part, ast.Constant) for part in parts):
            return "".join(part.value for part in parts)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            number = _value(operand)
            if isinstance(number, str) and number.lstrip("-") == _INFINITE:
                return "-" * (isinstance(sign, ast.USub) != number.startswith("-")) + _INFINITE
            if type(number) in (int, float):
                return -number if isinstance(sign, ast.USub) else number
    raise ValueError


def _key(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | None):
        return _value(node)
    raise ValueError


_texts = st.text(
    st.sampled_from("ab 1,.:=()[]{}'\"\\\nné漢🌧") | st.characters(exclude_categories=["Cs", "Cc"]), max_size=8
)


def _double(text):
    return json.dumps(text, ensure_ascii=False)


def _triple(text):
    return "'''" + text.replace("\\", "\\\\").replace("'", "\\'") + "'''"


single_strings = st.one_of(
    *(_texts.map(quoted) for quoted in (repr, _double, _triple)),
    st.sampled_from(
        ["r'a\\d'", "u'q'", "f'p {{x}}'", "'\\x41\\u00e9\\N{BULLET}'", "'\\1015'", "'\\q'", "''"],
    ),
)
strings = st.one_of(single_strings, _texts.map(lambda text: f"{text!r} {_double(text)}"), st.just("(\"a\" 'b')"))
numbers = st.sampled_from(
    [
        *("0", "1", "12", "-5", "+7", "--3", "3.14", "-0.5", "1e5", "5e-1", "0x1F", "1_000", "1.", ".5", "00", "1.50"),
        *("-(3)", "123456789012345678901234567890", "0.1234567890123456789", "1e999"),
    ]
)
_scalars = strings | numbers | st.sampled_from(["True", "False", "None", "true", "false", "null"])
_keys = strings | st.sampled_from(["1", "2.5", "True", "None"])
_endings = st.sampled_from(["", ", ", " "])


def _containers(inner):
    elements = st.lists(inner, max_size=3).map(", ".join)
    pairs = st.lists(st.tuples(_keys, inner).map(": ".join), max_size=3, unique_by=lambda pair: pair).map(", ".join)
    return st.one_of(
        elements.map("[{}]".format),
        st.lists(inner, min_size=2, max_size=3).map(lambda each: f"({', '.join(each)})"),
        inner.map("({},)".format),
        inner.map("({})".format),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: "{" + ", ".join(each) + "}"),
        pairs.map(lambda each: "{" + each + "}"),
    )


values = st.recursive(_scalars, _containers, max_leaves=8)
_arguments = st.lists(
    st.tuples(st.sampled_from(["x", "city", "n1", "été"]), values), max_size=3, unique_by=lambda each: each[0]
).map(lambda pairs: ", ".join(f"{name}={value}" for name, value in pairs))
calls = st.tuples(st.sampled_from(["f", "get_weather", "g2"]), _arguments).map(lambda each: f"{each[0]}({each[1]})")
call_lists = st.lists(calls, min_size=1, max_size=3).map(lambda each: "[" + ", ".join(each) + "]")


@st.composite
def damaged_lists(draw):
    """A call list with some characters lost, doubled or put in."""
    text = draw(call_lists)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        lost = draw(st.integers(0, 3))
        text = text[:at] + draw(st.sampled_from(["", *"'\"()[]{},=:\\ \n#x0", "'''"])) + text[at + lost :]
    return text


@st.composite
def chunked(draw, texts):
    """(text, its chunks)."""
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return text, [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
