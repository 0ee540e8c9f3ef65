"""Error bodies: their shape, and what about the server never gets into a message."""

import pytest

from derender_api.exceptions import ModelNotFound, RequestRuleViolation, error_content, sanitized


def test_an_error_body_has_four_keys_in_order():
    content = error_content(ModelNotFound("nope", ["a", "b"]))

    assert list(content["error"].items()) == [
        ("message", "The model `nope` does not exist. Valid aliases: a, b."),
        ("type", "NotFoundError"),
        ("param", "model"),
        ("code", 404),
    ]


def test_a_rule_names_its_parameter_and_value():
    assert RequestRuleViolation("no", param="p", value=-2).message == "no (parameter=p, value=-2)"
    assert RequestRuleViolation("no", param="p").message == "no (parameter=p)"
    assert RequestRuleViolation("no").message == "no"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("The model `/srv/models/abc` does not exist.", "The model `<path>` does not exist."),
        ("open /home/user/secret/file.py failed", "open <path> failed"),
        ("see /a/b/name.ext", "see <path>"),
        ("a/b and 1/2 stay, /v1 too", "a/b and 1/2 stay, /v1 too"),
        ("<object at 0x7f3a>", "<object>"),
        ('  File "x.py", line 3, in f  ', ""),
    ],
)
def test_messages_are_sanitized(message, shown):
    assert sanitized(message) == shown
