"""The playground: experiments, what became of each token, the page, and cases made of experiments."""

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from derender_api.loaded_model import LoadedModel, TokenizerPool
from derender_api.model_sources import DEMO, DEMO_FOLDER
from derender_api.parity.answers import fold
from derender_api.parity.core import decoded_output
from derender_api.parity.groupings import lengths
from derender_api.parity.options import Options
from derender_api.parity.runner import run
from derender_api.parity.suite import Case, read_case, read_suite
from derender_api.parity.tokenizers import locate
from derender_api.workbench.models import Difference, ParityRun, ProfileFigures, SavedCase
from derender_api.workbench.playground.attribution import Kind
from derender_api.workbench.playground.examples import example
from derender_api.workbench.playground.experiment import Answers, Experiment, answers_to
from derender_api.workbench.playground.tracing import TracedToken, trace
from tests.derender_api.workbench.suites import RECORDED

URL = "/admin/playground/"
OUTPUT = (
    "<think>\nEasy.\n</think>\n\nI look.<tool_call>\n"
    '{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call><|im_end|>'
)
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}]
FORM = {
    "model": "demo",
    "kind": "text",
    "output": OUTPUT,
    "tools": json.dumps(TOOLS),
    "tool_choice": "auto",
    "chunking": "1",
    "finish_reason": "stop",
}


@pytest.fixture(scope="module")
def demo() -> LoadedModel:
    """The bundled model."""
    return LoadedModel(DEMO, tokenizers=TokenizerPool())


@pytest.fixture
def admin(client: Client, db: None) -> Client:
    """A client that may do everything."""
    client.force_login(User.objects.create_superuser("admin"))
    return client


def experiment(model: LoadedModel, **changes: Any) -> Experiment:
    """One of the demo model with OUTPUT."""
    token_ids = model.tokenizer.encode(OUTPUT)
    values: dict[str, Any] = {
        "model": model,
        "token_ids": token_ids,
        "prompt_token_ids": [],
        "request": {"messages": [{"role": "user", "content": "Hello"}], "tools": TOOLS},
        "grouping": "1",
        "lens": lengths("1", len(token_ids)),
        "finish_reason": "stop",
        **changes,
    }
    return Experiment(**values)


def text_of(tokens: list[TracedToken], kind: Kind) -> str:
    """All text that became `kind`."""
    return "".join(span.text for token in tokens for span in token.spans if span.kind is kind)


class TestExperiment:
    """The answers are those of the API."""

    def test_is_answered_in_one_shot_and_as_a_stream(self, demo: LoadedModel) -> None:
        answers = answers_to(experiment(demo))

        message = answers.oneshot["message"]
        assert (message["reasoning"], message["content"]) == ("\nEasy.\n", "\n\nI look.")
        assert message["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": '{"city": "Paris"}'}
        folded = fold(answers.chunks)
        assert folded is not None
        assert (folded.reasoning, folded.content, folded.finish_reason) == ("\nEasy.\n", "\n\nI look.", "tool_calls")

    def test_a_refused_request_says_why(self, demo: LoadedModel) -> None:
        answers = answers_to(experiment(demo, request={"messages": [], "tools": "no list"}))

        assert answers.refusal is answers.oneshot
        assert answers.oneshot["status"] == 400

    def test_a_refused_stream_says_why(self) -> None:
        error = {"error": {"message": "no"}}

        assert Answers({"status": 200}, 400, [error]).refusal == {"status": 400, "body": error}
        assert Answers({"status": 200}, 200, []).refusal is None

    def test_what_became_of_each_token(self, demo: LoadedModel) -> None:
        tokens = trace(experiment(demo))

        assert "".join(span.text for token in tokens for span in token.spans) == OUTPUT.removesuffix("<|im_end|>")
        assert text_of(tokens, Kind.REASONING) == "\nEasy.\n"
        assert text_of(tokens, Kind.CONTENT) == "\n\nI look."
        assert text_of(tokens, Kind.NAME) == "get_weather"
        assert text_of(tokens, Kind.ARGUMENTS) == '{"city": "Paris"}'

    def test_what_the_request_leaves_out_is_dropped(self, demo: LoadedModel) -> None:
        request = {"messages": [], "tools": TOOLS, "include_reasoning": False}

        assert text_of(trace(experiment(demo, request=request)), Kind.DROPPED) == "\nEasy.\n"

    def test_an_output_without_an_end_holds_text_back(self, demo: LoadedModel) -> None:
        token_ids = demo.tokenizer.encode('<tool_call>{"name": "get')
        made = experiment(demo, token_ids=token_ids, lens=(len(token_ids),), finish_reason=None)

        assert text_of(trace(made), Kind.HELD) == '{"name": "get'


def recorded() -> Iterator[tuple[Case, LoadedModel]]:
    """The cases of public bug reports, each with its model."""
    suite = read_suite(RECORDED / "bugs")
    pool = TokenizerPool()
    for name, lines in suite.lines.items():
        profile = suite.profiles[name]
        folder = locate(profile.tokenizer, roots=[RECORDED, RECORDED.parent])
        model = LoadedModel(profile.configuration(folder=folder), tokenizers=pool)
        for line in lines:
            case = read_case(line, suite=suite.name)
            if isinstance(case, Case) and case.oneshot["status"] == 200 and not case.request.get("stop"):
                yield case, model


@pytest.mark.parity
def test_colours_agree_with_the_stream_for_nearly_every_recorded_case() -> None:
    agreeing, count = 0, 0
    for case, model in recorded():
        lens = lengths("1", len(case.output_token_ids))
        made = Experiment(
            model=model,
            token_ids=case.output_token_ids,
            prompt_token_ids=case.prompt_token_ids,
            request=case.request,
            grouping="1",
            lens=lens,
            finish_reason=case.finish_reason,
        )
        output = decoded_output(model, made.case())
        texts = output.cut_texts if made.finish_reason else output.texts
        tokens, folded = trace(made), fold(answers_to(made).chunks)
        assert ["".join(span.text for span in token.spans) for token in tokens] == list(texts), case.id
        assert folded is not None
        sent = (folded.reasoning, folded.content, "".join(name for name, _ in folded.calls))
        count += 1
        agreeing += sent == tuple(text_of(tokens, kind) for kind in (Kind.REASONING, Kind.CONTENT, Kind.NAME))

    assert agreeing >= 0.95 * count


@pytest.mark.django_db
class TestPage:
    """The form, its errors, and what is shown."""

    def test_needs_a_login(self, client: Client, db: None) -> None:
        for answer in (client.get(URL), client.post(URL, FORM)):
            assert (answer.status_code, answer["Location"]) == (302, f"/admin/login/?next={URL}")

    def test_needs_the_permission_to_see_models(self, client: Client, db: None) -> None:
        client.force_login(User.objects.create_user("clerk", is_staff=True))

        assert client.get(URL).status_code == 403

    def test_begins_with_an_example(self, admin: Client) -> None:
        page = admin.get(URL).content.decode()

        assert "&lt;tool_call&gt;" in page
        assert 'id="results"' not in page

    def test_shows_what_became_of_an_output(self, admin: Client) -> None:
        page = admin.post(URL, FORM).content.decode()

        assert '<span class="tok name" data-kind="name"' in page
        assert "All 33 chunks" in page
        assert "The stream adds up to this message." in page

    def test_says_where_a_stream_cannot_take_back_what_it_sent(self, admin: Client) -> None:
        form = {**FORM, "output": '<tool_call>{"name": "get_weather", "arguments": {"city" no}</tool_call>'}

        assert "does not add up to this message" in admin.post(URL, form).content.decode()

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"output": ""}, "This field is required."),
            ({"kind": "ids", "output": "1, two"}, "Token IDs are whole numbers"),
            ({"kind": "ids", "output": "[4294967296]"}, "A token ID is between 0 and 4294967295."),
            ({"kind": "ids", "output": "1 " * 4097}, "4097 tokens; the page shows at most 4096."),
            ({"kind": "ids", "output": "[]"}, "There is no token in it."),
            ({"prompt_ids": "x"}, "Token IDs are whole numbers"),
            ({"tools": "{"}, "Enter a valid JSON."),
            ({"tools": "{}"}, "A JSON list is expected."),
            ({"kwargs": "[]"}, "A JSON object is expected."),
            ({"chunking": "size", "lens": "0"}, "Give one number above 0."),
            ({"chunking": "custom", "lens": "a"}, "Give numbers above 0."),
            ({"model": "unknown"}, "Select a valid choice."),
            ({"model": ""}, "Give the tokenizer&#x27;s folder or hub id."),
            ({"model": "", "tokenizer": "/nowhere/at/all"}, "there is no such folder"),
            ({"model": "", "tokenizer": str(DEMO_FOLDER), "tool_parser": "nope"}, "nope is unknown"),
        ],
    )
    def test_an_error_stands_beside_its_field(self, admin: Client, changes: dict[str, str], message: str) -> None:
        answer = admin.post(URL, {**FORM, **changes})

        assert answer.status_code == 200
        assert message in answer.content.decode()
        assert 'id="results"' not in answer.content.decode()

    def test_a_request_that_the_api_refuses_is_shown_with_its_error(self, admin: Client) -> None:
        page = admin.post(URL, {**FORM, "more": '{"tool_choice": 5}'}).content.decode()

        assert "The service refuses this request (status 400)." in page

    def test_a_pair_of_parsers_needs_no_served_model(self, admin: Client) -> None:
        form = {**FORM, "model": "", "tokenizer": str(DEMO_FOLDER), "tool_parser": "hermes"}

        assert "get_weather</span>" in admin.post(URL, form).content.decode()

    def test_other_tokenizers_need_the_permission_to_add_models(self, client: Client, db: None) -> None:
        clerk = User.objects.create_user("clerk", is_staff=True)
        clerk.user_permissions.add(Permission.objects.get(codename="view_servedmodel"))
        client.force_login(clerk)

        page = client.post(URL, {**FORM, "model": "", "tokenizer": str(DEMO_FOLDER)}).content.decode()

        assert "Only who may add served models may load other tokenizers." in page

    @pytest.mark.parametrize(
        ("chunking", "lens", "chunks"), [("all", "", 1), ("size", "10", 4), ("custom", "1, 2, 30", 3)]
    )
    def test_chunkings(self, admin: Client, chunking: str, lens: str, chunks: int) -> None:
        page = admin.post(URL, {**FORM, "chunking": chunking, "lens": lens}).content.decode()

        assert f"All {chunks} chunks" in page

    def test_a_link_may_fill_in_fields(self, admin: Client) -> None:
        page = admin.get(URL, {"model": "demo", "output": "from a link", "chunking": "all"}).content.decode()

        assert "from a link" in page

    @pytest.mark.parametrize("query", ["case=7", "difference=7", "case=x", "case=" + "9" * 40])
    def test_what_is_not_there_is_not_found(self, admin: Client, query: str) -> None:
        assert admin.get(f"{URL}?{query}").status_code == 404

    def test_tries_a_case_of_a_parity_run(self, admin: Client) -> None:
        run = ParityRun.objects.create(version="1", seconds=1, cases=1, failing=1, rules={}, paths="")
        figures = ProfileFigures.objects.create(run=run, suite="s", profile="p", cases=1)
        source = {
            "profile": {"name": "p", "tokenizer": "t", "tool_parser": "hermes"},
            "tokenizer": "/folder/of/t",
            "case": {
                "request": {"messages": [], "tool_choice": {"function": {"name": "f"}}},
                "output_token_ids": [5, 6],
                "prompt_token_ids": [1],
                "finish_reason": "length",
            },
        }
        difference = Difference.objects.create(figures=figures, case="c", rule="message", source=source)

        page = admin.get(URL, {"difference": difference.pk}).content.decode()

        assert 'value="/folder/of/t"' in page
        assert "5, 6</textarea>" in page


@pytest.mark.django_db
class TestCases:
    """Experiments as parity cases."""

    def test_is_saved_and_tried_again(self, admin: Client) -> None:
        answer = admin.post(URL, {**FORM, "action": "save", "case_id": "weather", "note": "a note"})

        saved = SavedCase.objects.get()
        assert answer["Location"] == f"/admin/workbench/savedcase/{saved.pk}/change/"
        assert admin.get(answer["Location"]).status_code == 200
        assert "weather" in admin.get("/admin/workbench/savedcase/").content.decode()
        assert (saved.case_id, saved.note, saved.profile["name"]) == ("weather", "a note", "hermes+qwen3@demo_model")
        assert str(saved.case["output_token_ids"][0]) in admin.get(f"{URL}?case={saved.pk}").content.decode()

    @pytest.mark.parametrize(("case_id", "message"), [("", "cannot be blank"), ("a b", "valid “slug”")])
    def test_needs_an_id(self, admin: Client, case_id: str, message: str) -> None:
        page = admin.post(URL, {**FORM, "action": "save", "case_id": case_id}).content.decode()

        assert message in page
        assert not SavedCase.objects.exists()

    def test_saving_needs_the_permission(self, client: Client, db: None) -> None:
        clerk = User.objects.create_user("clerk", is_staff=True)
        clerk.user_permissions.add(Permission.objects.get(codename="view_servedmodel"))
        client.force_login(clerk)

        assert client.post(URL, {**FORM, "action": "save", "case_id": "c"}).status_code == 403
        assert client.post(URL, {**FORM, "action": "run"}).status_code == 200

    def test_is_downloaded(self, admin: Client) -> None:
        answer = admin.post(URL, {**FORM, "action": "download", "case_id": "weather"})

        assert answer["Content-Disposition"] == 'attachment; filename="weather.json"'
        assert answer.json()["case"]["streams"]["1"]["status"] == 200

    @pytest.mark.django_db(transaction=True)
    def test_saved_cases_make_a_suite_that_runs(self, admin: Client, tmp_path: Path) -> None:
        for number, chunking in enumerate(("1", "custom")):
            form = {**FORM, "action": "save", "case_id": f"case-{number}", "chunking": chunking, "lens": "3, 5"}
            admin.post(URL, form)
        chosen = list(SavedCase.objects.values_list("pk", flat=True))
        answer = admin.post(
            "/admin/workbench/savedcase/", {"action": "download_suite", "_selected_action": chosen}, follow=False
        )
        zipfile.ZipFile(io.BytesIO(answer.content)).extractall(tmp_path)

        suite = read_suite(tmp_path / "playground")
        assert list(suite.profiles) == ["hermes+qwen3@demo_model"]
        found = run([suite.folder], options=Options(processes=1))
        assert sorted(result.id for result in found.results) == ["case-0", "case-1"]
        assert (found.failing, found.problems) == (0, [])


@pytest.mark.parametrize(
    ("tool_parser", "reasoning_parser", "output"),
    [
        (None, None, "Hello, world!<|im_end|>"),
        (None, "deepseek_r1", "<think>The user greets me.</think>Hello!<|im_end|>"),
        (
            "hermes",
            "qwen3",
            "<think>\nThe user asks for the weather.\n</think>\n\nI will check.<tool_call>\n"
            '{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call><|im_end|>',
        ),
        (
            "mimo",
            "mimo",
            "<think>The user asks for the weather.</think>Let me look.\n<tool_call>\n<function=get_weather>\n"
            "<parameter=city>Paris</parameter>\n</function>\n</tool_call><|im_end|>",
        ),
    ],
)
def test_the_example_is_in_the_wire_format_of_the_parsers(
    tool_parser: str | None, reasoning_parser: str | None, output: str
) -> None:
    configuration = replace(
        DEMO,
        tool_call_parser=tool_parser,
        reasoning_parser=reasoning_parser,
        enable_auto_tool_choice=bool(tool_parser),
    )

    assert example(LoadedModel(configuration, tokenizers=TokenizerPool()))["output"] == output
