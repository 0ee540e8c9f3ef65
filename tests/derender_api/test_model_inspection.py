"""How served models stand in this process."""

import pytest

from derender_api.catalog import catalog
from derender_api.model_inspection import inspector
from derender_api.model_sources import DEMO, DEMO_FOLDER
from parsers.configuration import ModelConfiguration, ModelConfigurationError
from parsers.inspection import Status

FOLDER = str(DEMO_FOLDER)


def configuration(**values: object) -> ModelConfiguration:
    """One of the demo model's tokenizer."""
    return ModelConfiguration(**{"name": "n", "model": FOLDER, **values})  # type: ignore[arg-type]


def test_a_model_loads_on_first_use() -> None:
    with catalog.override([configuration()]):
        assert inspector.state(configuration()).status is Status.WAITING
        _ = catalog.resolve("n").tokenizer
        state = inspector.state(configuration())

    assert state.status is Status.LOADED
    assert state.detail == "tokenizer with 4,009 tokens, context of 131,072 tokens, no parser runs"


def test_a_failure_is_told() -> None:
    broken = configuration(model="/nowhere/at/all")
    with catalog.override([broken]):
        assert inspector.state(broken).status is Status.WAITING
        with pytest.raises(ModelConfigurationError):
            _ = catalog.resolve("n").tokenizer
        state = inspector.state(broken)

    assert state.status is Status.FAILED
    assert "/nowhere/at/all" in state.detail


def test_a_plan_that_cannot_be_built_is_a_failure() -> None:
    broken = configuration(reasoning_parser="openai_gptoss")
    with catalog.override([broken]):
        _ = catalog.resolve("n").tokenizer

        assert inspector.state(broken).status is Status.FAILED


def test_what_is_not_served_yet_is_being_taken_over() -> None:
    with catalog.override([configuration()]):
        assert inspector.state(configuration(name="other")).status is Status.PENDING


def test_a_name_of_the_command_line_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "_fixed", (configuration(aliases=("taken",)),))
    with catalog.override([configuration(aliases=("taken",))]):
        state = inspector.state(configuration(name="taken"))

    assert state.status is Status.SHADOWED
    assert state.detail == "The name 'taken' is served from elsewhere; that one wins."


@pytest.mark.django_db
def test_models_from_elsewhere_are_listed_with_their_source() -> None:
    with catalog.override([DEMO]):
        found = inspector.elsewhere()

    assert [(each.configuration.name, each.source) for each in found] == [
        ("demo", "the bundled demo model, since nothing else is served")
    ]


def test_a_check_loads_anew_and_raises_what_is_wrong() -> None:
    assert inspector.check(DEMO).startswith(
        "tokenizer with 4,009 tokens, context of 131,072 tokens, parsers hermes + qwen3"
    )
    with pytest.raises(ModelConfigurationError, match="no such folder"):
        inspector.check(configuration(model="/nowhere/at/all"))
