// Shows the sample of the chosen format below a choice of formats.
"use strict";
(() => {
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
    // Select2 tells of changes through jQuery only.
    if (window.django && django.jQuery) django.jQuery(select).on("change", show);
    else select.addEventListener("change", show);
    show();
  };

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".format-sample").forEach(set_up);
  });
})();
