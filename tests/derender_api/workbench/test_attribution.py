"""What became of the pieces of an output's text."""

from derender_api.workbench.playground.attribution import Attribution, Kind, Span

MARK = 7


def attribution(*texts: str, marks: tuple[int, ...] = ()) -> Attribution:
    """One that has read `texts`, a token each; those at `marks` have the marker's ID."""
    made = Attribution(marks={MARK})
    for index, text in enumerate(texts):
        made.add(MARK if index in marks else 1, text)
    return made


def test_text_that_is_sent_is_found_in_order() -> None:
    made = attribution("Hel", "lo")
    made.sent(Kind.CONTENT, "Hello")

    assert made.finish(is_cut=False) == [[Span("Hel", Kind.CONTENT, 1)], [Span("lo", Kind.CONTENT, 1)]]


def test_a_token_may_become_two_things() -> None:
    made = attribution('", "arguments": {"')
    made.sent(Kind.ARGUMENTS, '{"')

    assert made.finish(is_cut=False) == [[Span('", "arguments": ', Kind.MARKER, 0), Span('{"', Kind.ARGUMENTS, 0)]]


def test_a_marker_is_known_with_its_own_token() -> None:
    made = attribution("<think>", "a", marks=(0,))
    made.sent(Kind.REASONING, "a")

    assert made.finish(is_cut=False)[0] == [Span("<think>", Kind.MARKER, 0)]


def test_text_in_front_of_a_name_is_syntax() -> None:
    made = attribution("name:", "f")
    made.sent(Kind.NAME, "f")

    assert made.finish(is_cut=False)[0] == [Span("name:", Kind.MARKER, 1)]


def test_words_that_are_sent_nowhere_are_dropped() -> None:
    made = attribution("lost words", "kept")
    made.sent(Kind.CONTENT, "kept")

    assert made.finish(is_cut=False)[0] == [Span("lost words", Kind.DROPPED, 1, True)]


def test_markup_that_is_sent_nowhere_is_syntax_by_its_looks() -> None:
    made = attribution("</tool_call>")

    assert made.finish(is_cut=False) == [[Span("</tool_call>", Kind.MARKER, 0, True)]]


def test_the_rest_of_a_closed_call_is_syntax() -> None:
    made = attribution("f")
    made.sent(Kind.NAME, "f")
    made.add(1, ") end")
    made.closed()
    made.add(1, "x")
    made.sent(Kind.CONTENT, "x")

    assert made.finish(is_cut=False)[1] == [Span(") end", Kind.MARKER, 1)]


def test_a_call_that_follows_at_once_is_not_part_of_the_closed_one() -> None:
    made = attribution("f) g(")
    made.sent(Kind.NAME, "f")
    made.closed()
    made.sent(Kind.NAME, "g")

    spans = made.finish(is_cut=False)[0]
    assert [(span.text, span.kind) for span in spans] == [
        ("f", Kind.NAME),
        (") ", Kind.MARKER),
        ("g", Kind.NAME),
        ("(", Kind.MARKER),
    ]


def test_arguments_written_anew_are_matched_by_words() -> None:
    made = attribution("<parameter=city>", "\n", "Paris", "\n")
    made.sent(Kind.ARGUMENTS, '{"city": "Paris"', anew=True)
    spans = [span for token in made.finish(is_cut=False) for span in token]

    assert [(span.text, span.kind) for span in spans if span.kind is Kind.ARGUMENTS] == [
        ("city", Kind.ARGUMENTS),
        ("Paris", Kind.ARGUMENTS),
    ]
    assert all(span.approximate for span in spans if span.kind is Kind.ARGUMENTS)


def test_what_an_unfinished_output_holds_back_is_held() -> None:
    assert attribution("<tool").finish(is_cut=True) == [[Span("<tool", Kind.HELD, 0)]]


def test_a_token_without_text_belongs_to_the_one_that_completes_it() -> None:
    made = attribution("", "é")
    made.sent(Kind.CONTENT, "é")

    assert made.finish(is_cut=False) == [[Span("", Kind.CONTENT, 1, True)], [Span("é", Kind.CONTENT, 1)]]


def test_a_last_token_without_text_ends_the_output() -> None:
    made = attribution("a", "")
    made.sent(Kind.CONTENT, "a")

    assert made.finish(is_cut=False)[1] == [Span("", Kind.MARKER, 1)]
