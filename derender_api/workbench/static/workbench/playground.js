// The playground: steps through the chunks of a stream, and keeps the form's state in a link. The state stands in the
// fragment, which browsers do not send: outputs and prompts stay out of access logs.
"use strict";
(() => {
  const form = document.getElementById("playground-form");
  const results = document.getElementById("results");
  const UNSHARED = ["csrfmiddlewaretoken", "case_id", "note", "action"];

  // --- the link ----------------------------------------------------------------------------------------------------

  const piped = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

  const packed = async (value) => {
    const bytes = await piped(new TextEncoder().encode(JSON.stringify(value)), new CompressionStream("deflate-raw"));
    let binary = "";
    bytes.forEach((byte) => { binary += String.fromCharCode(byte); });
    return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  };

  const unpacked = async (text) => {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(await piped(bytes, new DecompressionStream("deflate-raw"))));
  };

  const values = () => {
    const found = {};
    new FormData(form).forEach((value, name) => {
      if (!UNSHARED.includes(name) && value !== "") found[name] = value;
    });
    return found;
  };

  const fill = (state) => {
    [...form.elements].forEach((field) => {
      if (!field.name || UNSHARED.includes(field.name) || field.type === "submit") return;
      if (field.type === "radio") field.checked = field.value === state[field.name];
      else field.value = state[field.name] ?? "";
      if (window.django && field.tagName === "SELECT") django.jQuery(field).trigger("change");
      field.dispatchEvent(new Event("input", { bubbles: true }));
    });
    if (state.tokenizer) document.getElementById("pair").open = true;
  };

  const parameters = () => new URLSearchParams(window.location.hash.slice(1));

  const remember = async (step) => {
    const fragment = new URLSearchParams({ s: await packed(values()) });
    if (step !== undefined) fragment.set("step", step);
    window.history.replaceState(null, "", `${window.location.pathname}#${fragment}`);
    return window.location.href;
  };

  const copy = async () => {
    const state = document.getElementById("link-state");
    const link = await remember(results ? document.getElementById("step")?.value : undefined);
    try {
      await navigator.clipboard.writeText(link);
      state.textContent = "The link is copied.";
    } catch {
      state.textContent = "The link is in the address bar.";
    }
  };

  const open_link = async () => {
    const state = parameters().get("s");
    if (!state || results) return;
    try {
      fill(await unpacked(state));
    } catch {
      document.getElementById("link-state").textContent = "The link is damaged.";
      return;
    }
    // A tokenizer that no served model has is loaded only by a click.
    if (values().model) form.requestSubmit(form.querySelector("[value=run]"));
    else document.getElementById("link-state").textContent = "Filled in from the link; Run loads the tokenizer.";
  };

  // --- the stream --------------------------------------------------------------------------------------------------

  const fold = (chunks) => {
    const message = { calls: [] };
    chunks.forEach(([delta, reason]) => {
      ["reasoning", "content"].forEach((name) => {
        if (delta[name] !== undefined) message[name] = (message[name] ?? "") + delta[name];
      });
      (delta.tool_calls ?? []).forEach((entry) => {
        const call = (message.calls[entry.index] ??= { name: "", arguments: "" });
        call.name += entry.function?.name ?? "";
        call.arguments += entry.function?.arguments ?? "";
      });
      if (reason) message.finish = reason;
    });
    return message;
  };

  const part = (kind, text) => Object.assign(document.createElement("span"), { className: `tok ${kind}`, textContent: text });

  const list_of = (message) => {
    const rows = [];
    const row = (title, ...parts) => {
      const term = Object.assign(document.createElement("dt"), { textContent: title });
      const text = document.createElement("dd");
      text.append(...parts.flatMap((each, index) => (index ? [" ", each] : [each])));
      rows.push(term, text);
    };
    ["reasoning", "content"].forEach((kind) => { if (message[kind] !== undefined) row(kind, part(kind, message[kind])); });
    message.calls.forEach((call, index) => row(`call ${index + 1}`, part("name", call.name), part("arguments", call.arguments)));
    if (!rows.length) row("", "nothing yet");
    return rows;
  };

  const KINDS = ["reasoning", "content", "name", "arguments", "marker", "dropped", "held"];

  const show = (stream, step) => {
    const counts = {};
    const fed = step ? stream.bounds[step - 1][1] : 0;
    const start = step ? stream.bounds[step - 1][0] : 0;
    document.querySelectorAll("#tokens .token").forEach((token) => {
      const index = Number(token.dataset.index);
      token.classList.toggle("unread", index >= fed);
      token.classList.toggle("current", index >= start && index < fed && step > 0);
      token.querySelectorAll(".tok").forEach((span) => {
        const kind = Number(span.dataset.step) < fed ? span.dataset.kind : index < fed ? "held" : "";
        span.classList.remove(...KINDS);
        if (kind) span.classList.add(kind);
        if (kind && !span.classList.contains("silent")) counts[kind] = (counts[kind] ?? 0) + [...span.textContent.replace(/[↵⇥](?=[\n\t])/g, "")].length;
      });
    });
    document.querySelectorAll(".wb-legend [data-count]").forEach((count) => { count.textContent = counts[count.dataset.count] ?? 0; });
    const message = fold(stream.chunks.slice(0, step));
    document.getElementById("so-far").replaceChildren(...list_of(message));
    document.getElementById("so-far-finish").textContent = message.finish ?? "";
    const chunk = step ? stream.chunks[step - 1] : null;
    document.getElementById("delta").textContent = chunk ? JSON.stringify(chunk[0], null, 2) : "(no chunk yet)";
    document.getElementById("step-state").textContent =
      step ? `chunk ${step} of ${stream.chunks.length}, ${fed - start} token${fed - start === 1 ? "" : "s"}` : "before the first chunk";
    document.querySelectorAll("#chunks tr[data-chunk]").forEach((row) => {
      row.classList.toggle("wb-current", Number(row.dataset.chunk) === step);
    });
    document.querySelector("#tokens .token.current")?.scrollIntoView({ block: "nearest" });
  };

  const set_up_stream = () => {
    const slider = document.getElementById("step");
    const stream = JSON.parse(document.getElementById("stream").textContent);
    const go = (step) => {
      slider.value = Math.max(0, Math.min(stream.chunks.length, step));
      show(stream, Number(slider.value));
    };
    const moves = {
      first: () => 0,
      previous: () => Number(slider.value) - 1,
      next: () => Number(slider.value) + 1,
      last: () => stream.chunks.length,
    };
    const keys = { ArrowLeft: "previous", ArrowRight: "next", Home: "first", End: "last" };
    slider.addEventListener("input", () => go(Number(slider.value)));
    slider.addEventListener("change", () => remember(slider.value));
    document.querySelectorAll("[data-step]").forEach((button) => {
      if (button.tagName === "BUTTON") button.addEventListener("click", () => go(moves[button.dataset.step]()));
    });
    document.querySelectorAll("[data-go]").forEach((button) => button.addEventListener("click", () => go(Number(button.dataset.go))));
    document.getElementById("tokens").addEventListener("keydown", (event) => {
      if (!(event.key in keys)) return;
      event.preventDefault();
      go(moves[keys[event.key]]());
    });
    document.getElementById("tokens").addEventListener("click", (event) => {
      const token = event.target.closest(".token");
      if (!token) return;
      go(stream.bounds.findIndex(([, end]) => Number(token.dataset.index) < end) + 1);
    });
    const given = parameters().get("step");
    go(given === null ? stream.chunks.length : Number(given));
    remember(given ?? undefined);
    results.scrollIntoView();
  };

  form.addEventListener("submit", () => {
    // The answer's page keeps the link. The buttons are named "action", too, and hide the form's own property.
    form.setAttribute("action", window.location.pathname + (results ? "" : window.location.hash));
  });
  document.getElementById("copy-link").addEventListener("click", copy);
  const start = () => {
    if (document.getElementById("step")) set_up_stream();
    else if (results) remember();
    else open_link();
  };
  if (document.readyState === "complete") start();
  else window.addEventListener("load", start);
})();
