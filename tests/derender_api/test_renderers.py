"""Bodies as vLLM writes them, and values that must not break them."""

import json
import math

import pytest

from derender_api.renderers import OrjsonRenderer


@pytest.mark.parametrize(
    ("data", "body"),
    [
        ({"b": 1, "a": "é\u2028"}, '{"b":1,"a":"é\u2028"}'.encode()),
        (None, b""),
        (b'{"done":1}', b'{"done":1}'),
        ({"p": [math.nan, math.inf, -math.inf]}, b'{"p":[null,null,null]}'),
        ({"big": 2**70}, b'{"big":1180591620717411303424}'),
        ({"id": "\ud83c"}, b'{"id":"\\ud83c"}'),
    ],
)
def test_render(data: object, body: bytes) -> None:
    assert OrjsonRenderer().render(data) == body
    if body:
        json.loads(body)
