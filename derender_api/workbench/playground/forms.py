"""The playground's form: from what was typed to an experiment."""

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminRadioSelectWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from derender_api.catalog import catalog
from derender_api.loaded_model import LoadedModel, TokenizerPool
from derender_api.parity.groupings import lengths
from derender_api.workbench.playground.experiment import LONGEST_OUTPUT, OWN, Experiment
from parsers.configuration import ModelConfiguration, ModelConfigurationError
from parsers.widgets import FormatSelect, JsonEditor, JsonField

MESSAGES = [{"role": "user", "content": "Hello"}]
PAIR = ""
"""Choice of model that stands for the pair of parsers and the tokenizer below it."""
CHUNKINGS = (
    ("1", "one token a chunk"),
    ("all", "the whole output in one chunk"),
    ("size", "chunks of N tokens"),
    ("custom", "own lengths"),
)
TOOL_CHOICES = ("auto", "none", "required")
LONGEST_TEXT = 200_000
"""Code points of a field; more makes no output that the page shows."""
LARGEST_ID = 2**32 - 1

_pool = TokenizerPool()


class PlaygroundForm(forms.Form):
    """What is tried. `may_load`: whether tokenizers that no served model has may be loaded."""

    model = forms.ChoiceField(
        required=False,
        widget=UnfoldAdminSelectWidget,
        label="Model",
        help_text="A served model, or a pair of parsers of your own.",
    )
    tool_parser = forms.CharField(required=False, widget=FormatSelect(role="tool calls"), label="Tool call parser")
    reasoning_parser = forms.CharField(required=False, widget=FormatSelect(role="reasoning"))
    tokenizer = forms.CharField(
        required=False, widget=UnfoldAdminTextInputWidget, help_text="Folder or hub id, as for a served model."
    )
    kind = forms.ChoiceField(
        choices=[("text", "text"), ("ids", "token IDs")],
        initial="text",
        widget=UnfoldAdminRadioSelectWidget,
        label="The output is given as",
    )
    output = forms.CharField(
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 10, "class": "json-editor", "spellcheck": "false"}),
        strip=False,
        max_length=LONGEST_TEXT,
        label="Output of the model",
        help_text="Text is encoded with the tokenizer, markers included; IDs are separated by commas or spaces.",
    )
    prompt = forms.CharField(
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2, "class": "json-editor", "spellcheck": "false"}),
        strip=False,
        max_length=LONGEST_TEXT,
        label="End of the prompt",
        help_text="Text; some parsers look for thoughts that the prompt opened or closed.",
    )
    prompt_ids = forms.CharField(
        required=False,
        max_length=LONGEST_TEXT,
        widget=UnfoldAdminTextInputWidget,
        label="Token IDs of the prompt",
        help_text="Instead of the text.",
    )
    tools = JsonField(
        expected="list",
        required=False,
        widget=JsonEditor({"rows": 10}, expected="list"),
        help_text="As in a chat request.",
    )
    tool_choice = forms.CharField(
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"list": "tool-choices"}),
        help_text="auto, none, required, or the name of a function. Empty: not sent.",
    )
    kwargs = JsonField(
        expected="object",
        required=False,
        widget=JsonEditor({"rows": 3}, expected="object"),
        label="Chat template kwargs",
    )
    more = JsonField(
        expected="object",
        required=False,
        widget=JsonEditor({"rows": 3}, expected="object"),
        label="Further fields of the request",
        help_text='For example {"include_reasoning": false, "parallel_tool_calls": false}.',
    )
    chunking = forms.ChoiceField(choices=CHUNKINGS, initial="1", widget=UnfoldAdminSelectWidget)
    lens = forms.CharField(
        required=False,
        widget=UnfoldAdminTextInputWidget,
        label="N, or own lengths",
        help_text="A number, or lengths such as 3, 1, 4; the last one is repeated.",
    )
    finish_reason = forms.ChoiceField(
        required=False,
        choices=[("stop", "stop"), ("length", "length"), ("", "none: the output goes on")],
        initial="stop",
        widget=UnfoldAdminSelectWidget,
    )

    def __init__(self, *args: Any, may_load: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._may_load = may_load
        names = [(model.names[0], model.names[0]) for model in catalog.models()]
        self.fields["model"].choices = [*names, (PAIR, "a pair of parsers (below)")]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """Builds the experiment, with errors at the fields that they are about."""
        cleaned = super().clean() or {}
        if not self.errors:
            model = self._model(cleaned)
            if model is not None:
                self._build(cleaned, model)
        return cleaned

    def _build(self, cleaned: Mapping[str, Any], model: LoadedModel) -> None:
        token_ids = self._output(cleaned, model)
        prompt_ids = self._ids("prompt_ids", cleaned["prompt_ids"]) or model.tokenizer.encode(cleaned["prompt"])
        request = self._request(cleaned)
        if self.errors:
            return
        grouping, lens = self._lens(cleaned, len(token_ids))
        if not self.errors:
            self.cleaned_data["experiment"] = Experiment(
                model=model,
                token_ids=token_ids,
                prompt_token_ids=prompt_ids,
                request=request,
                grouping=grouping,
                lens=lens,
                finish_reason=cleaned["finish_reason"] or None,
            )

    def _model(self, cleaned: Mapping[str, Any]) -> LoadedModel | None:
        """The served model, or one of the pair; loaded."""
        try:
            if cleaned["model"] != PAIR:
                model = catalog.resolve(cleaned["model"])
            elif not cleaned["tokenizer"]:
                self.add_error("tokenizer", "Give the tokenizer's folder or hub id.")
                return None
            elif not self._may_load:
                self.add_error("tokenizer", "Only who may add served models may load other tokenizers.")
                return None
            else:
                model = LoadedModel(_pair(cleaned), tokenizers=_pool)
                _pool.keep_only([model.configuration])
            model.load()
        except ModelConfigurationError as error:
            self.add_error(_field_of(error, cleaned["model"]), str(error))
            return None
        return model

    def _output(self, cleaned: Mapping[str, Any], model: LoadedModel) -> list[int]:
        if cleaned["kind"] == "text":
            token_ids = model.tokenizer.encode(cleaned["output"].replace("\r\n", "\n"))
        else:
            token_ids = self._ids("output", cleaned["output"])
        if not token_ids and not self.errors:
            self.add_error("output", "There is no token in it.")
        elif len(token_ids) > LONGEST_OUTPUT:
            self.add_error("output", f"{len(token_ids)} tokens; the page shows at most {LONGEST_OUTPUT}.")
        return token_ids

    def _ids(self, field: str, text: str) -> list[int]:
        """Token IDs as they were typed or pasted, with or without brackets."""
        try:
            token_ids = [int(each) for each in text.strip(" \n\r\t[]").replace(",", " ").split()]
        except ValueError:
            self.add_error(field, "Token IDs are whole numbers, separated by commas or spaces.")
            return []
        if any(not 0 <= each <= LARGEST_ID for each in token_ids):
            self.add_error(field, f"A token ID is between 0 and {LARGEST_ID}.")
        return token_ids

    def _request(self, cleaned: Mapping[str, Any]) -> dict[str, Any]:
        request: dict[str, Any] = {"messages": MESSAGES}
        for name, field, kind in (("tools", "tools", list), ("chat_template_kwargs", "kwargs", dict)):
            value = cleaned[field]
            if value is not None and not isinstance(value, kind):
                self.add_error(field, f"A JSON {'list' if kind is list else 'object'} is expected.")
            elif value is not None:
                request[name] = value
        choice = cleaned["tool_choice"].strip()
        if choice:
            request["tool_choice"] = (
                choice if choice in TOOL_CHOICES else {"type": "function", "function": {"name": choice}}
            )
        more = cleaned["more"]
        if more is not None and not isinstance(more, dict):
            self.add_error("more", "A JSON object is expected.")
        elif more is not None:
            request |= more
        return request

    def _lens(self, cleaned: Mapping[str, Any], count: int) -> tuple[str, Sequence[int]]:
        """The name of the grouping, and its lengths."""
        chunking, given = cleaned["chunking"], cleaned["lens"].replace(",", " ").split()
        if chunking in ("1", "all"):
            return chunking, lengths(chunking, count)
        try:
            numbers = [int(each) for each in given]
        except ValueError:
            numbers = []
        if not numbers or min(numbers) < 1 or (chunking == "size" and len(numbers) != 1):
            self.add_error("lens", "Give one number above 0." if chunking == "size" else "Give numbers above 0.")
            return "", ()
        if chunking == "size":
            return str(numbers[0]), lengths(str(numbers[0]), count)
        return OWN, tuple(_repeated(numbers, count))


def _repeated(numbers: Sequence[int], count: int) -> list[int]:
    """`numbers` as lengths of chunks that hold `count` tokens; the last one is repeated, the end cut."""
    lens: list[int] = []
    for number in chain(numbers, repeat(numbers[-1])):
        if count <= 0:
            break
        lens.append(min(number, count))
        count -= number
    return lens


def _pair(cleaned: Mapping[str, Any]) -> ModelConfiguration:
    return ModelConfiguration(
        name="playground",
        model=cleaned["tokenizer"],
        tool_call_parser=cleaned["tool_parser"] or None,
        reasoning_parser=cleaned["reasoning_parser"] or None,
        enable_auto_tool_choice=bool(cleaned["tool_parser"]),
    )


def _field_of(error: ModelConfigurationError, model: str) -> str:
    """The form's field for an error of a configuration."""
    if model != PAIR:
        return "model"
    return {"tool_call_parser": "tool_parser", "reasoning_parser": "reasoning_parser"}.get(
        error.field or "", "tokenizer"
    )
