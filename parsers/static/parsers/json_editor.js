// Text areas with data-json-editor: says whether and where the text is no JSON of the expected kind, formats it, and
// indents new lines.
"use strict";
(() => {
  const kindOf = (value) => (Array.isArray(value) ? "list" : value === null ? "null" : typeof value);

  const placeOf = (text, error) => {
    const position = /position (\d+)/.exec(error.message);
    if (!position) return "";
    const before = text.slice(0, Number(position[1])).split("\n");
    return ` (line ${before.length}, column ${before[before.length - 1].length + 1})`;
  };

  const problemOf = (area) => {
    const text = area.value;
    if (!text.trim()) return "";
    try {
      const kind = kindOf(JSON.parse(text));
      const expected = area.dataset.jsonEditor;
      return expected && kind !== expected ? `A JSON ${expected} is expected, this is ${kind === "object" ? "an" : "a"} ${kind}.` : "";
    } catch (error) {
      return `No JSON: ${error.message.split(" in JSON")[0]}${placeOf(text, error)}`;
    }
  };

  const show = (area) => {
    const problem = problemOf(area);
    const state = area.closest(".json-editor-box").querySelector(".json-editor-state");
    state.textContent = problem || (area.value.trim() ? "valid JSON" : "empty");
    state.classList.toggle("json-editor-wrong", Boolean(problem));
    area.setAttribute("aria-invalid", problem ? "true" : "false");
    return problem;
  };

  const format = (area) => {
    if (!show(area) && area.value.trim()) area.value = JSON.stringify(JSON.parse(area.value), null, 2);
  };

  // A new line begins where the last one did; Tab leaves the field, as everywhere.
  const break_line = (area) => {
    const { selectionStart: start, selectionEnd: end, value } = area;
    const line = value.slice(value.lastIndexOf("\n", start - 1) + 1, start);
    const indent = /^ */.exec(line)[0] + (/[[{]\s*$/.test(line) ? "  " : "");
    area.setRangeText(`\n${indent}`, start, end, "end");
  };

  const set_up = (area) => {
    area.addEventListener("input", () => show(area));
    area.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.isComposing) return;
      event.preventDefault();
      break_line(area);
      show(area);
    });
    show(area);
  };

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("textarea[data-json-editor]").forEach(set_up);
    document.querySelectorAll("[data-json-format]").forEach((button) => {
      button.addEventListener("click", () => format(document.getElementById(button.dataset.jsonFormat)));
    });
  });
})();
