// Two runs compared: the verdict in words, then figure by figure, then both loads on one time axis.

import { get, pathOf, trialPath, type Comparison, type Figure, type RecordFigure, type Run, type State, type Trial } from "../api.ts";
import { Charts, type Line, type Picture } from "../charts.ts";
import { h, put } from "../dom.ts";
import { figureText } from "../known.ts";
import { filled, picturesOf } from "../model.ts";
import type { Column } from "../series.ts";
import texts from "../words.json";
import { badge, fault, headOf, message, scrolled, type Bar, type Screen } from "./screen.ts";

export function compareScreen(bar: Bar, a: string, b: string): Screen {
  const element = h("div", {}, h("p", {}, "Comparing …"));
  const charts = new Charts();
  const left = new AbortController(); // aborted once another screen is shown
  const load = async (): Promise<void> => {
    try {
      const query = new URLSearchParams({ a, b }).toString();
      const [comparison, runA, runB] = await Promise.all([get<Comparison>(`/api/compare?${query}`), get<Run>(pathOf(a)), get<Run>(pathOf(b))]);
      left.signal.throwIfAborted();
      bar.where(`${runA.name} and ${runB.name}`);
      draw(element, charts, comparison, runA, runB);
      const pictures = await overlaid(runA, runB);
      left.signal.throwIfAborted();
      const end = Math.max(1, ...[...pictures.values()].flatMap(({ times }) => times.slice(-1)));
      charts.show(pictures, [], [], end);
    } catch (error) {
      element.replaceChildren(fault(error));
    }
  };
  void load();
  return { element, recolour: () => { charts.recolour(); }, destroy: () => { left.abort(); charts.destroy(); } };
}

const STATES: Readonly<Record<Comparison["comparison"]["verdict"], State>> = {
  faster: "ok",
  equivalent: "ok",
  slower: "bad",
  failing: "bad",
  undecided: "unknown",
};

function draw(element: HTMLElement, charts: Charts, { comparison, words }: Comparison, a: Run, b: Run): void {
  const { verdict, sentence, effects, failures, accounting, cautions, decides, method, load } = comparison;
  const link = (run: Run): HTMLElement => h("a", { href: `#/run/${encodeURIComponent(run.id)}` }, run.name);
  const row = (effect: (typeof effects)[number], i: number): HTMLElement =>
    h(
      "tr",
      {},
      effects.some((each) => each.case) ? h("td", { class: "text" }, effect.case) : null,
      h("th", { scope: "row", class: "left" }, nameOf(effect.metric)),
      h("td", {}, figureText(figureOf(effect.before), effect.unit, false)),
      h("td", {}, figureText(figureOf(effect.after), effect.unit, false)),
      h("td", { class: "left" }, effect.change),
      h("td", { class: "text" }, words[i] ?? ""),
    );
  const heads = [...(effects.some((each) => each.case) ? ["case"] : []), "figure", "A", "B", "change", "how much"];
  element.replaceChildren();
  put(
    element,
    h("p", { class: "question" }, "Is B better than A? A is ", link(a), ", B is ", link(b), load ? `; ${load}` : ""),
    h("h1", {}, badge({ words: sentence, state: STATES[verdict] })),
    decides ? h("p", { class: "lead" }, `What would decide: ${decides}.`) : null,
    ...cautions.map((text) => message(text, "caution")),
    h(
      "section",
      {},
      h("h2", {}, "Figure by figure"),
      scrolled(
        "Figure by figure",
        h(
          "table",
          {},
          headOf(heads, heads.flatMap((text, i) => (text === "A" || text === "B" ? [] : [i]))),
          h("tbody", {}, ...effects.map(row)),
        ),
      ),
      ...[...failures.map((text) => `Failures: ${text}`), ...accounting, method].filter(Boolean).map((text) => h("p", { class: "caption" }, text)),
    ),
    h("section", { "aria-label": "Charts over time" }, h("h2", {}, "Over time"), h("p", { class: "caption" }, "Solid is A, dashed is B; each from the start of its own last complete trial."), charts.tools, charts.element),
  );
}

const figureOf = ({ point, low, high, reason }: RecordFigure): Figure => ({ value: point ?? null, low: low ?? null, high: high ?? null, undecided: reason ?? null });

const nameOf = (metric: string): string => (texts.metrics as Readonly<Record<string, string>>)[metric] ?? metric.replaceAll("_", " ");

/** Return charts with the lines of both runs on one time axis. */
async function overlaid(a: Run, b: Run): Promise<Map<string, Picture>> {
  const [first, second] = await Promise.all([lastTrial(a), lastTrial(b)]);
  const pictures = new Map<string, Picture>();
  if (!first || !second) return pictures;
  const others = picturesOf(second);
  for (const [id, picture] of picturesOf(first)) {
    const other = others.get(id);
    if (other?.unit !== picture.unit) continue;
    const times = [...new Set([...picture.times, ...other.times])].sort((x, y) => x - y);
    const lines = (of: Picture, name: string, dashed: boolean): Line[] => of.lines.map((line, i) => ({ ...line, name: `${name} ${line.name}`, slot: line.slot ?? Math.min(i + 1, 7), dashed, values: onto(times, of.times, line.values) }));
    pictures.set(id, {
      title: picture.title,
      unit: picture.unit,
      times,
      ...(picture.isLog ? { isLog: true } : {}),
      lines: [...lines(picture, "A", false), ...lines(other, "B", true)],
    });
  }
  return pictures;
}

/** Put values onto a finer axis; where it has rows of the other run only, the line passes over them. */
function onto(times: readonly number[], own: readonly number[], values: Column): Column {
  const at = new Map(own.map((time, row) => [time, values[row] ?? null]));
  return times.map((time) => at.get(time));
}

async function lastTrial(run: Run): Promise<Trial | null> {
  const cell = run.trials.filter(({ state }) => state === "complete").at(-1);
  return cell?.trial ? filled(await get<Trial>(trialPath(run.id, cell.case, cell.trial))) : null;
}
