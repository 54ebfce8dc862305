// All runs of a folder, newest first; two of them can be compared.

import { get, type Runs, type RunSummary } from "../api.ts";
import { arrange, h, redraw, setText } from "../dom.ts";
import { several, when } from "../format.ts";
import { runKnown } from "../known.ts";
import { badge, fault, type Bar, type Screen } from "./screen.ts";

const EVERY_MS = 5000;

export function listScreen(bar: Bar): Screen {
  const head = h("div", {});
  const table = h("div", { class: "scroll" });
  const compare = h("button", { type: "button", disabled: true }, "Compare the two");
  const chosen: string[] = [];
  let isGone = false;
  let rows = new Map<string, RunRow>(); // by what stays the same
  let begun = new Map<string, number>();
  compare.addEventListener("click", () => {
    const oldestFirst = chosen.toSorted((a, b) => (begun.get(a) ?? 0) - (begun.get(b) ?? 0));
    location.hash = `/compare/${oldestFirst.map(encodeURIComponent).join("/")}`;
  });

  const choose = (id: string): void => {
    const at = chosen.indexOf(id);
    if (at >= 0) chosen.splice(at, 1);
    else chosen.push(id);
    if (chosen.length > 2) chosen.shift();
    for (const box of table.querySelectorAll("input")) box.checked = chosen.includes(box.value);
    compare.disabled = chosen.length !== 2;
  };

  const load = async (): Promise<void> => {
    if (document.hidden) return;
    try {
      const { title, runs } = await get<Runs>("/api/runs");
      if (isGone) return;
      bar.where(title);
      begun = new Map(runs.map((run) => [run.id, run.created_s]));
      const running = runs.filter(({ state }) => state === "running").length;
      const words = runs.length ? `${several(runs.length, "run")}${running ? `, ${running} running now` : ", none running"}` : "No run here yet";
      redraw(head, `${title} ${words}`, () => [
        h("p", { class: "question" }, title),
        h("h1", {}, words),
        runs.length ? null : h("p", {}, h("code", {}, "loadlens run STUDY"), " starts one; it appears here by itself."),
      ]);
      compare.hidden = runs.length < 2;
      redraw(table, runs.length ? "runs" : "", () => (runs.length ? [tableOf()] : []));
      const shown = new Map<string, RunRow>();
      for (const run of runs) {
        const key = JSON.stringify([run.id, run.name, run.question, run.kind, run.created_s]);
        const row = rows.get(key) ?? new RunRow(run, chosen.includes(run.id), choose);
        row.show(run);
        shown.set(key, row);
      }
      rows = shown;
      const body = table.querySelector("tbody");
      if (body) arrange(body, [...rows.values()].map(({ element }) => element));
    } catch (error) {
      delete head.dataset.key; // the same words are drawn again once the server answers
      head.replaceChildren(fault(error));
    }
  };
  const timer = setInterval(() => void load(), EVERY_MS);
  void load();
  return {
    element: h("div", {}, head, h("div", { class: "actions" }, compare), table),
    destroy: () => {
      isGone = true;
      clearInterval(timer);
    },
  };
}

function tableOf(): HTMLElement {
  const heads = ["compare", "run", "state", "progress", "kind", "began"].map((text, i) => h("th", { scope: "col", class: i < 3 ? "left" : "left wide" }, text));
  return h("table", {}, h("caption", { class: "said" }, "Runs, newest first"), h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}));
}

/** A run: its state and progress change while its link or its box may have the focus. */
class RunRow {
  readonly element: HTMLElement;
  #state = h("td", { class: "left" });
  #progress = h("td", { class: "text wide" });
  #note = h("div", { class: "note narrow" });

  constructor(run: RunSummary, isChosen: boolean, choose: (id: string) => void) {
    this.element = h(
      "tr",
      {},
      h(
        "td",
        { class: "left pick" },
        h("input", { type: "checkbox", value: run.id, checked: isChosen, "aria-label": `Compare ${run.name}`, change: () => { choose(run.id); } }),
      ),
      h("th", { scope: "row", class: "text" }, h("a", { href: `#/run/${encodeURIComponent(run.id)}` }, run.name), run.question ? h("div", { class: "note" }, run.question) : null, this.#note),
      this.#state,
      this.#progress,
      h("td", { class: "left wide" }, run.kind),
      h("td", { class: "left wide" }, when(run.created_s)),
    );
  }

  show(run: RunSummary): void {
    redraw(this.#state, run.state, () => [badge(runKnown(run.state))]);
    setText(this.#progress, run.words);
    setText(this.#note, `${run.words} · ${run.kind} · ${when(run.created_s)}`);
  }
}
