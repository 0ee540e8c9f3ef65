"""Chat requests by digest, in Django's cache: a client of compact states need not send its request with every chunk.

Only signed states name a digest, so that nobody can ask for another stream's request. Without the cache's server
nothing is remembered, and clients are told to send their request.
"""

import pickle
from hashlib import blake2b

from django.core.cache import cache

from derender_api.cache_watch import CacheWatch
from derender_api.conf import conf
from derender_api.exceptions import ContextRequired
from derender_api.protocol.openai_request import ChatCompletionRequest

PREFIX = "derender:context:"

_watch = CacheWatch("Chat requests are not remembered")


def remember(request: ChatCompletionRequest, *, known: str = "") -> str:
    """The digest to ask for `request` by, "" where it cannot be kept.

    `known` is the digest that the stream already has; it stays where the cache still knows it.
    """
    try:
        digest = known if known and cache.has_key(PREFIX + known) else _put(request)
    except Exception:  # each backend of the cache has errors of its own
        _watch.failed()
        return known
    _watch.answered()
    return digest


def _put(request: ChatCompletionRequest) -> str:
    digest = blake2b(pickle.dumps(request), digest_size=16).hexdigest()
    cache.set(PREFIX + digest, request, timeout=conf.context_cache_seconds)
    return digest


def recall(digest: str) -> ChatCompletionRequest:
    """The request of which `remember` gave `digest`; raises ContextRequired."""
    try:
        request = cache.get(PREFIX + digest)
    except Exception:  # each backend of the cache has errors of its own
        _watch.failed()
        raise ContextRequired from None
    _watch.answered()
    if not isinstance(request, ChatCompletionRequest):
        raise ContextRequired
    return request
