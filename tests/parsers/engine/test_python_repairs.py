import json

import pytest

from parsers.engine.python_repairs import RepairState, SourceRepair
from parsers.engine.state import dump, load

CASES = [
    pytest.param("[f(x='a\n\tb\r\0')]", r"[f(x='a\n\tb\r\x00')]", id="control characters in a string"),
    pytest.param("[f(\n x='a\\\nb')]", "[f(\n x='a\\\nb')]", id="line breaks outside, and behind a backslash, stay"),
    pytest.param("[f(x=07, y=[00, 007, 0_8])]", "[f(x=7, y=[00, 7, 8])]", id="leading zeros"),
    pytest.param("[f(x=1.07, y=07.5, z=0x0F, w=1e07)]", "[f(x=1.07, y=07.5, z=0x0F, w=1e07)]", id="other numbers"),
    pytest.param("[f07(x07='07', y=2024)]", "[f07(x07='07', y=2024)]", id="names, strings and inner zeros"),
]


@pytest.mark.parametrize(("source", "mended"), CASES)
def test_mends_alike_in_any_chunks(source, mended):
    for size in (1, 2, 3, 5, len(source)):
        state, out = RepairState(), []
        for start in range(0, len(source), size):
            state = load(RepairState, json.loads(json.dumps(dump(state))))
            out.append(SourceRepair(state, numbers=True).feed(source[start : start + size]))
        assert "".join(out) + SourceRepair(state, numbers=True).finish() == mended


def test_a_number_at_the_end_waits():
    repair = SourceRepair(RepairState(), numbers=True)
    assert repair.feed("[f(x=07") == "[f(x="
    assert repair.finish() == "7"
