import pytest

from parsers.engine.events import Text, Token
from parsers.engine.scanner import scan, text_of

MARKS = {7: "</think>", 8: "<eos>"}


@pytest.mark.parametrize(
    ("ids", "texts", "segments"),
    [
        pytest.param([1, 2], ["a", "b"], [Text("ab")], id="no marks: one text"),
        pytest.param([1], [""], [], id="nothing released"),
        pytest.param(
            [1, 7, 2], ["a", "</think>", "b"], [Text("a"), Token(7, "</think>"), Text("b")], id="mark between"
        ),
        pytest.param(
            [1, 7], ["", "\ufffd</think>"], [Text("\ufffd"), Token(7, "</think>")], id="held text comes first"
        ),
        pytest.param(
            [7, 7], ["</think>", "</think>"], [Token(7, "</think>"), Token(7, "</think>")], id="adjacent marks"
        ),
        pytest.param([1, 8], ["a", ""], [Text("a"), Token(8, "")], id="a cut stop token keeps its place"),
    ],
)
def test_cuts_a_chunk_at_marked_tokens(ids, texts, segments):
    assert scan(ids, texts, MARKS) == segments


def test_the_text_of_segments_is_the_released_text():
    assert text_of(scan([1, 7, 2], ["x", "</think>", "y"], MARKS)) == "x</think>y"
