"""The form of a served model: fields in groups, each group with a sentence on what it is for."""

from typing import Any, ClassVar

from django import forms
from unfold.widgets import UnfoldAdminTextInputWidget

from parsers.models import ServedModel
from parsers.widgets import FormatSelect, JsonEditor, JsonField

FIELDSETS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "Name",
        {
            "fields": ("name", "aliases", "enabled", "position"),
            "description": "What requests call the model. A disabled model may be unfinished; it is not served.",
        },
    ),
    (
        "Tokenizer",
        {
            "fields": ("model", "revision", "tokenizer", "tokenizer_mode"),
            "description": "Where the vocabulary and config.json come from. It is loaded to check what is saved.",
        },
    ),
    (
        "Parsers",
        {
            "fields": (
                "tool_call_parser",
                "enable_auto_tool_choice",
                "reasoning_parser",
                "default_chat_template_kwargs",
            ),
            "description": "What finds calls and thoughts in the output. Give the values that the engine's server has.",
        },
    ),
    (
        "Limits and streams",
        {
            "fields": ("max_model_len", "max_logprobs", "stream_state_format"),
            "description": "What a request may hold, and what its client carries from chunk to chunk.",
        },
    ),
    (
        "Rendering",
        {
            "fields": (
                "chat_template",
                "trust_request_chat_template",
                "chat_template_content_format",
                "exclude_tools_when_tool_choice_none",
                "generation_config",
                "override_generation_config",
            ),
            "description": "How chat requests become token IDs. The answers are read without these.",
            "classes": ("collapse",),
        },
    ),
    (
        "Gateway",
        {
            "fields": ("engine_urls", "engine_model"),
            "description": "Engines that generate for this model, so that the chat and completion endpoints answer.",
            "classes": ("collapse",),
        },
    ),
)


class ServedModelForm(forms.ModelForm):
    """Saving validates as a server's start does (ServedModel.clean)."""

    aliases = JsonField(
        expected="list",
        required=False,
        initial=list,
        widget=JsonEditor({"rows": 2}, expected="list"),
        help_text='Further names, a JSON list: ["a", "b"].',
    )
    tool_call_parser = forms.CharField(
        required=False,
        label="Tool call parser",
        widget=FormatSelect(role="tool calls"),
        help_text="Type to search by name or model family.",
    )
    reasoning_parser = forms.CharField(
        required=False,
        widget=FormatSelect(role="reasoning"),
        help_text="Any combines with any tool parser, except where one format does both.",
    )
    default_chat_template_kwargs = JsonField(
        expected="object",
        required=False,
        initial=dict,
        help_text='Template arguments of requests that give none: {"enable_thinking": false}.',
    )
    override_generation_config = JsonField(
        expected="object",
        required=False,
        initial=dict,
        help_text='Sampling parameters that replace the defaults: {"temperature": 0.5}.',
    )

    engine_urls = JsonField(
        expected="list",
        required=False,
        initial=list,
        widget=JsonEditor({"rows": 2}, expected="list"),
        help_text='A JSON list: ["http://engine:8200"]. Empty: this model is not generated for.',
    )

    class Meta:
        """All fields, in the groups of FIELDSETS."""

        model = ServedModel
        fields = "__all__"
        widgets: ClassVar[dict[str, forms.Widget]] = {"name": UnfoldAdminTextInputWidget()}

    def clean(self) -> dict[str, Any]:
        """No text is an empty list or object."""
        cleaned = super().clean() or {}
        for name, field in self.fields.items():
            if isinstance(field, JsonField) and name in cleaned and cleaned[name] is None:
                cleaned[name] = field.initial()
        return cleaned
