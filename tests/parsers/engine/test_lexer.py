import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.engine.lexer import Lexer

LITERALS = ("<tool>", "</tool>", "<invoke name=", '<invoke name="', ">", '">')


def run(chunks):
    lexer, held, pieces = Lexer(LITERALS), "", []
    for chunk in chunks:
        new, held = lexer.cut(held, chunk)
        pieces += new
    return pieces + lexer.flush(held)


def joined(pieces):
    """Adjacent text pieces joined: where text is cut depends on the chunks, what is a literal does not."""
    out = []
    for text, literal in pieces:
        if out and not literal and not out[-1][1]:
            out[-1] = (out[-1][0] + text, False)
        else:
            out.append((text, literal))
    return out


@pytest.mark.parametrize(
    ("held", "text", "pieces", "rest"),
    [
        pytest.param("", "plain", [("plain", False)], "", id="text"),
        pytest.param("", "a<to", [("a", False)], "<to", id="a beginning is held back"),
        pytest.param("<to", "ol>b", [("<tool>", True), ("b", False)], "", id="and completed"),
        pytest.param("<to", "p", [("<top", False)], "", id="or released"),
        pytest.param("", "<invoke name=", [], "<invoke name=", id="complete, but perhaps a longer one"),
        pytest.param("<invoke name=", '"f', [('<invoke name="', True), ("f", False)], "", id="the longest wins"),
        pytest.param("<invoke name=", "f", [("<invoke name=", True), ("f", False)], "", id="the shorter one after all"),
        pytest.param("", 'say "', [("say ", False)], '"', id="a quote may begin a marker"),
    ],
)
def test_holds_back_what_may_become_a_literal(held, text, pieces, rest):
    assert Lexer(LITERALS).cut(held, text) == (pieces, rest)


def test_without_literals_everything_is_text():
    assert Lexer(()).cut("", "a<b") == ([("a<b", False)], "")


@given(st.lists(st.sampled_from([*LITERALS, "<", "</", "tool", "name=", '"', " ", "x"])), st.data())
def test_does_not_depend_on_the_chunks(parts, data):
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert joined(run(chunks)) == joined(run([text]))
    assert "".join(piece for piece, _ in run(chunks)) == text


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("plain", 0, (5, "")),
        ("a<ab>b", 0, (1, "<ab>")),
        ("a<ab>b<ab>", 5, (6, "<ab>")),
        ("a<a", 0, (1, "")),
        ("a<ab", 3, (4, "")),
        ("<abc>", 0, (5, "")),
    ],
)
def test_the_next_literal_alone(text, start, expected):
    assert Lexer(["<ab>", "<abcd>"]).next(text, start) == expected
