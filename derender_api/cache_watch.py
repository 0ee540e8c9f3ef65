"""Tells in the log that a shared cache is lost: once, not with every request."""

import logging

logger = logging.getLogger(__name__)


class CacheWatch:
    """Whether a cache answers; `loss` says what it means that it does not."""

    def __init__(self, loss: str) -> None:
        self._loss = loss
        self._is_lost = False

    def answered(self) -> None:
        """The cache has answered."""
        if self._is_lost:
            logger.warning("The cache answers again")
        self._is_lost = False

    def failed(self) -> None:
        """The cache has raised the exception that is being handled."""
        if not self._is_lost:
            logger.warning("%s: the cache does not answer", self._loss, exc_info=True)
        self._is_lost = True
