// Shows the sample of the chosen format below a choice of formats.
"use strict";
(() => {
  // Select2 finds names and families alike; names that begin with what was typed come first. It tells of changes through
  // jQuery only.
  const search_names_first = (select, show) => {
    const rank = (option, typed) => (option.id === typed ? 0 : option.id.startsWith(typed) ? 1 : 2);
    const sorter = (options) => {
      const typed = document.querySelector(".select2-search__field")?.value.trim().toLowerCase() ?? "";
      return typed ? [...options].sort((one, other) => rank(one, typed) - rank(other, typed)) : options;
    };
    django.jQuery(select).select2({ sorter }).on("change", show);
  };

  const set_up = (panel) => {
    const select = document.getElementById(panel.dataset.select);
    const samples = JSON.parse(document.getElementById(panel.dataset.samples).textContent);
    const show = () => {
      const found = samples[select.value];
      panel.hidden = !found;
      if (!found) return;
      const aliases = found.names.filter((name) => name !== select.value);
      panel.querySelector("figcaption").textContent = found.family + (aliases.length ? ` Also named ${aliases.join(", ")}.` : "");
      const sample = panel.querySelector("pre");
      sample.textContent = found.sample;
      sample.hidden = !found.sample;
    };
    if (window.django && django.jQuery) search_names_first(select, show);
    else select.addEventListener("change", show);
    show();
  };

  // Behind the scripts that set Select2 up.
  window.addEventListener("load", () => {
    document.querySelectorAll(".format-sample").forEach(set_up);
  });
})();
