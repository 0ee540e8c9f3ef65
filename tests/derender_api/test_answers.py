"""Wire values of answers."""

import pytest

from derender_api.answers import chat_delta
from parsers.engine.assembly import CallDelta, Delta


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        pytest.param(CallDelta(index=0, id="c", name="f"), "function", id="opens a call"),
        pytest.param(CallDelta(index=0, arguments="{"), None, id="continues it"),
        pytest.param(CallDelta(index=0, arguments="{", typed=True), "function", id="continues it in a typed format"),
    ],
)
def test_a_tool_call_entry_says_its_type_where_the_format_does(entry, kind):
    [sent] = chat_delta(Delta(calls=[entry]), is_first=False)["tool_calls"]
    assert sent["type"] == kind
