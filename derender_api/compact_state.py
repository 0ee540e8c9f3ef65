"""Signs what a stream must remember and reads it back: the text of a compact stream state.

The signature is an HMAC with Django's secret key; states signed with a key of `SECRET_KEY_FALLBACKS` are still read, so
that keys can be changed under running streams. A state is bound to the endpoint, model and parser that wrote it.
"""

from collections.abc import Sequence
from typing import Any

from django.core.signing import BadSignature, Signer

from derender_api import any_json
from derender_api.exceptions import ForeignStreamState, OutdatedStreamState, TamperedStreamState

VERSION = 2
SALT = "derender.stream_state"


class _Serializer:
    """What Signer calls to turn the value into bytes and back."""

    def dumps(self, value: Any) -> bytes:
        return any_json.dumps(value)

    def loads(self, data: bytes) -> Any:
        return any_json.loads(data)


def dump(values: dict[str, Any], *, scope: Sequence[str]) -> str:
    """The signed text of `values`, for the same `scope` only."""
    return Signer(salt=SALT).sign_object([VERSION, scope, values], serializer=_Serializer)


def load(text: str, *, scope: Sequence[str]) -> dict[str, Any]:
    """The values that `dump` signed.

    Raises TamperedStreamState, OutdatedStreamState or ForeignStreamState.
    """
    try:
        version, written_for, values = Signer(salt=SALT).unsign_object(text, serializer=_Serializer)
    except (BadSignature, ValueError) as error:
        raise TamperedStreamState("its signature does not fit") from error
    if version != VERSION:
        raise OutdatedStreamState("it was written by another version of this service; begin the stream anew")
    if list(written_for) != list(scope):
        raise ForeignStreamState("it belongs to another endpoint, model or parser")
    return values
