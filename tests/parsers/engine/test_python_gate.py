import json

import pytest

from parsers.engine.python_gate import CompletionGate, GateState
from parsers.engine.state import dump, load


def passes_after(*chunks):
    gate = CompletionGate(GateState())
    for chunk in chunks:
        gate = CompletionGate(load(GateState, json.loads(json.dumps(dump(gate.state)))))
        gate.feed(chunk)
    return gate.passes()


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        pytest.param("[f(x='a", True, id="within a string"),
        pytest.param("[f(x='a=", False, id="an equals sign at the end, be it in a string"),
        pytest.param("[f(x='a:", False, id="a colon at the end"),
        pytest.param("[f(x=1", False, id="a call's parentheses"),
        pytest.param("[f(x='a'", False, id="behind a string"),
        pytest.param("[f(x='a=b'), g(", True, id="more equals signs than commas before the parenthesis"),
        pytest.param("[f(x='g(", True, id="a parenthesis in a string counts too"),
        pytest.param("[f(x={'a': {", True, id="more colons than commas before the brace"),
        pytest.param("[f(x={'a'", False, id="a dict"),
        pytest.param("[f(x=[", True, id="behind an opening bracket"),
        pytest.param("[f(x=['a'", False, id="within a list"),
        pytest.param("[f(x=1)", True, id="behind a call"),
        pytest.param("[f(x=1),", True, id="a comma does not count"),
        pytest.param("[f(x=1)]", True, id="closed"),
        pytest.param("[f(x=1])", False, id="wrong bracket"),
        pytest.param(r"[f(x='\'", True, id="an escaped quote opens nothing new"),
    ],
)
def test_lets_pass_what_vllm_completes(text, passes):
    assert passes_after(text) is passes
    assert passes_after(*text) is passes


def test_holds_white_space_and_one_comma():
    gate = CompletionGate(GateState())
    assert [gate.feed(chunk) for chunk in ("[f(x='a", " , ", " ", "b")] == ["[f(x='a", " ", "", ",  b"]
    assert not gate.holds_comma
    gate.feed(",")
    assert gate.holds_comma
    assert gate.flush() == ","


def test_closes_what_is_open():
    gate = CompletionGate(GateState())
    gate.feed("[f(x={'a': ['b")
    assert gate.closers() == "']})]"


def test_endless_brackets_are_no_list():
    gate = CompletionGate(GateState())
    for _ in range(100):
        gate.feed("[" * 100)
    assert len(gate.state.stack) < 300
    assert not gate.passes()
