"""Remembers parsers of replayed streams, so that the next chunk need not replay the output so far.

What is kept is the parser's snapshot behind a chunk, under a digest of everything that led to it: model, request,
prompt and output. A hit can therefore only give what a replay would give; nothing is lost when an entry is.
"""

import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from derender_api.conf import conf


@dataclass(frozen=True, slots=True)
class Entry:
    """A snapshot as JSON, and when it was put in (seconds of a monotonic clock)."""

    snapshot: bytes
    since: float


class ParserCache:
    """Snapshots by key, the least recently used ones dropped first. Thread-safe; bounded in entries, bytes and age."""

    def __init__(self) -> None:
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes) -> bytes | None:
        """The snapshot under `key`, None where there is none, or none young enough."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            if time.monotonic() - entry.since > conf.parser_cache_seconds:
                self._drop(key)
                return None
            self._entries.move_to_end(key)
            return entry.snapshot

    def put(self, key: bytes, snapshot: bytes) -> None:
        """Remember `snapshot`, dropping others as needed."""
        with self._lock:
            if key in self._entries:
                self._drop(key)
            self._entries[key] = Entry(snapshot, time.monotonic())
            self._bytes += len(snapshot)
            while self._entries and (
                len(self._entries) > conf.parser_cache_entries or self._bytes > conf.parser_cache_bytes
            ):
                self._drop(next(iter(self._entries)))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def _drop(self, key: bytes) -> None:
        self._bytes -= len(self._entries.pop(key).snapshot)


parser_cache = ParserCache()


class StreamKeys:
    """Keys of a stream's parser, behind one chunk after the other. What was hashed is not hashed again."""

    def __init__(self, origin: bytes) -> None:
        self._token_ids = blake2b(origin, digest_size=24)
        self._lengths = blake2b(digest_size=16)

    def extend(self, token_ids: Sequence[int], lengths: Sequence[int]) -> None:
        """Go on to behind these chunks: their tokens, and how many each of them has."""
        self._token_ids.update(bytes_of_ids(token_ids))
        self._lengths.update(bytes_of_ids(lengths))

    @property
    def key(self) -> bytes:
        """The key at this place."""
        return self._token_ids.digest() + self._lengths.digest()


def earlier_keys(
    origin: bytes, token_ids: Sequence[int], lengths: Sequence[int], *, most: int
) -> Iterator[tuple[int, int, bytes]]:
    """Keys before the last chunks, the latest first: how many chunks and tokens lead to each, and the key."""
    first = max(0, len(lengths) - most)
    end = sum(lengths[:first])
    keys = StreamKeys(origin)
    keys.extend(token_ids[:end], lengths[:first])
    found = []
    for chunk in range(first, len(lengths)):
        if chunk:
            found.append((chunk, end, keys.key))
        start, end = end, end + lengths[chunk]
        keys.extend(token_ids[start:end], lengths[chunk : chunk + 1])
    return reversed(found)


def digest_of(*parts: bytes) -> bytes:
    """A digest of `parts`, each with its length, so that no two lists of parts share one."""
    state = blake2b(digest_size=24)
    for part in parts:
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state.digest()


def bytes_of_ids(token_ids: Sequence[int]) -> bytes:
    """Token IDs as bytes, different for different lists."""
    try:
        return array("q", token_ids).tobytes()
    except OverflowError:
        return repr(list(token_ids)).encode()
