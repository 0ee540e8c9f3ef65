// Text areas with data-json-editor: says whether the text is JSON of the expected kind, formats it, and indents with Tab
// (Escape first leaves the field with Tab, as everywhere).
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
      return expected && kind !== expected ? `A JSON ${expected} is expected, this is a ${kind}.` : "";
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

  const indent = (area) => {
    const { selectionStart: start, selectionEnd: end, value } = area;
    area.value = `${value.slice(0, start)}  ${value.slice(end)}`;
    area.selectionStart = area.selectionEnd = start + 2;
  };

  const set_up = (area) => {
    let tabLeaves = false;
    area.addEventListener("input", () => show(area));
    area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") tabLeaves = true;
      else if (event.key === "Tab" && !event.shiftKey && !tabLeaves && area.value) {
        event.preventDefault();
        indent(area);
        show(area);
      }
    });
    area.addEventListener("blur", () => { tabLeaves = false; });
    show(area);
  };

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("textarea[data-json-editor]").forEach(set_up);
    document.querySelectorAll("[data-json-format]").forEach((button) => {
      button.addEventListener("click", () => format(document.getElementById(button.dataset.jsonFormat)));
    });
  });
})();
