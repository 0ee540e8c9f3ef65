"""Requests per minute of an API key, counted in Django's cache "limits".

With a shared cache (DERENDER_CACHE_URL) the count is that of all workers and servers; else each worker counts its own,
so that a server allows up to its number of workers times as many.
"""

import time

from django.core.cache import caches

from derender_api.cache_watch import CacheWatch
from derender_api.exceptions import RateLimited

WINDOW_SECONDS = 60


class RateLimiter:
    """Counts requests by key. A cache that does not answer limits nothing: it must not stop the service."""

    def __init__(self) -> None:
        self._watch = CacheWatch("Requests of API keys are not counted")

    def require(self, key_id: int, limit: int) -> None:
        """Count one request of the key; raises RateLimited above `limit` in this minute of the clock."""
        now = time.time()
        window = int(now // WINDOW_SECONDS)
        try:
            count = _counted(f"derender:rate:{key_id}:{window}")
        except Exception:  # each backend of the cache has errors of its own
            self._watch.failed()
            return
        self._watch.answered()
        if count > limit:
            raise RateLimited(limit, retry_after=max(1, round((window + 1) * WINDOW_SECONDS - now)))


def _counted(name: str) -> int:
    cache = caches["limits"]
    cache.add(name, 0, timeout=2 * WINDOW_SECONDS)
    return int(cache.incr(name))


rate_limiter = RateLimiter()
