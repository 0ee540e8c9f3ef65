"""Chat requests by digest, in Django's cache: a client of compact states need not send its request with every chunk.

Only signed states name a digest, so that nobody can ask for another stream's request. Without the cache's server
nothing is remembered, and clients are told to send their request.
"""

import logging
import pickle
from hashlib import blake2b

from django.core.cache import cache

from derender_api.conf import conf
from derender_api.exceptions import ContextRequired
from derender_api.protocol.openai_request import ChatCompletionRequest

logger = logging.getLogger(__name__)

PREFIX = "derender:context:"


def remember(request: ChatCompletionRequest, *, known: str = "") -> str:
    """The digest to ask for `request` by, "" where it cannot be kept.

    `known` is the digest that the stream already has; it stays where the cache still knows it.
    """
    try:
        if known and cache.has_key(PREFIX + known):
            return known
        digest = blake2b(pickle.dumps(request), digest_size=16).hexdigest()
        cache.set(PREFIX + digest, request, timeout=conf.context_cache_seconds)
    except Exception:  # each backend of the cache has errors of its own
        logger.warning("chat request not remembered", exc_info=True)
        return known
    return digest


def recall(digest: str) -> ChatCompletionRequest:
    """The request of which `remember` gave `digest`; raises ContextRequired."""
    try:
        request = cache.get(PREFIX + digest)
    except Exception:  # each backend of the cache has errors of its own
        logger.warning("chat request not found", exc_info=True)
        request = None
    if not isinstance(request, ChatCompletionRequest):
        raise ContextRequired
    return request
