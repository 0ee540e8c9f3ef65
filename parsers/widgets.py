"""Form widgets of the admin page: an editor for JSON, and a searchable choice of formats that shows their wire text.

Both work with plain form fields; their scripts are small files of this package.
"""

import json
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminSelect2Widget, UnfoldAdminTextareaWidget

from parsers.catalogue import entries

STYLES = {"all": ("parsers/forms.css",)}


class JsonEditor(UnfoldAdminTextareaWidget):
    """A text area that says at once whether and where its text is no JSON, indents, and formats."""

    template_name = "parsers/json_editor.html"

    def __init__(self, attrs: dict[str, Any] | None = None, *, expected: str = "") -> None:
        given = {"rows": 6, "spellcheck": "false", "data-json-editor": expected, **(attrs or {})}
        super().__init__(attrs={**given, "class": f"json-editor {given.get('class', '')}".strip()})

    def format_value(self, value: Any) -> str | None:
        """Indented, where the value is JSON."""
        if value is None or not isinstance(value, str):
            return super().format_value(value)
        try:
            return json.dumps(json.loads(value), indent=2, ensure_ascii=False)
        except ValueError:
            return value

    class Media:
        """The editor's script."""

        js = ("parsers/json_editor.js",)
        css = STYLES


class FormatSelect(UnfoldAdminSelect2Widget):
    """A choice of the formats of one role ("tool calls" or "reasoning"), found by name or by model family."""

    template_name = "parsers/format_select.html"

    def __init__(self, attrs: dict[str, Any] | None = None, *, role: str) -> None:
        self._role = role
        super().__init__(attrs={"data-format-select": "", **(attrs or {})})

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        """With the choices, as they are registered now, and the samples. An unknown name stays selectable."""
        found = [entry for entry in entries() if self._role in entry.roles]
        families = {alias: entry.family for entry in found for alias in entry.names}
        self.choices = [("", "none"), *((each, f"{each} · {families[each]}") for each in sorted(families))]
        if value and value not in families:
            self.choices.append((value, f"{value} · unknown"))
        context = super().get_context(name, value, attrs)
        samples = {
            alias: {"family": entry.family, "sample": entry.sample, "names": entry.names}
            for entry in found
            for alias in entry.names
        }
        identifier = context["widget"]["attrs"].get("id", name)
        return {
            **context,
            "samples": samples,
            "samples_id": f"{identifier}-samples",
            "panel_id": f"{identifier}-sample",
        }

    class Media:
        """The script that shows the sample of what is chosen."""

        js = ("parsers/format_select.js",)
        css = STYLES


class JsonField(forms.JSONField):
    """A JSON field that says what it expects, with the editor."""

    def __init__(self, *, expected: str, **kwargs: Any) -> None:
        kwargs.setdefault("widget", JsonEditor(expected=expected))
        super().__init__(**kwargs)

    def prepare_value(self, value: Any) -> Any:
        """The field's text; none for null."""
        return "" if value is None else super().prepare_value(value)
