from parsers.engine.ending import Ending, EndingState
from parsers.engine.events import Content, Text, Token

END = Token(1, "<eos>")


def test_is_content_as_long_as_nothing_was_held_back():
    assert Ending(EndingState()).content("a<eos>", [Text("a"), END]) == [Content("a<eos>")]


def test_is_dropped_where_it_came_before_the_finish_reason():
    ending = Ending(EndingState(active=True))
    assert ending.content(ending.take("a<eos>"), [Text("a"), END]) == [Content("a")]
    ending.take("")
    assert ending.content("", []) == []
    assert ending.finish() == []


def test_is_content_where_it_came_with_the_finish_reason():
    ending = Ending(EndingState(active=True))
    ending.content(ending.take("a<eos>"), [Text("a"), END])
    assert ending.finish() == [Content("<eos>")]


def test_is_content_where_more_text_follows():
    ending = Ending(EndingState(active=True))
    ending.content(ending.take("a<eos>"), [Text("a"), END])
    assert ending.take("b") == "<eos>b"
    ending.state.held = "<eos>"
    assert ending.release([]) == ""
    assert ending.release([Text("b")]) == "<eos>"
