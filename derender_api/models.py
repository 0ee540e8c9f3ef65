"""The table of API keys. Only digests are stored: a key is shown once, when it is made."""

import secrets
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Self

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.utils import timezone

KEY_PREFIX = "dr-"
SHOWN_CHARACTERS = 8
"""How many characters of a key are stored as they are, so that a person can tell keys apart."""


def digest_of_key(key: str) -> str:
    """SHA-256 as hex. A key is 256 random bits, so that a slow hash would protect nothing and cost every call."""
    return sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def _names_only(value: object) -> None:
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise ValidationError('Expected a JSON list of model names: ["a", "b"].')


class ApiKey(models.Model):
    """One key: whom it belongs to, until when it holds, and what it may be used for."""

    name = models.CharField(max_length=255, unique=True, help_text="Who uses the key.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    beginning = models.CharField(max_length=SHOWN_CHARACTERS, editable=False, help_text="How the key begins.")
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField(null=True, blank=True, help_text="Empty: never.")
    revoked = models.DateTimeField(null=True, blank=True, editable=False)
    last_used = models.DateTimeField(null=True, blank=True, editable=False, help_text="Written once a minute.")
    requests_per_minute = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text="Empty: no limit."
    )
    allowed_models = models.JSONField(
        default=list,
        blank=True,
        validators=[_names_only],
        help_text='Names of the models that may be used, a JSON list: ["a", "b"]. Empty: all.',
    )

    class Meta:
        """Listed by name."""

        ordering = ("name",)
        verbose_name = "API key"

    def __str__(self) -> str:
        return self.name

    @classmethod
    def make(
        cls,
        *,
        name: str,
        expires: datetime | None = None,
        requests_per_minute: int | None = None,
        allowed_models: Sequence[str] = (),
    ) -> tuple[Self, str]:
        """A new row, saved, and the key itself, which nobody can tell later. Raises ValidationError."""
        row = cls(
            name=name, expires=expires, requests_per_minute=requests_per_minute, allowed_models=list(allowed_models)
        )
        key = row.give_key()
        row.full_clean()
        row.save()
        return row, key

    def give_key(self) -> str:
        """Give this row a new random key and return it."""
        key = KEY_PREFIX + secrets.token_urlsafe(32)
        self.digest, self.beginning = digest_of_key(key), key[:SHOWN_CHARACTERS]
        return key

    def revoke(self) -> None:
        """Refuse the key from now on; a key that is revoked stays so."""
        if self.revoked is None:
            self.revoked = timezone.now()
            self.save(update_fields=["revoked"])

    @property
    def state(self) -> str:
        """`active`, `expired` or `revoked`."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= timezone.now() else "active"
