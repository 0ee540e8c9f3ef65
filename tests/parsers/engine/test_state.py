from dataclasses import dataclass, field

import pytest

from parsers.engine.exceptions import InvalidSnapshotError
from parsers.engine.state import dump, load


@dataclass(slots=True)
class Inner:
    depth: int = 0


@dataclass(slots=True)
class Outer:
    held: str = ""
    inner: Inner | None = None
    many: list[Inner] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


@pytest.mark.parametrize(
    ("state", "data"),
    [
        pytest.param(Outer(), {}, id="defaults are left out"),
        pytest.param(Outer(held="<"), {"held": "<"}, id="plain"),
        pytest.param(Outer(inner=Inner(2)), {"inner": {"depth": 2}}, id="nested"),
        pytest.param(Outer(many=[Inner(), Inner(1)]), {"many": [{}, {"depth": 1}]}, id="list of nested"),
        pytest.param(Outer(names=["a"]), {"names": ["a"]}, id="list of plain"),
    ],
)
def test_states_go_to_json_and_back(state, data):
    assert dump(state) == data
    assert load(Outer, data) == state


@pytest.mark.parametrize("data", [None, [], "x", {"unknown": 1}, {"inner": []}])
def test_foreign_data_is_refused(data):
    with pytest.raises(InvalidSnapshotError):
        load(Outer, data)


def test_a_loaded_state_does_not_share_lists():
    data = {"names": ["a"]}
    load(Outer, data).names.append("b")
    assert data == {"names": ["a"]}
