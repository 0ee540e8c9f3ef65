"""The playground's page: the form, what became of each token, the message, and the stream step by step."""

import json
import logging
from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import slugify
from django.views.decorators.http import require_http_methods

from derender_api.catalog import catalog
from derender_api.workbench.models import Difference, SavedCase
from derender_api.workbench.parity.store import storable
from derender_api.workbench.playground import examples
from derender_api.workbench.playground.attribution import Kind, Span
from derender_api.workbench.playground.cases import case_of, profile_of
from derender_api.workbench.playground.experiment import Answers, Experiment, answers_to
from derender_api.workbench.playground.forms import PlaygroundForm
from derender_api.workbench.playground.tracing import TracedToken, trace

logger = logging.getLogger(__name__)

LEGEND = {
    Kind.REASONING: "reasoning",
    Kind.CONTENT: "content",
    Kind.NAME: "tool name",
    Kind.ARGUMENTS: "arguments",
    Kind.MARKER: "marker or syntax",
    Kind.DROPPED: "dropped",
    Kind.HELD: "held back",
}
VISIBLE = str.maketrans({"\n": "↵\n", "\t": "⇥\t"})


@require_http_methods(["GET", "HEAD", "POST"])
def playground(request: HttpRequest) -> HttpResponse:
    """The page; posted, with the answers to the experiment. `save` and `download` make a case of it."""
    if not request.user.has_perm("parsers.view_servedmodel"):
        raise PermissionDenied
    may_load = request.user.has_perm("parsers.add_servedmodel")
    if request.method != "POST":
        return _page(request, PlaygroundForm(initial=_initial(request), may_load=may_load))
    form = PlaygroundForm(request.POST, may_load=may_load)
    if not form.is_valid() or "experiment" not in form.cleaned_data:
        return _page(request, form)
    experiment: Experiment = form.cleaned_data["experiment"]
    answers = answers_to(experiment)
    match request.POST.get("action"):
        case "save":
            return _save(request, form, experiment, answers)
        case "download":
            return _download(request, experiment, answers)
        case _:
            return _page(request, form, experiment, answers)


def _initial(request: HttpRequest) -> dict[str, Any]:
    """What the form holds at first: a saved case, a difference of a parity run, or an example for a model."""
    given = request.GET
    if "case" in given:
        saved = get_object_or_404(SavedCase, pk=_number(given["case"]))
        return examples.of_case(saved.case, saved.profile, folder=saved.profile["tokenizer"])
    if "difference" in given:
        found = get_object_or_404(Difference, pk=_number(given["difference"]), source__isnull=False)
        source: dict[str, Any] = found.source or {}
        return examples.of_case(source["case"], source["profile"], folder=source["tokenizer"])
    models = catalog.models()
    model = next((each for each in models if given.get("model") in each.names), models[0])
    initial = {"tools": examples.TOOLS, "tool_choice": "auto", **examples.example(model)}
    return {**initial, **{name: value for name, value in given.items() if name != "model"}}


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _page(
    request: HttpRequest,
    form: PlaygroundForm,
    experiment: Experiment | None = None,
    answers: Answers | None = None,
) -> HttpResponse:
    context: dict[str, Any] = {**admin.site.each_context(request), "title": "Playground", "form": form}
    if experiment is not None and answers is not None:
        tokens = _traced(experiment, answers)
        context |= {
            "experiment": experiment,
            "oneshot": answers.oneshot,
            "tokens": [_shown(token) for token in tokens or ()],
            "legend": _legend(tokens or ()),
            "steps": _steps(experiment, answers),
            "refusal": answers.refusal,
            "agree": answers.agree,
            "refusal_text": json.dumps(answers.refusal, indent=2, ensure_ascii=False),
            "parser_failed": tokens is None,
            "stream_json": {"bounds": experiment.bounds, "chunks": answers.chunks},
            "oneshot_text": json.dumps(answers.oneshot, indent=2, ensure_ascii=False),
            "stops": bool(experiment.request.get("stop")),
            "may_save": request.user.has_perm("workbench.add_savedcase"),
        }
    return TemplateResponse(request, "workbench/playground.html", context)


def _traced(experiment: Experiment, answers: Answers) -> list[TracedToken] | None:
    """The tokens; none where the request was refused. None where the parser fails, which the service survives."""
    if answers.refusal:
        return []
    try:
        return trace(experiment)
    except Exception:
        logger.exception("parser %s failed in the playground", experiment.model.names[0])
        return None


def _shown(token: TracedToken) -> dict[str, Any]:
    """A token as the page shows it: visible white space, and a sentence for pointers and screen readers."""
    spans = [
        {
            "text": span.text.translate(VISIBLE) or "∅",
            "silent": not span.text,
            "kind": span.kind,
            "step": span.step,
            "approximate": span.approximate,
        }
        for span in token.spans
    ]
    became = "; ".join(_sentence(span, token.index) for span in token.spans)
    return {"index": token.index, "id": token.token_id, "piece": token.piece, "spans": spans, "became": became}


def _sentence(span: Span, index: int) -> str:
    later = f", known {span.step - index} tokens later" if span.step > index else ""
    return f"{LEGEND[span.kind]}{' (approximate)' if span.approximate else ''}{later}"


def _legend(tokens: Sequence[TracedToken]) -> list[dict[str, Any]]:
    """Every kind with the number of code points that became it."""
    counts = dict.fromkeys(LEGEND, 0)
    for token in tokens:
        for span in token.spans:
            counts[span.kind] += len(span.text)
    return [{"kind": kind, "label": label, "count": counts[kind]} for kind, label in LEGEND.items()]


def _steps(experiment: Experiment, answers: Answers) -> list[dict[str, Any]]:
    """The chunks of the stream, each with its tokens and what it adds."""
    if answers.refusal:
        return []
    return [
        {
            "number": number,
            "tokens": f"{start}" if end - start == 1 else f"{start} to {end - 1}" if end > start else "none",
            "delta": json.dumps(delta, ensure_ascii=False),
            "finish_reason": reason,
            "empty": not delta and reason is None,
        }
        for number, ((start, end), (delta, reason)) in enumerate(
            zip(experiment.bounds, answers.chunks, strict=True), start=1
        )
    ]


def _save(request: HttpRequest, form: PlaygroundForm, experiment: Experiment, answers: Answers) -> HttpResponse:
    if not request.user.has_perm("workbench.add_savedcase"):
        raise PermissionDenied
    case_id = request.POST.get("case_id", "").strip()
    saved = SavedCase(
        case_id=case_id,
        note=request.POST.get("note", "").strip(),
        profile=storable(profile_of(experiment)),
        line=json.dumps(case_of(experiment, answers, case_id=case_id)),
        created_by_id=request.user.pk,
    )
    try:
        saved.full_clean()
    except ValidationError as error:
        for field, texts in error.message_dict.items():
            messages.error(request, f"The case is not saved: {field}: {' '.join(texts)}")
        return _page(request, form, experiment, answers)
    saved.save()
    messages.success(request, f"Saved as {saved.case_id}.")
    return redirect(reverse("admin:workbench_savedcase_change", args=[saved.pk]))


def _download(request: HttpRequest, experiment: Experiment, answers: Answers) -> HttpResponse:
    """One line of a suite's cases, with its profile in front for people."""
    case_id = slugify(request.POST.get("case_id", "")) or "case"
    content = json.dumps(
        {"profile": profile_of(experiment), "case": case_of(experiment, answers, case_id=case_id)}, ensure_ascii=False
    )
    response = HttpResponse(content, content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{case_id}.json"'
    return response
