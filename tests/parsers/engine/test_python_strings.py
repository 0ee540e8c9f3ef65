import ast
import json

import pytest
from hypothesis import given

from parsers.engine.python_strings import StringLiteral
from parsers.engine.state import dump, load
from tests.parsers.python_reference import chunked, single_strings


def read(source, chunks=None):
    """(content, rest) of a literal; content None if it is invalid."""
    prefix = source[: min(at for at in map(source.find, "'\"") if at >= 0)]
    chunks = [source] if chunks is None else chunks
    literal = StringLiteral.open(source[len(prefix)], prefix.lower())
    text, position, out = "".join(chunks)[len(prefix) + 1 :], 0, []
    for chunk in [text] if chunks == [source] else list(text):
        literal = StringLiteral(load(type(literal.state), json.loads(json.dumps(dump(literal.state)))))
        content, read_to = literal.feed(chunk, 0)
        out.append(content)
        position += read_to
        if literal.state.closed or literal.state.invalid:
            break
    return None if literal.state.invalid else json.loads('"' + "".join(out) + '"'), text[position:]


CASES = [
    pytest.param("'plain'", "plain", id="plain"),
    pytest.param('"it\'s"', "it's", id="other quote inside"),
    pytest.param("'say \"hi\"'", 'say "hi"', id="a quote that JSON escapes"),
    pytest.param(r"'Martha\'s'", "Martha's", id="escaped quote"),
    pytest.param(r"'a\n\t\\'", "a\n\t\\", id="short escapes"),
    pytest.param(r"'\x41\u00e9\U0001F600'", "Aé😀", id="hexadecimal escapes"),
    pytest.param(r"'\N{BULLET}'", "•", id="named escape"),
    pytest.param(r"'\101\60\18'", "A0\x018", id="octal escapes: three digits at most"),
    pytest.param(r"'\q\.'", r"\q\.", id="unknown escapes keep the backslash"),
    pytest.param("'a\\\nb'", "ab", id="continued line"),
    pytest.param(r"r'\d\''", r"\d\'", id="raw"),
    pytest.param("f'{{x}}'", "{x}", id="doubled braces"),
    pytest.param("''", "", id="empty"),
    pytest.param("'''it's\n''two'''", "it's\n''two", id="triple"),
    pytest.param("''''''", "", id="empty triple"),
]


@pytest.mark.parametrize("one_by_one", [False, True], ids=["at once", "one by one"])
@pytest.mark.parametrize(("source", "content"), CASES)
def test_content_is_that_of_the_literal(source, content, one_by_one):
    chunks = [*source, ","] if one_by_one else None
    assert read(source + ",", chunks) == (content, ",")
    assert eval(source) == content


@pytest.mark.parametrize(
    "source",
    [r"'\x4z'", r"'\u12'", r"'\U00110000'", r"'\N{NO SUCH}'", r"'\Nx'", "'a\nb'", "f'{x}'", "f'}'"],
)
def test_what_python_refuses_is_invalid(source):
    assert read(source)[0] is None


def test_line_ends_are_normalised_as_in_source_code():
    assert read("'''a\r\nb\rc'''") == ("a\nb\nc", "")


def test_half_a_character_keeps_its_escape():
    content, _ = StringLiteral.open("'").feed(r"a\ud83d\ude00b'", 0)
    assert content == r"a\ud83d\ude00b"


def test_knows_where_it_could_be_closed():
    literal = StringLiteral.open("'")
    assert literal.open_cleanly
    literal.feed("a\\", 0)
    assert not literal.open_cleanly
    empty = StringLiteral.open("'")
    empty.feed("'", 0)
    assert empty.maybe_closed


@given(chunked(single_strings))
def test_any_literal_in_any_chunks(case):
    source, _ = case
    tree = ast.parse(source, mode="eval").body
    expected = "".join(each.value for each in tree.values) if isinstance(tree, ast.JoinedStr) else tree.value
    assert read(source + ",", [*source, ","])[0] == expected
