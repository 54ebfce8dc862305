"use strict";
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const say = (text) => { byId("said").textContent = text; };

  // The page works without this script; what needs it appears only now.
  byId("theme").hidden = false;
  byId("page-tools").hidden = false;

  byId("theme").addEventListener("click", () => {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const next = (root.dataset.theme || system) === "dark" ? "light" : "dark";
    root.dataset.theme = next;
    say(next + " colours");
  });

  byId("copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      say("link copied");
      byId("copy").textContent = "link copied";
    } catch {
      byId("copy").textContent = "copy it from the address bar";
    }
  });

  const folds = () => [...document.querySelectorAll("details")];
  byId("unfold").addEventListener("click", () => {
    const all = folds();
    const open = all.some((fold) => !fold.open);
    for (const fold of all) fold.open = open;
    byId("unfold").textContent = open ? "fold all" : "unfold all";
  });
  byId("print").addEventListener("click", () => print());

  // A link into a fold opens it.
  const reveal = () => {
    let id = location.hash.slice(1);
    try { id = decodeURIComponent(id); } catch { return; }
    const target = id && byId(id);
    if (!target) return;
    for (let part = target; part; part = part.parentElement) {
      if (part.tagName === "DETAILS") part.open = true;
    }
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();

  // Charts that answer to the pointer, where the page brings their script.
  const explore = (figure, spec) => {
    const still = figure.querySelector(".picture");
    const live = document.createElement("div");
    live.className = "picture live";
    live.hidden = true;
    still.after(live);
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "explore";
    figure.querySelector(".tools").append(button);
    const refuse = () => Promise.reject(new Error("this page loads nothing"));
    let drawn = false;
    button.addEventListener("click", () => {
      live.hidden = !live.hidden;
      still.hidden = !live.hidden;
      button.textContent = live.hidden ? "explore" : "static";
      if (drawn) return;
      drawn = true;
      loadlensEmbed(live, spec, {
        ast: true, renderer: "svg", actions: false, mode: "vega-lite", loader: { load: refuse, sanitize: refuse },
      }).catch((fault) => { live.textContent = "not drawn: " + fault.message; });
    });
  };
  if (byId("specs") && window.loadlensEmbed) {
    for (const [id, spec] of Object.entries(JSON.parse(byId("specs").textContent))) {
      const figure = byId(id);
      if (figure) explore(figure, spec);
    }
  }

  // j and k: next and previous finding.
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    if (event.key !== "j" && event.key !== "k") return;
    const findings = [...document.querySelectorAll(".finding")];
    if (!findings.length) return;
    const line = 60;
    const tops = findings.map((finding) => finding.getBoundingClientRect().top);
    let next = event.key === "j" ? tops.findIndex((top) => top > line + 4) : tops.findLastIndex((top) => top < line - 4);
    if (next < 0) next = event.key === "j" ? findings.length - 1 : 0;
    findings[next].open = true;
    findings[next].scrollIntoView();
    findings[next].querySelector("summary").focus({ preventScroll: true });
  });
})();
