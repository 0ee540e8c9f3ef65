"""Requests per minute of an API key, counted in Django's cache "limits".

With a shared cache (DERENDER_CACHE_URL) the count is that of all workers and servers; else each worker counts its own,
so that a server allows up to its number of workers times as many.
"""

import logging
import time

from django.core.cache import caches

from derender_api.exceptions import RateLimited

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 60


def require_rate(key_id: int, limit: int) -> None:
    """Count one request of the key; raises RateLimited above `limit` in this minute of the clock.

    A cache that does not answer limits nothing: it must not stop the service.
    """
    now = time.time()
    window = int(now // WINDOW_SECONDS)
    name = f"derender:rate:{key_id}:{window}"
    cache = caches["limits"]
    try:
        cache.add(name, 0, timeout=2 * WINDOW_SECONDS)
        count = cache.incr(name)
    except Exception:  # each backend of the cache has errors of its own
        logger.warning("requests of an API key are not counted", exc_info=True)
        return
    if count > limit:
        raise RateLimited(limit, retry_after=max(1, round((window + 1) * WINDOW_SECONDS - now)))
