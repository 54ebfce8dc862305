// One run, live or finished: what is known now, the numbers, the charts of a trial, ladder, cases, failures, log.
// Everything comes from the server, which reads the record: a reload or a second tab shows the same.

import { get, pathOf, post, Refused, trialPath, type Action, type Failure, type Level, type Run, type Slow, type Trial, type TrialFigures, type Update } from "../api.ts";
import { Charts, type Mark } from "../charts.ts";
import { arrange, h, put, redraw, say, setText } from "../dom.ts";
import { clock, count, scale, several, withUnit, type Scale } from "../format.ts";
import { figureText, intervalText, known, progressText, runKnown, trialKnown } from "../known.ts";
import { append, endOf, filled, loadsOf, marksOf, picturesOf, wordsOf } from "../model.ts";
import { ask, badge, fault, headOf, message, scrolled, type Bar, type Screen } from "./screen.ts";

const STALE_S = 3;
const BADLY_STALE_S = 10;
const RESUMES_WITHIN = 60; // looks: a study that is built first takes its time
const DRAW_EVERY_MS = 900;
const MOST_MARKS = 6; // named above the charts, the last ones
const PIXELS = 720; // of a chart's width, about
const MOST_PAUSE_S = 10; // between two drawings of the charts
const FIRST_ROWS = 10; // of the slowest requests
const ANSWER_MS = 2000;
const FAULT_ENDS_MS = 3000; // a fault that lasts is sent every second
const RETRY_MS = [1000, 2000, 5000, 10_000];

type Chosen = { readonly slug: string; readonly trial: string } | null;

export function runScreen(bar: Bar, id: string, chosen: Chosen): Screen {
  return new RunScreen(bar, id, chosen);
}

class RunScreen implements Screen {
  readonly element = h("div", {});
  #bar: Bar;
  #id: string;
  #chosen: Chosen; // null: the running trial, or the one with most to see
  #run: Run | null = null;
  #trial: Trial | null = null;
  #slow: { readonly case: string; readonly trial: string; readonly slow: Slow } | null = null;
  #charts = new Charts();
  #source: EventSource | null = null;
  #heard = performance.now();
  #fault: { readonly error: string; readonly at: number } | null = null; // the one that is shown, and when it was sent last
  #failed = 0;
  #timer: ReturnType<typeof setInterval>;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #gone = false; // another screen is shown: nothing may be requested or drawn any more
  #drawing = false;
  #drawn = 0;
  #charted = { name: "", at: 0 };
  #said = "";
  #failures = new Map<string, FailureRow>(); // by stream and class
  #progress = h("li", {});
  #hash = (): void => { this.#drawSoon(); };
  #parts = {
    head: h("div", {}),
    link: h("div", {}),
    actions: h("div", { class: "actions" }),
    result: h("div", { "aria-live": "polite" }),
    progress: h("div", {}),
    figures: h("div", {}),
    nodes: h("section", {}),
    failures: h("section", {}),
    ladder: h("section", {}),
    cases: h("section", {}),
    trial: h("div", {}),
    marks: h("div", {}),
    slow: h("section", {}),
    log: h("section", {}),
    files: h("section", {}),
  };

  constructor(bar: Bar, id: string, chosen: Chosen) {
    this.#bar = bar;
    this.#id = id;
    this.#chosen = chosen;
    const { head, link, actions, result, progress, figures, nodes, failures, ladder, cases, trial, marks, slow, log, files } = this.#parts;
    const shown = h("section", {}, trial, figures, this.#charts.tools, marks, this.#charts.element);
    put(this.element, head, link, progress, actions, result, ladder, shown, nodes, failures, slow, cases, log, files);
    document.addEventListener("visibilitychange", this.#hash);
    this.#timer = setInterval(() => { this.#watch(); }, 1000);
    void this.#begin();
  }

  recolour(): void {
    this.#charts.recolour();
  }

  destroy(): void {
    this.#gone = true;
    document.removeEventListener("visibilitychange", this.#hash);
    clearInterval(this.#timer);
    clearTimeout(this.#retry);
    this.#source?.close();
    this.#source = null;
    this.#charts.destroy();
  }

  /** Show the run; one that was begun a moment ago has no record yet, and is looked for again. */
  async #begin(looks = RESUMES_WITHIN): Promise<void> {
    try {
      const run = await get<Run>(pathOf(this.#id));
      if (this.#gone) return;
      this.#run = run;
      if (run.state === "running") this.#listen();
      this.#awaitAnswer();
      if (run.state !== "running" || this.#chosen) await this.#load();
      this.#drawSoon();
    } catch (error) {
      if (this.#gone) return;
      this.#parts.head.replaceChildren(fault(error));
      const isMissing = error instanceof Refused && error.status === 404 && this.#run === null;
      if (isMissing && looks > 0) this.#retry = setTimeout(() => void this.#begin(looks - 1), RETRY_MS[0]);
    }
  }

  /** Load the trial that was chosen, or the one with most to see. */
  async #load(): Promise<void> {
    const run = this.#run;
    if (!run) return;
    const begun = run.trials.filter((cell) => cell.trial !== null);
    const complete = begun.filter(({ state }) => state === "complete");
    const loads = new Set(run.cases.filter(({ purpose }) => purpose === "load").map(({ slug }) => slug));
    const length = ({ began_s, ended_s }: (typeof begun)[number]): number => (ended_s ?? 0) - (began_s ?? 0);
    const longest = run.kind === "study" ? complete.toSorted((a, b) => length(a) - length(b)).at(-1) : undefined;
    const last = longest ?? complete.filter((cell) => loads.has(cell.case)).at(-1) ?? complete.at(-1) ?? begun.at(-1);
    const { slug, trial } = this.#chosen ?? { slug: last?.case, trial: last?.trial };
    if (slug === undefined || trial === undefined || trial === null) return;
    const loaded = filled(await get<Trial>(trialPath(this.#id, slug, trial)));
    if (this.#gone) return;
    // The stream may have sent this trial already, and points that the answer lacks.
    const isStreamed = this.#source !== null && this.#trial !== null && isSame(this.#trial, loaded);
    if (loaded.state !== "running" || !isStreamed) this.#trial = loaded;
    if (loaded.state === "running") return;
    const slow = await get<Slow>(trialPath(this.#id, slug, trial, "slow")).catch(() => null);
    this.#slow = slow && { case: slug, trial, slow };
  }

  #listen(): void {
    if (this.#gone) return;
    const source = new EventSource(pathOf(this.#id, "stream") + location.search);
    this.#source = source;
    const on = (name: string, take: (data: unknown) => void): void => {
      source.addEventListener(name, (event: MessageEvent<string>) => {
        this.#heard = performance.now();
        this.#failed = 0;
        take(JSON.parse(event.data));
        this.#drawSoon();
      });
    };
    on("run", (data) => {
      this.#run = data as Run;
      if (this.#chosen && this.#trial?.state === "running" && !isRunning(this.#run, this.#trial)) void this.#load().then(() => { this.#drawSoon(); }, () => undefined);
    });
    on("tick", () => undefined);
    on("fault", (data) => {
      const { error } = data as { error: string }; // comes at every look; a screen reader reads it out when it is replaced
      if (this.#parts.result.textContent !== error) this.#parts.result.replaceChildren(message(error, "bad"));
      this.#fault = { error, at: this.#heard };
    });
    on("trial", (data) => { if (this.#shows(data as Trial)) this.#trial = filled(data as Trial); });
    on("points", (data) => {
      if (!this.#shows(data as Update) || (this.#trial && append(this.#trial, data as Update))) return;
      source.close();
      this.#listen(); // another trial, or another set of series: begin again from the record
    });
    on("end", () => {
      source.close();
      this.#source = null;
      void this.#ended();
    });
    source.onerror = (): void => {
      source.close();
      const wait = RETRY_MS[Math.min(this.#failed, RETRY_MS.length - 1)] ?? 10_000;
      this.#failed += 1;
      this.#retry = setTimeout(() => { this.#listen(); }, wait);
      this.#drawSoon();
    };
  }

  /** True for the trial that was chosen, and for every one if none was. */
  #shows(sent: Trial | Update): boolean {
    return !this.#chosen || (sent.case === this.#chosen.slug && sent.trial === this.#chosen.trial);
  }

  /** Look again every two seconds while the answer is in the making, less often while the server does not answer. */
  #awaitAnswer(failed = 0): void {
    if (!this.#run?.has_more) return;
    this.#retry = setTimeout(() => {
      void get<Run>(pathOf(this.#id)).then((run) => {
        if (this.#gone) return;
        this.#run = run;
        this.#awaitAnswer();
        this.#drawSoon();
      }, () => { if (!this.#gone) this.#awaitAnswer(failed + 1); });
    }, failed ? RETRY_MS[Math.min(failed, RETRY_MS.length - 1)] : ANSWER_MS);
  }

  /** The run is over: take what the record says now, if the server is still there. */
  async #ended(): Promise<void> {
    try {
      const run = await get<Run>(pathOf(this.#id));
      if (this.#gone) return;
      this.#run = run;
      this.#awaitAnswer();
      await this.#load();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
    this.#drawSoon();
  }

  #watch(): void {
    if (this.#source) this.#drawState();
    if (!this.#fault || this.#heard - this.#fault.at < FAULT_ENDS_MS) return;
    if (this.#parts.result.textContent === this.#fault.error) this.#parts.result.replaceChildren();
    this.#fault = null;
  }

  #drawSoon(): void {
    if (this.#gone || this.#drawing || document.hidden) return;
    this.#drawing = true;
    // Points come once per second; a frame of its own keeps the work out of events.
    setTimeout(() => requestAnimationFrame(() => {
      this.#drawing = false;
      this.#draw();
    }), Math.max(0, this.#drawn + DRAW_EVERY_MS - performance.now()));
  }

  #drawState(): void {
    const run = this.#run;
    if (!run) return;
    const silent = (performance.now() - this.#heard) / 1000;
    const isLost = this.#source !== null && this.#failed > 0;
    const isLive = this.#source !== null && run.state === "running";
    const isStale = isLive && silent > STALE_S;
    this.#charts.element.classList.toggle("stale", isLost || (isLive && silent > BADLY_STALE_S));
    const state = isLost
      ? { words: "not connected", state: "unknown" as const }
      : isStale
        ? { words: `no news for ${Math.floor(silent)} s`, state: "caution" as const }
        : runKnown(run.state);
    this.#bar.where(run.name, state);
    redraw(this.#parts.link, isLost ? "lost" : "", () =>
      isLost ? [message("The server does not answer; the run goes on without this page.", "caution", "What is missing is drawn as soon as it answers again. If the run has ended, its server has too: loadlens ui shows it.")] : [],
    );
    const spoken = `${run.name}: ${state.words}`;
    if (!isStale && spoken !== this.#said) {
      this.#said = spoken;
      say(spoken);
    }
  }

  #draw(): void {
    const run = this.#run;
    if (!run || this.#gone) return;
    this.#drawn = performance.now();
    this.#drawState();
    const trial = this.#trial;
    const words = known(run, trial);
    redraw(this.#parts.head, JSON.stringify([words, run.state, run.question, run.study, run.answer]), () => [
      h("p", { class: "question" }, run.question || run.study),
      h("h1", { class: run.state === "running" ? "live" : "" }, words),
      ...run.answer.slice(1).map((more) => h("p", { class: "lead" }, more)),
    ]);
    document.title = `${run.state === "running" ? "● " : ""}${run.name} · Loadlens`;
    this.#drawProgress(run);
    this.#drawActions(run);
    this.#drawLadder(run);
    this.#drawCases(run);
    this.#drawLog(run);
    if (!trial) return;
    this.#drawTrial(run, trial);
    const marks = marksOf(run, trial);
    this.#drawMarks(marks);
    if (this.#isChartDue(trial)) this.#charts.show(picturesOf(trial), marks, trial.warmup_s ? [{ from: 0, to: trial.warmup_s }] : [], endOf(trial));
    this.#drawFigures(trial);
    this.#drawNodes(trial);
    this.#drawFailures(trial);
    this.#drawSlow(trial);
    this.#drawFiles(run, trial);
  }

  /** True if charts would look different: in a long run a second is less than a pixel, and drawing takes memory. */
  #isChartDue(trial: Trial): boolean {
    const now = performance.now();
    const name = `${trial.case}/${trial.trial} ${trial.state}`;
    const pause_s = Math.min(this.#charts.width / PIXELS, MOST_PAUSE_S);
    if (trial.state === "running" && name === this.#charted.name && now - this.#charted.at < 1000 * pause_s) return false;
    this.#charted = { name, at: now };
    return true;
  }

  #drawProgress(run: Run): void {
    const isRunning = run.state === "running";
    const trials = `${count(run.complete)} of ${several(run.planned, "trial")} complete`;
    const text = isRunning && run.running ? (run.words || trials) : trials;
    redraw(this.#parts.progress, JSON.stringify([run.state, text, run.complete, run.planned]), () => [
      h(
        "ul",
        { class: "badges" },
        h("li", {}, badge(runKnown(run.state))),
        h("li", {}, text),
        isRunning ? h("li", {}, badge({ words: "preliminary: a trial counts once it has ended and passed its checks", state: "unknown" })) : null,
        run.has_report && !isRunning ? h("li", {}, h("a", { href: pathOf(run.id, "report"), target: "_blank", rel: "noopener" }, "Report")) : null,
      ),
      isRunning && run.planned > 1 ? h("progress", { max: run.planned, value: run.complete, "aria-label": "Trials complete" }) : null,
    ]);
  }

  #drawActions(run: Run): void {
    const form = this.#loadForm(run);
    redraw(this.#parts.actions, JSON.stringify([run.actions, run.why, form?.textContent]), () => {
      const button = (action: "stop" | "resume" | "again", verb: string, words: string): HTMLElement | null => {
        if (!run.actions?.[action]) return null;
        return h(
          "button",
          { type: "button", click: () => { ask(`${verb}?`, words, verb, () => this.#act(action), this.#parts.result); } },
          verb,
        );
      };
      const why = (["stop", "resume", "again"] as const).filter((action) => !run.actions?.[action] && run.why?.[action]);
      const isRunning = run.state === "running";
      return [
        button("stop", "Stop the run", "The running trial ends in order and is kept; the run can be resumed later."),
        button("resume", "Resume the run", "Trials that are not complete run now, in the same record."),
        button("again", "Start it again", "The same study runs from its beginning, into a new record."),
        form,
        h("span", { class: "note" }, why.filter((action) => (action === "stop") === isRunning).map((action) => `${NAMES[action]}: ${run.why?.[action] ?? ""}`).join(" · ")),
      ];
    });
  }

  /** A form that changes the load that runs now; null when none does. */
  #loadForm(run: Run): HTMLElement | null {
    const trial = this.#trial;
    const stream = trial?.streams.find(({ role }) => role === "load");
    const isNow = run.running !== null && trial?.case === run.running.case && trial.trial === run.running.trial;
    const isShared = Boolean(trial?.nodes.length); // by a fleet, which refuses changes
    if (run.state !== "running" || !isNow || isShared || !stream?.changes || !["warmup", "measure"].includes(trial.phase)) return null;
    const { changes } = stream;
    const unit = changes === "users" ? "users" : "requests/s";
    const number = h("input", { type: "number", min: "1", step: changes === "users" ? "1" : "any", required: true, placeholder: unit, "aria-label": `New load, ${unit}` });
    const change = (event: Event): void => {
      event.preventDefault();
      const words = `The load becomes ${number.value} ${unit} at once. The trial then counts as exploratory: no figure is given over the whole of it.`;
      ask("Change the load?", words, "Change it", () => post(`${pathOf(this.#id, "load")}?${changes}=${encodeURIComponent(number.value)}`), this.#parts.result);
    };
    return h("form", { class: "actions", submit: change }, number, h("button", { type: "submit" }, `Change the ${unit}`));
  }

  async #act(action: Action): Promise<{ words?: string; id?: string | null }> {
    const done = await post(pathOf(this.#id, action));
    if (action !== "resume") return done;
    this.#await(RESUMES_WITHIN);
    return { ...done, id: null }; // it is the run that is shown
  }

  /** Look every two seconds whether the run goes on, then follow it. */
  #await(looks: number): void {
    if (this.#gone) return;
    this.#retry = setTimeout(() => {
      void get<Run>(pathOf(this.#id)).then((run) => {
        if (this.#gone) return;
        this.#run = run;
        if (run.state === "running" && !this.#source) this.#listen();
        else if (looks > 0) this.#await(looks - 1);
        this.#drawSoon();
      }, () => { if (looks > 0) this.#await(looks - 1); });
    }, 2000);
  }

  #drawTrial(run: Run, trial: Trial): void {
    const isFollowing = !this.#chosen && run.state === "running";
    const load = [...new Set(trial.streams.map((stream) => stream.load).filter(Boolean))].join(" and ");
    const key = JSON.stringify([trial.case, trial.trial, trial.state, trial.reasons, trial.notes, isFollowing, load]);
    setText(this.#progress, trial.state === "running" ? `${trial.phase || "starting"}, ${progressText(trial)}` : progressText(trial));
    redraw(this.#parts.trial, key, () => [
      h("h2", {}, `${isFollowing ? "Now" : "Trial"}: ${trial.name || trial.case}${trial.name.includes(load) ? "" : `, ${load}`}`),
      h(
        "ul",
        { class: "badges" },
        h("li", {}, badge(trialKnown(trial.state, run.state))),
        this.#progress,
        !isFollowing && run.state === "running" ? h("li", {}, h("a", { href: `#/run/${encodeURIComponent(run.id)}` }, "follow the running trial")) : null,
      ),
      ...trial.reasons.map((reason) => message(reason, trialKnown(trial.state, run.state).state)),
      ...trial.notes.map((note) => h("p", { class: "note" }, note)),
    ]);
  }

  /** Say what the dotted lines through the charts are. */
  #drawMarks(marks: readonly Mark[]): void {
    redraw(this.#parts.marks, JSON.stringify(marks), () => {
      if (!marks.length) return [];
      const shown = marks.slice(-MOST_MARKS);
      const left = marks.length - shown.length;
      return [
        h("ul", { class: "badges", "aria-label": "Dotted lines in the charts" }, ...shown.map(({ at, text, isBad }) => h("li", {}, badge({ words: `${clock(at)}: ${text}`, state: isBad ? "bad" : "caution" })))),
        left ? h("p", { class: "note" }, `${several(left, "earlier line")} in the events`) : null,
      ];
    });
  }

  #drawFigures(trial: Trial): void {
    const part = this.#parts.figures;
    const loads = loadsOf(trial);
    const streams = [...loads, ...trial.streams.filter((stream) => !loads.includes(stream))];
    redraw(part, streams.map(({ name }) => name).join("\n"), () =>
      streams.flatMap((stream, i) => [
        loads.length > 1 && i < loads.length ? h("h3", {}, stream.name) : null,
        i < loads.length ? h("dl", { class: "figures" }, ...FIGURES.map((name) => h("div", {}, h("dt", {}, name), h("dd", {}, h("span", {}), h("small", {}))))) : null,
        h("p", { class: "sums" }),
      ]),
    );
    const lists = [...part.querySelectorAll("dl")];
    const sums = [...part.querySelectorAll(".sums")];
    const isLive = trial.state === "running";
    const isCounted = !isLive || trial.points.start_s.length > 0;
    streams.forEach((stream, i) => {
      const { totals } = stream;
      const at = (values: readonly (number | null)[]): number | null => values.at(-1) ?? null;
      const last = (values: readonly (number | null)[], unit: string): string => (isLive ? `${at(values) === null ? "none" : withUnit(at(values), unit)} in the last second` : "");
      const bad = totals.unexpected_status + totals.check_failed;
      const share = totals.issued ? ` · ${withUnit((totals.failed + bad) / totals.issued, "share")}` : "";
      const cells = [
        [count(totals.due), last(stream.due_per_s, "1/s")],
        [count(totals.issued), last(stream.sent_per_s, "1/s")],
        [count(totals.answered), last(stream.answered_per_s, "1/s")],
        [count(totals.failed + bad), `${bad ? `${count(bad)} not as expected` : totals.failed ? "without an answer" : "no failures"}${totals.failed + bad ? share : ""}`],
        [count(totals.in_flight), isLive ? "now" : "at the end"],
        [count(totals.dropped + totals.waiting), `dropped ${count(totals.dropped)}, waiting ${count(totals.waiting)}`],
      ];
      [...(lists[i]?.children ?? [])].forEach((cell, k) => {
        const [main, more] = cell.querySelectorAll("dd > *");
        if (main) setText(main, isCounted ? (cells[k]?.[0] ?? "") : "–");
        if (more) setText(more, isCounted ? (cells[k]?.[1] ?? "") : "no counts yet");
      });
      const law = sums[i];
      if (law) {
        const of = i < loads.length ? "" : `probe ${stream.name}: `;
        setText(law, !isCounted ? `○ ${of}no counts yet` : `${totals.holds ? "●" : "■"} ${of}${totals.holds ? "books balance" : "books do not balance"}: ${totals.law}`);
        law.classList.toggle("bad", !totals.holds);
      }
    });
  }

  /** One row per node of a fleet. */
  #drawNodes(trial: Trial): void {
    const when = trial.state === "running" ? "in the last second" : "over the measured part";
    const part = this.#parts.nodes;
    redraw(part, JSON.stringify([trial.nodes.map(({ name }) => name), when]), () => {
      if (!trial.nodes.length) return [];
      return [
        h("h2", {}, "Nodes"),
        h("p", { class: "caption" }, `The last three columns ${when}; the charts show all nodes together.`),
        scrolled(
          "Nodes",
          h(
            "table",
            {},
            headOf(["node", "due", "as expected", "failed", "as expected per s", "sent late by, p99", "busy"], [0]),
            h("tbody", {}, ...trial.nodes.map(({ name }) => h("tr", {}, h("th", { scope: "row", class: "text" }, name), ...Array.from({ length: 6 }, () => h("td", {}))))),
          ),
        ),
      ];
    });
    const late = scale("s", trial.nodes.map(({ late_s }) => late_s));
    const rows = part.querySelectorAll("tbody tr");
    trial.nodes.forEach(({ due, ok, bad, per_s, late_s, busy }, i) => {
      const texts = [count(due), count(ok), count(bad), withUnit(per_s, "1/s"), withUnit(late_s, "s", late), withUnit(busy, "share")];
      rows[i]?.querySelectorAll("td").forEach((cell, k) => { setText(cell, texts[k] ?? ""); });
    });
  }

  #drawFailures(trial: Trial): void {
    const part = this.#parts.failures;
    redraw(part, trial.failures.length ? `${trial.case} ${trial.trial}` : "", () => {
      this.#failures.clear();
      return trial.failures.length
        ? [h("h2", {}, "Failures"), scrolled("Failures", h("table", {}, headOf(["class", "request", "count", "first", "last", "samples"], [0, 1, 5]), h("tbody", {})))]
        : [];
    });
    const body = part.querySelector("tbody");
    if (!body) return;
    const rows = trial.failures.map((failure) => {
      const key = `${failure.stream} ${failure.kind}`;
      const row = this.#failures.get(key) ?? new FailureRow();
      this.#failures.set(key, row);
      row.show(trial, failure);
      return row.element;
    });
    arrange(body, rows);
  }

  #drawLadder(run: Run): void {
    redraw(this.#parts.ladder, JSON.stringify([run.levels, run.provisional, run.trials.map(({ state }) => state)]), () => {
      if (run.levels.length < 2 && run.provisional.length < 2) return [];
      const most = Math.max(...run.levels.map(highest), 0);
      return [
        h("h2", {}, run.levels.length ? "Levels of load" : "Verdict"),
        ...(run.levels.length
          ? [
              scrolled(
                "Levels of load",
                h(
                  "table",
                  {},
                  headOf(["level", "throughput", "95 % interval", "p50", "p99", "state"], [0, 5], 1),
                  h("tbody", {}, ...run.levels.map((level) => this.#levelRow(run, level, most))),
                ),
              ),
            ]
          : []),
        run.provisional.length > 1
          ? h("details", {}, h("summary", {}, "how the verdict changed"), h("ul", { class: "events" }, ...run.provisional.map(({ at_s, words }) => h("li", {}, h("time", {}, clock(at_s - run.created_s)), h("span", {}, words)))))
          : null,
      ];
    });
  }

  #levelRow(run: Run, level: Level, most: number): HTMLElement {
    const cells = run.trials.filter((each) => each.case === level.case && each.trial !== null);
    const last = cells.at(-1);
    const bar = h("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = `${most ? Math.round((highest(level) / most) * 80) : 0}px`;
    const each = (text: (figures: TrialFigures) => string): string => level.figures.map(text).join(" · ") || "not yet";
    return h(
      "tr",
      {},
      h("th", { scope: "row", class: "left" }, last?.trial ? h("a", { href: this.#linkTo(level.case, last.trial) }, level.name) : level.name),
      h("td", { class: "left" }, bar),
      h("td", {}, each(({ throughput_per_s }) => figureText(throughput_per_s, "1/s"))),
      h("td", {}, each(({ throughput_per_s }) => intervalText(throughput_per_s, "1/s"))),
      h("td", {}, each(({ p50_s }) => figureText(p50_s, "s", false))),
      h("td", {}, each(({ p99_s }) => figureText(p99_s, "s", false))),
      h("td", { class: "left" }, ...(last ? [badge(trialKnown(last.state, run.state))] : ["planned"])),
    );
  }

  #linkTo(slug: string, trial: string): string {
    return `#/run/${[this.#id, slug, trial].map(encodeURIComponent).join("/")}`;
  }

  #drawCases(run: Run): void {
    redraw(this.#parts.cases, JSON.stringify([run.trials, run.state, run.cases.length, this.#trial?.case, this.#trial?.trial]), () => {
      if (run.trials.length < 2) return [];
      const blocks = [...new Set(run.trials.map(({ block }) => block))].sort((a, b) => a - b);
      const cases = run.cases.filter(({ slug }) => run.trials.some((cell) => cell.case === slug));
      return [
        h("h2", {}, "Cases"),
        scrolled(
          "Cases and their trials",
          h(
            "table",
            { class: "grid" },
            headOf(["case", ...blocks.map((block) => `block ${block}`)], [0, ...blocks.map((_, i) => i + 1)]),
            h(
              "tbody",
              {},
              ...cases.map((each) =>
                h(
                  "tr",
                  {},
                  h("th", { scope: "row", class: "text" }, each.name),
                  ...blocks.map((block) => this.#cell(run.trials.find((cell) => cell.case === each.slug && cell.block === block))),
                ),
              ),
            ),
          ),
        ),
      ];
    });
  }

  #cell(cell: Run["trials"][number] | undefined): HTMLElement {
    if (!cell) return h("td", { class: "empty" }, "not planned");
    const state = trialKnown(cell.state, this.#run?.state);
    const isShown = cell.case === this.#trial?.case && cell.trial === this.#trial.trial;
    const figures = cell.figures ? figureText(cell.figures.throughput_per_s, "1/s") : "";
    const text = badge(state);
    return h(
      "td",
      { class: state.state === "bad" ? "bad" : cell.state === "running" ? "now" : cell.state === "complete" ? "ok" : "" },
      cell.trial ? h("a", { href: this.#linkTo(cell.case, cell.trial), "aria-current": isShown ? "true" : false }, text) : text,
      figures ? h("small", {}, figures) : null,
      cell.attempts > 1 ? h("small", {}, `attempt ${cell.attempts}`) : null,
      ...cell.reasons.map((reason) => h("small", {}, reason)),
    );
  }

  #drawSlow(trial: Trial): void {
    const slow = trial.state !== "running" && this.#slow && isSame(this.#slow, trial) ? this.#slow.slow : null;
    redraw(this.#parts.slow, slow ? `${trial.case} ${trial.trial}` : "", () => {
      if (!slow?.rows.length) return [];
      const on = scale("s", slow.rows.slice(0, FIRST_ROWS).map(({ response_s }) => response_s));
      const rows = slow.rows.map((row) => this.#slowRow(row, on));
      const body = h("tbody", {}, ...rows.slice(0, FIRST_ROWS));
      const more = h("button", { type: "button" }, `Show all ${rows.length}`);
      more.addEventListener("click", () => {
        put(body, ...rows.slice(FIRST_ROWS));
        rows[FIRST_ROWS]?.querySelector("button")?.focus();
        more.remove();
      });
      return [
        h("h2", {}, "Slowest requests"),
        h("p", { class: "caption" }, slow.words),
        scrolled("Slowest requests", h("table", {}, headOf(["response time", "due at", "request", "outcome"], [2, 3]), body)),
        rows.length > FIRST_ROWS ? more : null,
      ];
    });
  }

  #slowRow(row: Slow["rows"][number], on: Scale): HTMLElement {
    const time = row.response_s === null ? "no response" : withUnit(row.response_s, "s", on);
    const at = `${row.at_s.toFixed(3)} s`;
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, h("button", { type: "button", class: "quiet", "aria-label": `${time}: open the sample at ${at}`, click: () => { this.#openSample(row); } }, time)),
      h("td", {}, at),
      h("td", { class: "text" }, row.request || row.step),
      h("td", { class: "left" }, `${wordsOf(row.outcome)}${row.status ? ` ${row.status}` : ""}`),
    );
  }

  /** Open one request: its times, connection and user; the charts go to its moment. */
  #openSample(row: Slow["rows"][number]): void {
    const time = (seconds: number | null): string => (seconds === null ? "not known" : withUnit(seconds, "s"));
    const lines: [string, string][] = [
      ["request", row.request || row.step],
      ["outcome", `${wordsOf(row.outcome)}${row.status ? `, status ${row.status}` : ""}`],
      ["due at", `${row.at_s.toFixed(6)} s since the start`],
      ["response time, from due", time(row.response_s)],
      ["service time, from sent", time(row.service_s)],
      ["sent late by", time(row.lag_s)],
      ["first byte after", time(row.first_byte_s)],
      ["user", row.user === null ? "none" : String(row.user)],
      ["connection", row.connection === null ? "none" : `${row.connection}${row.is_first_on_connection ? ", its first request" : ""}${row.connection_age_s === null ? "" : `, ${time(row.connection_age_s)} old`}`],
    ];
    if (row.trace_id) lines.push(["trace id", row.trace_id]);
    if (row.stands_for > 1) lines.push(["stands for", `${count(row.stands_for)} requests`]);
    const dialog = h("dialog", { "aria-labelledby": "sample" });
    const opener = document.activeElement;
    const show = (): void => {
      dialog.close();
      this.#charts.zoom({ min: row.at_s - 5, max: row.at_s + 5 + (row.response_s ?? 0) });
      this.#charts.read(row.at_s + (row.response_s ?? 0));
      this.#charts.tools.scrollIntoView();
    };
    put(
      dialog,
      h("h2", { id: "sample" }, `One request of ${time(row.response_s)}`),
      h("dl", {}, ...lines.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
      h("div", { class: "actions" }, h("button", { type: "button", click: show }, "Show its moment in the charts"), h("button", { type: "button", click: () => { dialog.close(); } }, "Close")),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (opener instanceof HTMLElement) opener.focus({ preventScroll: true });
    });
    document.body.append(dialog);
    dialog.showModal();
  }

  #drawLog(run: Run): void {
    redraw(this.#parts.log, `${run.log.length} ${run.log.at(-1)?.at_s ?? ""}`, () =>
      run.log.length === 0
        ? []
        : [
            h("h2", {}, "Events"),
            h(
              "ol",
              { class: "events", tabindex: 0, "aria-label": "Events, newest first" },
              ...run.log.toReversed().map((line) => h("li", {}, h("time", {}, clock(line.at_s - run.created_s)), line.state === "bad" || line.state === "caution" ? badge({ words: line.words, state: line.state }, "logged") : h("span", {}, line.words))),
            ),
          ],
    );
  }

  #drawFiles(run: Run, trial: Trial): void {
    redraw(this.#parts.files, `${trial.case} ${trial.trial} ${trial.state}`, () => {
      if (trial.state === "running" || trial.state === "planned") return [];
      const link = (name: string): HTMLElement => h("li", {}, h("a", { href: trialPath(run.id, trial.case, trial.trial, name), download: `${run.name}-${trial.case}-${name}` }, name));
      return [
        h("h2", {}, "Files of this trial"),
        h("ul", { class: "badges" }, ...["samples.csv", "samples.parquet", "points.csv", "readings.csv", "readings.parquet"].map(link)),
        h("p", { class: "caption" }, "samples: one row per request · points: what the charts of load show · readings: what the charts of the service show"),
        h("p", { class: "caption" }, "Record: ", h("code", {}, run.path)),
      ];
    });
  }
}

type Named = Pick<Trial, "case" | "trial">;

const isSame = (a: Named, b: Named): boolean => a.case === b.case && a.trial === b.trial;

const isRunning = (run: Run, trial: Named): boolean => run.trials.some((cell) => cell.state === "running" && cell.case === trial.case && cell.trial === trial.trial);

const highest = (level: Level): number => Math.max(...level.figures.map(({ throughput_per_s }) => throughput_per_s.value ?? 0), 0);

const NAMES = { stop: "Stop", resume: "Resume", again: "Start again" } as const;
const FIGURES = ["due", "sent", "answered", "failed", "in flight", "not sent"] as const;

/** A class of failures: its counts change every second while its samples may be open. */
class FailureRow {
  #kind = h("th", { scope: "row", class: "left" });
  #request = h("td", { class: "text" });
  #figures = [h("td", {}), h("td", {}), h("td", {})]; // count, first, last
  #none = h("span", {}, "none kept");
  #summary = h("summary", {});
  #samples = h("div", {});
  #fold = h("details", {}, this.#summary, this.#samples);
  readonly element = h("tr", {}, this.#kind, this.#request, ...this.#figures, h("td", { class: "text" }, this.#none, this.#fold));

  show(trial: Trial, failure: Failure): void {
    const { kind, samples, count: failed, first_s, last_s } = failure;
    setText(this.#kind, [wordsOf(kind), ...kinds(samples.map(({ status }) => status))].join(" "));
    setText(this.#request, requestOf(trial, failure));
    const texts = [count(failed), clock(first_s), clock(last_s)];
    this.#figures.forEach((cell, i) => { setText(cell, texts[i] ?? ""); });
    this.#none.hidden = samples.length > 0;
    this.#fold.hidden = !samples.length;
    setText(this.#summary, several(samples.length, "sample"));
    redraw(this.#samples, JSON.stringify(samples), () =>
      samples.map((sample) =>
        h(
          "div",
          {},
          [sample.at_s === null ? "" : `at ${sample.at_s.toFixed(3)} s`, sample.request ?? sample.step, sample.status ? `status ${sample.status}` : "", sample.user === null ? "" : `user ${sample.user}`, sample.connection === null ? "" : `connection ${sample.connection}`].filter(Boolean).join(" · "),
          sample.words ? h("pre", {}, sample.words) : null,
        ),
      ),
    );
  }
}

/** Return the requests of a failure, as far as its samples know; a stream of one step has no other. */
function requestOf(trial: Trial, { stream, samples }: Failure): string {
  const steps = trial.streams.find(({ name }) => name === stream)?.steps ?? [];
  return steps.length === 1 ? (steps[0]?.request ?? "") : kinds(samples.map(({ request }) => request)).join(", ");
}

/** Return what occurs among samples, each once. */
const kinds = (values: readonly (string | number | null)[]): string[] => [...new Set(values.filter(Boolean).map(String))];
