"""Which models are served, from all sources, and how changes arrive."""

import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from derender_api import tokenization
from derender_api.catalog import Catalog, validate_loadable
from derender_api.exceptions import ModelNotFound
from derender_api.model_sources import DEMO, DEMO_FOLDER
from derender_api.tokenization import load_tokenizer
from parsers.configuration import ModelConfiguration, ModelConfigurationError
from parsers.models import ServedModel

FOLDER = str(DEMO_FOLDER)


@pytest.fixture(autouse=True)
def _read_the_table_every_time(settings: Any) -> None:
    settings.DERENDER = {"MODELS_REFRESH_SECONDS": 0.0}


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    """A catalog of its own, independent of the process's."""
    return Catalog()


def served_names(catalog: Catalog) -> list[str]:
    """Names of the served models, in order."""
    return [model.configuration.name for model in catalog.models()]


@pytest.mark.django_db
class TestSources:
    """Command line, settings, table, demo model; in this order."""

    def test_the_demo_model_is_served_when_nothing_else_is(self, catalog: Catalog) -> None:
        assert served_names(catalog) == ["demo"]

    def test_models_of_all_sources_are_served_in_order(self, catalog: Catalog, settings: Any) -> None:
        settings.DERENDER["MODELS"] = [{"name": "s", "model": FOLDER}]
        ServedModel.objects.create(name="t2", model=FOLDER, position=2)
        ServedModel.objects.create(name="t1", model=FOLDER, position=1)
        ServedModel.objects.create(name="off", model=FOLDER, enabled=False)

        catalog.serve([ModelConfiguration(name="c", model=FOLDER)])

        assert served_names(catalog) == ["c", "s", "t1", "t2"]
        assert catalog.resolve(None).names == ("c",)

    def test_a_name_that_is_taken_stays_with_the_earlier_source(
        self, catalog: Catalog, settings: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        settings.DERENDER["MODELS"] = [{"name": "s", "model": FOLDER, "aliases": ["c"]}]
        ServedModel.objects.create(name="t", model=FOLDER, aliases=["c"])

        catalog.serve([ModelConfiguration(name="c", model=FOLDER)])

        assert served_names(catalog) == ["c"]
        assert [record.message for record in caplog.records] == [
            "Model 's' is not served: the name 'c' is taken.",
            "Model 't' is not served: the name 'c' is taken.",
        ]

    def test_a_broken_row_does_not_harm_the_others(self, catalog: Catalog, caplog: pytest.LogCaptureFixture) -> None:
        ServedModel.objects.create(name="broken", model=FOLDER, max_logprobs=-7)
        ServedModel.objects.create(name="aliases", model=FOLDER, aliases={"not": "a list"})
        ServedModel.objects.create(name="good", model=FOLDER)

        with caplog.at_level(logging.ERROR):
            assert served_names(catalog) == ["good"]

        assert "Served model 'broken' is not served" in caplog.text

    def test_a_row_whose_tokenizer_is_missing_fails_alone(self, catalog: Catalog) -> None:
        ServedModel.objects.create(name="gone", model="/nowhere/at/all")
        ServedModel.objects.create(name="good", model=FOLDER)

        assert catalog.resolve("good").tokenizer.max_model_len == 131072
        with pytest.raises(ModelConfigurationError, match=r"gone: .*there is no such folder"):
            _ = catalog.resolve("gone").tokenizer


@pytest.mark.django_db
class TestChanges:
    """The table is read again while requests come in."""

    def test_a_change_arrives_without_a_restart(self, catalog: Catalog) -> None:
        row = ServedModel.objects.create(name="a", model=FOLDER)
        assert served_names(catalog) == ["a"]

        ServedModel.objects.filter(pk=row.pk).update(aliases=["b"])
        assert catalog.resolve("b").names == ("a", "b")

        row.delete()
        assert served_names(catalog) == ["demo"]

    def test_unchanged_models_keep_their_tokenizer_and_plan(self, catalog: Catalog) -> None:
        ServedModel.objects.create(name="a", model=FOLDER)
        before = catalog.resolve("a")

        ServedModel.objects.create(name="b", model=FOLDER)

        assert catalog.resolve("a") is before
        assert catalog.resolve("b").tokenizer is before.tokenizer

    def test_the_table_is_read_at_most_every_few_seconds(
        self, catalog: Catalog, settings: Any, django_assert_num_queries: Any
    ) -> None:
        settings.DERENDER["MODELS_REFRESH_SECONDS"] = 60.0

        with django_assert_num_queries(1):
            for _ in range(10):
                catalog.models()

    def test_an_unreachable_table_leaves_everything_as_it_is(
        self, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ServedModel.objects.create(name="a", model=FOLDER)
        assert served_names(catalog) == ["a"]

        def fail() -> None:
            raise OperationalError("connection refused")

        monkeypatch.setattr("derender_api.catalog.enabled_rows", fail)

        assert served_names(catalog) == ["a"]

    def test_a_missing_table_serves_the_rest_and_is_logged_once(
        self, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(ServedModel._meta, "db_table", "missing")

        assert served_names(catalog) == served_names(catalog) == ["demo"]
        assert len(caplog.records) == 1


class TestResolve:
    """Names to models."""

    def test_by_name_by_alias_and_by_default(self, catalog: Catalog) -> None:
        models = [
            ModelConfiguration(name="a", model=FOLDER, aliases=("x",)),
            ModelConfiguration(name="b", model=FOLDER),
        ]

        with catalog.override(models):
            assert [catalog.resolve(name).names[0] for name in (None, "a", "x", "b")] == ["a", "a", "a", "b"]

    @pytest.mark.parametrize("name", ["", "A", " a", "c"])
    def test_unknown_names_raise(self, catalog: Catalog, name: str) -> None:
        with catalog.override([ModelConfiguration(name="a", model=FOLDER)]), pytest.raises(ModelNotFound):
            catalog.resolve(name)

    def test_an_override_ends_with_its_block(self, catalog: Catalog) -> None:
        with catalog.override([ModelConfiguration(name="a", model=FOLDER)]):
            with catalog.override([ModelConfiguration(name="b", model=FOLDER)]):
                assert served_names(catalog) == ["b"]
            assert served_names(catalog) == ["a"]

    def test_threads_share_one_tokenizer(self, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
        loads, start = [], threading.Barrier(8)
        monkeypatch.setattr(tokenization, "load_tokenizer", lambda *a, **k: loads.append(a) or load_tokenizer(*a, **k))

        def use() -> None:
            start.wait()
            _ = catalog.resolve("a").tokenizer

        with catalog.override([ModelConfiguration(name="a", model=FOLDER)]):
            threads = [threading.Thread(target=use) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        assert len(loads) == 1

    def test_a_failure_is_not_repeated_for_every_request(
        self, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        loads = []
        monkeypatch.setattr(tokenization, "load_tokenizer", lambda *a, **k: loads.append(a) or load_tokenizer(*a, **k))

        with catalog.override([ModelConfiguration(name="a", model="/nowhere/at/all")]):
            for _ in range(3):
                with pytest.raises(ModelConfigurationError):
                    _ = catalog.resolve("a").tokenizer

        assert len(loads) == 1


class TestValidation:
    """What a start and the admin page check."""

    def test_the_demo_model_is_valid(self) -> None:
        validate_loadable(DEMO)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (
                {"tool_call_parser": "nope"},
                "m: --tool-call-parser nope is unknown; known: .*hermes",
            ),
            (
                {"reasoning_parser": "nope"},
                "m: --reasoning-parser nope is unknown; known: .*qwen3",
            ),
            ({"model": "/nowhere/at/all"}, "m: MODEL /nowhere/at/all: there is no such folder"),
            ({"tokenizer": "/nowhere/at/all"}, "m: --tokenizer /nowhere/at/all: there is no such folder"),
            ({"tokenizer_mode": "mistral"}, "m: --tokenizer-mode mistral: .* has neither tekken.json nor"),
            ({"chat_template": "/nowhere/x.jinja"}, "m: --chat-template '/nowhere/x.jinja' is neither a readable file"),
        ],
    )
    def test_errors_name_the_flag_and_the_cure(self, changes: dict[str, str], message: str) -> None:
        values = {"name": "m", "model": FOLDER, **changes}

        with pytest.raises(ModelConfigurationError, match=message):
            validate_loadable(ModelConfiguration(**values))  # type: ignore[arg-type]

    def test_a_model_without_a_context_length_needs_the_flag(self, tmp_path: Path) -> None:
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (tmp_path / name).symlink_to(DEMO_FOLDER / name)
        without = ModelConfiguration(name="m", model=str(tmp_path))

        with pytest.raises(ModelConfigurationError, match=r"m: .*context length; set --max-model-len"):
            validate_loadable(without)

        validate_loadable(ModelConfiguration(name="m", model=str(tmp_path), max_model_len=32))

    def test_a_chat_template_is_a_file_or_the_text(self, tmp_path: Path) -> None:
        (tmp_path / "t.jinja").write_text("{{ 1 }}")
        configurations = [
            ModelConfiguration(name="file", model=FOLDER, chat_template=str(tmp_path / "t.jinja")),
            ModelConfiguration(name="text", model=FOLDER, chat_template="{{ 2 }}"),
            ModelConfiguration(name="none", model=FOLDER),
        ]

        catalog = Catalog()
        with catalog.override(configurations):
            assert [model.chat_template for model in catalog.models()] == ["{{ 1 }}", "{{ 2 }}", None]

    def test_a_tokenizer_from_elsewhere_serves_with_the_facts_of_the_model(self, tmp_path: Path) -> None:
        facts = {"model_type": "other", "max_position_embeddings": 77, "eos_token_id": [5, 6]}
        (tmp_path / "config.json").write_text(json.dumps(facts))
        (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "not this one"}')
        catalog = Catalog()

        with catalog.override(
            [
                ModelConfiguration(name="own", model=FOLDER),
                ModelConfiguration(name="other", model=str(tmp_path), tokenizer=FOLDER),
                ModelConfiguration(name="template", model=FOLDER, chat_template="{{ 1 }}"),
            ]
        ):
            own, other, template = (model.tokenizer for model in catalog.models())
            assert [model.max_model_len for model in catalog.models()] == [131072, 77, 131072]

        assert (other.model_type, other.model_eos_ids, other.eos_id) == ("other", {5, 6, 4002}, 4002)
        assert other.vocabulary.model_type == "other"
        assert other.vocabulary.chat_template == own.chat_template
        assert other.decode([2541, 3048]) == "Hello world"
        assert (own.model_type, own.model_eos_ids) == ("qwen3", {4002})
        assert template.vocabulary.chat_template == "{{ 1 }}"

    def test_loading_stops_when_the_time_is_up(self, catalog: Catalog) -> None:
        models = [ModelConfiguration(name=str(number), model=FOLDER) for number in range(5)]

        with catalog.override(models):
            assert catalog.validate(seconds=0.0) == 4
            assert catalog.validate(seconds=60.0) == 0

    @pytest.mark.parametrize("changes", [{"model": "/nowhere/at/all"}, {"reasoning_parser": "nope"}])
    def test_models_that_are_left_for_later_are_checked_nevertheless(
        self, catalog: Catalog, changes: dict[str, str]
    ) -> None:
        broken = ModelConfiguration(**{"name": "broken", "model": FOLDER, **changes})  # type: ignore[arg-type]

        with (
            catalog.override([ModelConfiguration(name="a", model=FOLDER), broken]),
            pytest.raises(ModelConfigurationError, match="broken: "),
        ):
            catalog.validate(seconds=0.0)

    def test_a_token_that_the_tokenizer_lacks(self, tmp_path: Path) -> None:
        configuration = ModelConfiguration(name="m", model=FOLDER, reasoning_parser="deepseek_r1")
        validate_loadable(configuration)
        for file in DEMO_FOLDER.iterdir():
            (tmp_path / file.name).write_text(file.read_text().replace("</think>", "</thank>"))

        with pytest.raises(ModelConfigurationError, match=r"m: .*</think>.*Change --reasoning-parser deepseek_r1"):
            validate_loadable(ModelConfiguration(name="m", model=str(tmp_path), reasoning_parser="deepseek_r1"))

    @pytest.mark.parametrize("reasoning_parser", [None, "deepseek_r1"])
    def test_a_tool_parser_that_does_not_run_is_checked_too(self, reasoning_parser: str | None) -> None:
        configuration = ModelConfiguration(
            name="m", model=FOLDER, tool_call_parser="jamba", reasoning_parser=reasoning_parser
        )

        with pytest.raises(ModelConfigurationError, match=r"m: .*<tool_calls>.*Change --tool-call-parser jamba"):
            validate_loadable(configuration)
