"""Who may ask for what: the bearer token of a request, the limits of its key, the models that the key may use."""

from collections.abc import Collection, Sequence
from contextvars import ContextVar
from hmac import compare_digest

from django.http import HttpRequest

from derender_api.api_keys import KnownKey, key_store
from derender_api.conf import conf
from derender_api.exceptions import Forbidden, KeysUnreadable, Unauthorized
from derender_api.rate_limit import rate_limiter

PROTECTED = ("/v1", "/v2", "/inference", "/cohere")
"""Path prefixes that need an API key (protocol 1)."""

allowed_models: ContextVar[frozenset[str]] = ContextVar("allowed_models", default=frozenset())
"""Names of the models that the request being answered may use; empty: all."""


def needs_key(request: HttpRequest) -> bool:
    """Whether a key is demanded for this path and method; OPTIONS is exempt (protocol 1)."""
    return request.path_info.startswith(PROTECTED) and request.method != "OPTIONS"


def authorize(request: HttpRequest) -> KnownKey | None:
    """The key of the table that the request bears; None where it needs none, or bears the one of the settings.

    Raises Unauthorized, RateLimited or KeysUnreadable.
    """
    if lets_everyone_in():
        return None
    fixed, keys = conf.api_key, key_store.current()
    token = bearer_token(request)
    if _is_one_of(fixed, token):
        return None
    if keys is None:
        raise KeysUnreadable
    key = keys.find(token) if token else None
    if key is None:
        raise Unauthorized("Unauthorized")
    if key.is_expired:
        raise Unauthorized("The API key has expired.")
    key_store.note_use(key)
    if key.requests_per_minute is not None:
        rate_limiter.require(key.id, key.requests_per_minute)
    return key


def lets_everyone_in() -> bool:
    """Whether no key is demanded at all: there is none, and none is required."""
    if conf.api_key or conf.require_api_keys:
        return False
    keys = key_store.current()
    return keys is not None and not keys.exist


def _is_one_of(keys: Sequence[str], token: str) -> bool:
    """All keys are compared, however early one fits."""
    # WSGI hands headers over as Latin-1; both sides are compared as bytes because compare_digest refuses other text.
    given = token.encode("latin-1", "replace")
    return sum(compare_digest(given, key.encode()) for key in keys) > 0


def bearer_token(request: HttpRequest) -> str:
    """The token of `Authorization: Bearer <token>`, "" without one."""
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def may_use(names: Collection[str]) -> bool:
    """Whether the request being answered may use the model that has these names."""
    allowed = allowed_models.get()
    return not allowed or not allowed.isdisjoint(names)


def require_model(names: Collection[str]) -> None:
    """Raises Forbidden where `may_use` says no."""
    if not may_use(names):
        raise Forbidden(f"This API key may not use the model `{next(iter(names))}`.", param="model")
