"""API keys of the table: made, shown once, demanded, limited, revoked."""

from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import caches
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import DatabaseError, OperationalError
from django.test import Client
from django.utils import timezone

from derender_api import api_keys
from derender_api.api_keys import KeyStore
from derender_api.models import ApiKey, digest_of_key
from tests.derender_api.support import HELLO, MESSAGES, oneshot, served

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[KeyStore]:
    """A store of its own that reads the table with every request."""
    settings.DERENDER = {**settings.DERENDER, "MODELS_REFRESH_SECONDS": 0.0}
    store = KeyStore()
    for module in ("api_keys", "authorization", "middleware"):
        monkeypatch.setattr(f"derender_api.{module}.key_store", store)
    caches["limits"].clear()
    with served():
        yield store


def asked(client: Client, key: str | None, path: str = "/v1/models") -> Any:
    """The answer to a request with this bearer token."""
    return client.get(path, **({"HTTP_AUTHORIZATION": f"Bearer {key}"} if key is not None else {}))


class TestDemand:
    """A key is demanded as soon as there is one."""

    def test_without_keys_everyone_is_let_in(self, client: Client) -> None:
        assert asked(client, None).status_code == 200

    def test_without_keys_nobody_is_let_in_where_they_are_required(self, client: Client, settings: Any) -> None:
        settings.DERENDER["REQUIRE_API_KEYS"] = True

        assert asked(client, None).status_code == 401
        assert asked(client, None, "/health").status_code == 200

    def test_a_key_lets_in_and_others_do_not(self, client: Client) -> None:
        _, key = ApiKey.make(name="a")
        ApiKey.make(name="b")

        assert [asked(client, each).status_code for each in (key, None, "", key[:-1], key + "x", "\xff")] == [
            *[200],
            *[401] * 5,
        ]
        assert asked(client, None).json()["error"]["type"] == "AuthenticationError"
        assert asked(client, None)["WWW-Authenticate"] == "Bearer"

    def test_the_key_of_the_settings_stands_beside_them(self, client: Client, settings: Any) -> None:
        settings.DERENDER["API_KEY"] = "fixed"
        _, key = ApiKey.make(name="a")

        assert [asked(client, each).status_code for each in ("fixed", key, "other")] == [200, 200, 401]

    def test_an_expired_key_is_refused_and_says_so(self, client: Client) -> None:
        _, key = ApiKey.make(name="a", expires=timezone.now() - timedelta(seconds=1))

        answer = asked(client, key)

        assert (answer.status_code, answer.json()["error"]["message"]) == (401, "The API key has expired.")

    def test_revoking_the_last_key_lets_nobody_in(self, client: Client) -> None:
        row, key = ApiKey.make(name="a")
        assert asked(client, key).status_code == 200

        row.revoke()

        assert [asked(client, each).status_code for each in (key, None)] == [401, 401]

    def test_a_fresh_reading_asks_nothing_of_the_database(
        self, client: Client, settings: Any, django_assert_num_queries: Any
    ) -> None:
        _, key = ApiKey.make(name="a")
        settings.DERENDER["MODELS_REFRESH_SECONDS"] = 60.0
        with django_assert_num_queries(1):
            for _ in range(5):
                assert asked(client, key).status_code == 200


class TestModels:
    """A key may be for some models only."""

    @pytest.mark.parametrize(("allowed", "status"), [([], 200), (["model"], 200), (["other", "model"], 200)])
    def test_models_on_the_list_may_be_used(self, client: Client, allowed: list[str], status: int) -> None:
        _, key = ApiKey.make(name="a", allowed_models=allowed)

        assert self.answer(client, key).status_code == status

    @pytest.mark.parametrize("name", ["model", None])
    def test_others_are_403(self, client: Client, name: str | None) -> None:
        _, key = ApiKey.make(name="a", allowed_models=["other"])

        answer = self.answer(client, key, **({"model": name} if name else {}))

        assert answer.status_code == 403
        assert answer.json()["error"] == {
            "message": "This API key may not use the model `model`.",
            "type": "PermissionDeniedError",
            "param": "model",
            "code": 403,
        }

    def test_the_restriction_ends_with_the_request(self, client: Client) -> None:
        _, narrow = ApiKey.make(name="a", allowed_models=["other"])
        _, wide = ApiKey.make(name="b")

        assert [self.answer(client, key).status_code for key in (narrow, wide, narrow)] == [403, 200, 403]

    def test_only_they_are_listed(self, client: Client) -> None:
        _, narrow = ApiKey.make(name="a", allowed_models=["other"])
        _, wide = ApiKey.make(name="b")

        assert [len(asked(client, key).json()["data"]) for key in (narrow, wide)] == [0, 1]

    @staticmethod
    def answer(client: Client, key: str, **fields: Any) -> Any:
        """The answer to a small one-shot request."""
        body = oneshot([HELLO], chat_request={"messages": MESSAGES}, **fields)
        header = {"HTTP_AUTHORIZATION": f"Bearer {key}"}
        return client.post("/v1/chat/completions/derender", body, content_type="application/json", **header)


class TestRate:
    """A key may have a limit of requests per minute."""

    def test_more_requests_are_429_with_retry_after(self, client: Client) -> None:
        _, key = ApiKey.make(name="a", requests_per_minute=3)
        _, other = ApiKey.make(name="b")

        # One more than twice the limit, so that the minute may turn meanwhile.
        answers = [asked(client, key) for _ in range(7)]
        refused = answers[-1]

        assert answers[0].status_code == 200
        assert refused.status_code == 429
        assert 1 <= int(refused["Retry-After"]) <= 60
        assert refused.json()["error"] == {
            "message": "The API key's limit of 3 requests per minute is reached.",
            "type": "RateLimitError",
            "param": None,
            "code": 429,
        }
        assert asked(client, other).status_code == 200

    def test_a_cache_that_is_gone_limits_nothing(
        self, client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        _, key = ApiKey.make(name="a", requests_per_minute=1)

        def fail(*args: Any, **kwargs: Any) -> None:
            raise ConnectionError("gone")

        monkeypatch.setattr(type(caches["limits"]), "incr", fail)

        assert [asked(client, key).status_code for _ in range(3)] == [200, 200, 200]
        assert [record.message for record in caplog.records] == [
            "Requests of API keys are not counted: the cache does not answer"
        ]


class TestDatabaseGone:
    """The keys of the last reading stay; what was never read lets nobody in."""

    @pytest.fixture
    def gone(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Make the database unreachable."""

        def fail(*args: Any, **kwargs: Any) -> None:
            raise OperationalError("gone")

        def go() -> None:
            monkeypatch.setattr(api_keys, "_keys_of_table", fail)
            monkeypatch.setattr(api_keys.connection.introspection, "table_names", fail)

        return go

    def test_known_keys_stay_valid(self, client: Client, gone: Any, caplog: pytest.LogCaptureFixture) -> None:
        _, key = ApiKey.make(name="a")
        asked(client, key)
        gone()

        assert [asked(client, each).status_code for each in (key, "other", key)] == [200, 401, 200]
        assert [record.message for record in caplog.records] == ["Cannot read the table of API keys: gone"]

    def test_keys_that_were_never_read_are_503(self, client: Client, gone: Any, settings: Any) -> None:
        gone()
        settings.DERENDER["API_KEY"] = "fixed"

        refused = asked(client, "any")

        assert (refused.status_code, refused["Retry-After"]) == (503, "5")
        assert asked(client, "fixed").status_code == 200

    def test_a_server_that_was_never_migrated_has_no_keys(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail() -> None:
            raise DatabaseError("no such table")

        monkeypatch.setattr(api_keys, "_keys_of_table", fail)
        monkeypatch.setattr(api_keys.connection.introspection, "table_names", list)

        assert asked(client, None).status_code == 200


class TestTable:
    """What is stored of a key."""

    def test_only_a_digest_is_stored(self) -> None:
        row, key = ApiKey.make(name="a")

        stored = ApiKey.objects.values_list().get(pk=row.pk)

        assert key not in repr(stored)
        assert (row.digest, row.beginning) == (digest_of_key(key), key[:8])
        assert len(key) > 40

    def test_last_use_is_written_with_a_later_reading(
        self, client: Client, store: KeyStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row, key = ApiKey.make(name="a")
        asked(client, key)
        row.refresh_from_db()
        assert row.last_used is None

        monkeypatch.setattr(store, "_next_note", 0.0)
        asked(client, key)

        row.refresh_from_db()
        assert row.last_used is not None
        assert timezone.now() - row.last_used < timedelta(minutes=1)

    def test_a_database_that_cannot_be_written_to_serves_as_well(
        self, client: Client, store: KeyStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        _, key = ApiKey.make(name="a")
        asked(client, key)
        monkeypatch.setattr(store, "_next_note", 0.0)

        def fail(*args: Any, **kwargs: Any) -> None:
            raise OperationalError("read only")

        monkeypatch.setattr(type(ApiKey.objects.all()), "update", fail)

        assert [asked(client, key).status_code for _ in range(3)] == [200, 200, 200]
        assert not store.is_table_lost
        assert [record.message for record in caplog.records] == [
            "When API keys were last used is not written down: read only"
        ]

    @pytest.mark.parametrize("models", ["a", {"a": 1}, [1], [""]])
    def test_a_list_of_models_is_a_list_of_names(self, models: Any) -> None:
        with pytest.raises(ValidationError, match="Expected a JSON list"):
            ApiKey(name="a", digest="d", beginning="b", allowed_models=models).full_clean()


class TestCommands:
    """`create_api_key`, `list_api_keys`, `revoke_api_key`."""

    def test_a_key_is_made_listed_and_revoked(self, client: Client) -> None:
        made, listed = StringIO(), StringIO()
        options = {"days": 2, "requests_per_minute": 60, "models": ["model", "other"]}
        call_command("create_api_key", "gateway", **options, stdout=made, stderr=StringIO())
        key = made.getvalue().strip()

        assert asked(client, key).status_code == 200

        call_command("revoke_api_key", "gateway", stdout=StringIO())
        call_command("list_api_keys", stdout=listed)
        heading, line = listed.getvalue().splitlines()

        assert asked(client, key).status_code == 401
        assert heading.split()[:3] == ["NAME", "BEGINS", "STATE"]
        assert line.split()[:3] == ["gateway", key[:8], "revoked"]
        assert line.endswith("model, other")

    def test_a_time_may_be_given(self) -> None:
        for text in ("2030-01-31T12:00:00+00:00", "2030-01-31T12:00:00"):
            call_command("create_api_key", text, expires=text, stdout=StringIO(), stderr=StringIO())

        assert {key.expires.isoformat() for key in ApiKey.objects.all()} == {"2030-01-31T12:00:00+00:00"}

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"name": "taken"}, "name: API key with this Name already exists"),
            ({"requests_per_minute": 0}, "requests_per_minute: .*greater than or equal to 1"),
            ({"expires": "soon"}, "--expires soon: not a time"),
            ({"expires": "2030-13-01T00:00"}, "not a time"),
        ],
    )
    def test_what_makes_no_sense_is_an_error(self, options: dict[str, Any], message: str) -> None:
        ApiKey.make(name="taken")

        with pytest.raises(CommandError, match=message):
            call_command("create_api_key", options.pop("name", "new"), **options)

    def test_revoking_an_unknown_key_names_the_known_ones(self) -> None:
        ApiKey.make(name="a")

        with pytest.raises(CommandError, match="no API key 'b'; known: a"):
            call_command("revoke_api_key", "b")


class TestAdmin:
    """Keys are made and revoked in the admin page."""

    @pytest.fixture
    def admin(self, client: Client) -> Client:
        """A client that is logged in."""
        client.force_login(User.objects.create_superuser("root"))
        return client

    def test_the_key_is_shown_once(self, admin: Client) -> None:
        form = {"name": "a", "allowed_models": "[]", "requests_per_minute": "", "expires_0": "", "expires_1": ""}
        page = admin.post("/admin/derender_api/apikey/add/", form, follow=True).content.decode()
        key = page.partition("The key is ")[2].split()[0]
        again = admin.get(f"/admin/derender_api/apikey/{ApiKey.objects.get().pk}/change/").content.decode()

        assert asked(admin, key).status_code == 200
        assert key not in again
        assert key[:8] in again

    def test_a_change_keeps_the_key(self, admin: Client) -> None:
        row, key = ApiKey.make(name="a")
        form = {"name": "b", "allowed_models": "[]", "requests_per_minute": "5", "expires_0": "", "expires_1": ""}
        admin.post(f"/admin/derender_api/apikey/{row.pk}/change/", form)

        assert ApiKey.objects.get().requests_per_minute == 5
        assert asked(admin, key).status_code == 200

    def test_keys_are_revoked_not_deleted(self, admin: Client) -> None:
        row, _ = ApiKey.make(name="a")
        admin.post("/admin/derender_api/apikey/", {"action": "revoke", "_selected_action": [row.pk]})

        assert ApiKey.objects.get().state == "revoked"
        assert admin.post(f"/admin/derender_api/apikey/{row.pk}/delete/").status_code == 403
