"""The API keys that this process accepts: the table, read again every few seconds in the course of a request.

No call asks the database; without it the keys of the last reading go on being accepted. What is known is one immutable
value, swapped as a whole.
"""

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from hmac import compare_digest

from django.core.exceptions import SynchronousOnlyOperation
from django.db import DatabaseError, connection

from derender_api.conf import conf
from derender_api.models import ApiKey, digest_of_key

logger = logging.getLogger(__name__)

LOST_FACTOR = 5
"""How many times longer a database that is lost is left alone: asking it may take a thread seconds."""
LAST_USED_SECONDS = 60.0
"""How often a worker writes down when its keys were last used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKey:
    """A key that is not revoked. `expires` in seconds since the epoch; an empty `models` allows all."""

    id: int
    name: str
    digest: str
    expires: float | None = None
    requests_per_minute: int | None = None
    models: frozenset[str] = frozenset()

    @property
    def is_expired(self) -> bool:
        """Whether the key no longer holds."""
        return self.expires is not None and self.expires <= time.time()


@dataclass(frozen=True)
class Keys:
    """One reading of the table. `exist` counts revoked keys too: revoking the last one must not open the server."""

    by_digest: Mapping[str, KnownKey]
    exist: bool

    @cached_property
    def any_is_limited(self) -> bool:
        """Whether a request may have to be counted."""
        return any(key.requests_per_minute is not None for key in self.by_digest.values())

    def find(self, token: str) -> KnownKey | None:
        """The key that `token` is, expired ones included."""
        digest = digest_of_key(token)
        key = self.by_digest.get(digest)
        return key if key is not None and compare_digest(key.digest, digest) else None


NO_KEYS = Keys(by_digest={}, exist=False)


class KeyStore:
    """The keys of the table. Thread-safe."""

    def __init__(self) -> None:
        self._keys: Keys | None = None
        self._overridden = False
        self._next_reading = 0.0
        self._used: dict[int, float] = {}
        self._next_note = time.monotonic() + LAST_USED_SECONDS
        self._lost = False
        self._lock = threading.Lock()

    @property
    def is_fresh(self) -> bool:
        """Whether `current` answers without asking the database."""
        return self._overridden or (self._keys is not None and time.monotonic() < self._next_reading)

    @property
    def is_table_lost(self) -> bool:
        """Whether the last reading failed although there is a table."""
        return self._lost

    def current(self) -> Keys | None:
        """The keys of the last reading; None while the table could never be read, though there may be keys in it."""
        if self.is_fresh:
            return self._keys
        # One thread reads the table while the others go on with what they have.
        if not self._lock.acquire(blocking=self._keys is None):
            return self._keys
        try:
            if not self.is_fresh:
                self._read()
            return self._keys
        finally:
            self._lock.release()

    def note_use(self, key: KnownKey) -> None:
        """Remember that `key` was used now, to be written with a later reading."""
        self._used[key.id] = time.time()

    @contextmanager
    def override(self, keys: Sequence[KnownKey]) -> Iterator[None]:
        """Accept exactly `keys` within the block; for tests and tools."""
        before = self._keys, self._overridden
        self._keys = Keys({key.digest: key for key in keys}, exist=bool(keys))
        self._overridden = True
        try:
            yield
        finally:
            self._keys, self._overridden = before

    def _read(self) -> None:
        try:
            self._keys = _keys_of_table()
            self._lost = False
            self._write_uses()
        except DatabaseError as exc:
            if self._keys in (None, NO_KEYS) and _table_is_missing():
                self._keys = NO_KEYS
            else:
                if not self._lost:
                    logger.warning("Cannot read the table of API keys: %s", exc)
                self._lost = True
        except SynchronousOnlyOperation:
            # A request that is answered on an event loop; one that is answered in a thread reads soon.
            return
        patience = LOST_FACTOR if self._lost else 1
        self._next_reading = time.monotonic() + conf.models_refresh_seconds * patience

    def _write_uses(self) -> None:
        if not self._used or time.monotonic() < self._next_note:
            return
        self._next_note = time.monotonic() + LAST_USED_SECONDS
        used, self._used = self._used, {}
        try:
            for key_id, moment in used.items():
                ApiKey.objects.filter(pk=key_id).update(last_used=datetime.fromtimestamp(moment, UTC))
        except DatabaseError as exc:
            # A replica that cannot be written to serves as well.
            logger.warning("When API keys were last used is not written down: %s", exc)


def _keys_of_table() -> Keys:
    rows = list(ApiKey.objects.all())
    known = (
        KnownKey(
            id=row.pk,
            name=row.name,
            digest=row.digest,
            expires=row.expires.timestamp() if row.expires else None,
            requests_per_minute=row.requests_per_minute,
            models=frozenset(row.allowed_models),
        )
        for row in rows
        if row.revoked is None
    )
    return Keys({key.digest: key for key in known}, exist=bool(rows))


def _table_is_missing() -> bool:
    """Whether the database answers and has no table of keys: a server that was never migrated has no keys either."""
    try:
        return ApiKey._meta.db_table not in connection.introspection.table_names()
    except DatabaseError:
        return False


key_store = KeyStore()
