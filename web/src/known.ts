// What is known now, in one sentence: the first thing on the page. No page here.

import type { Cell, Figure, Run, RunSummary, State, Trial, TrialState } from "./api.ts";
import { count, duration, scale, several, value as text, withUnit } from "./format.ts";

export interface Known {
  readonly words: string;
  readonly state: State;
}

const RUNS: Readonly<Record<RunSummary["state"], Known>> = {
  running: { words: "running", state: "ok" },
  finished: { words: "finished", state: "ok" },
  stopped: { words: "stopped", state: "caution" },
  interrupted: { words: "interrupted", state: "bad" },
  damaged: { words: "damaged", state: "bad" },
};

// Partial: the page of an older version may meet a newer state, and then says its name.
const TRIALS: Readonly<Partial<Record<TrialState, Known>>> = {
  planned: { words: "planned", state: "unknown" },
  running: { words: "running", state: "ok" },
  complete: { words: "valid", state: "ok" },
  invalid: { words: "invalid", state: "bad" },
  aborted: { words: "stopped early", state: "caution" },
  exploratory: { words: "exploratory", state: "caution" },
  unsealed: { words: "not sealed", state: "bad" },
};

/** Return the state of a run in words. */
export const runKnown = (state: RunSummary["state"]): Known => RUNS[state];

/** Return the state of a trial in words; one that ran when its run was killed does not run any more. */
export const trialKnown = (state: TrialState, run: RunSummary["state"] = "running"): Known =>
  state === "running" && run !== "running" ? { words: "not finished", state: "bad" } : (TRIALS[state] ?? { words: state, state: "unknown" });

/** Return what a run says at this moment in one sentence; its answer comes first. */
export function known(run: Run, trial: Trial | null): string {
  const [answer] = run.answer;
  if (answer) return sentence(answer);
  const provisional = run.provisional.at(-1);
  if (provisional) return `${run.state === "running" ? "So far" : "When it ended"}: ${provisional.words}`;
  if (run.state === "damaged") return `The record is damaged: ${run.words}`;
  if (run.state === "running") return trial ? now(trial) : "The run begins: no request was sent yet";
  const sealed = run.trials.filter((cell) => cell.state === "complete");
  const only = sealed.length === 1 ? sealed[0]?.figures : null;
  if (only) return figures(only);
  return `${several(run.complete, "trial")} of ${count(run.planned)} complete`;
}

/** Return what the last second of a running trial says. */
function now(trial: Trial): string {
  const stream = trial.streams.find(({ role }) => role === "load") ?? trial.streams[0];
  const rate = stream?.answered_per_s.at(-1);
  if (!trial.points.start_s.length) return "The trial has begun: no counts have come yet";
  if (!stream || rate === undefined || rate === null) return `No request was answered yet: ${trial.phase}`;
  const { totals } = stream;
  const slow = stream.p99_s.at(-1) ?? null;
  const half = stream.p50_s.at(-1) ?? null;
  const times = [half === null ? "" : `half within ${withUnit(half, "s")}`, slow === null ? "" : `99 % within ${withUnit(slow, "s")}`].filter(Boolean).join(", ");
  const bad = totals.failed + totals.unexpected_status + totals.check_failed;
  const failed = bad ? `${several(bad, "request")} of ${count(totals.issued)} failed so far` : "no failures so far";
  return `In the last second ${withUnit(rate, "1/s")} answered${times ? `, ${times}` : ""}; ${failed}`;
}

function figures({ throughput_per_s, p50_s, p99_s, ok, bad, failed }: NonNullable<Cell["figures"]>): string {
  const all = ok + bad + failed;
  const parts = [
    throughput_per_s.value === null ? "" : `${withUnit(throughput_per_s.value, "1/s")} answered as expected`,
    p50_s.value === null ? "" : `half within ${withUnit(p50_s.value, "s")}`,
    p99_s.value === null ? "" : `99 % within ${withUnit(p99_s.value, "s")}`,
    bad + failed ? `${count(bad + failed)} of ${several(all, "request")} failed` : "no failures",
  ];
  return parts.filter(Boolean).join("; ");
}

/** Return a figure as people read it: its value, marked with ○ if too few requests carry it, or why there is none. */
export function figureText(figure: Figure | null | undefined, unit: string, withReason = true): string {
  if (!figure) return "not measured";
  if (figure.value === null) return figure.undecided ? `undecided${withReason ? `: ${figure.undecided}` : ""}` : "not measured";
  return `${withUnit(figure.value, unit)}${figure.marked ? " ○" : ""}`;
}

/** Return the interval of a figure as `35.4–43.6 ms`; empty if it has none. */
export function intervalText(figure: Figure | null | undefined, unit: string): string {
  const { value = null, low = null, high = null } = figure ?? {};
  if (value === null || (low === null && high === null) || (low === value && high === value)) return "";
  const on = scale(unit, [value]);
  const end = (bound: number | null): string => (bound === null ? "open" : text(bound, on));
  return `${end(low)}–${end(high)} ${on.name}`.trimEnd();
}

/** Return words that begin with a capital letter, as a headline does. */
export const sentence = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

/** Return the progress of a trial: `12 of 20 s`. */
export function progressText(trial: Trial): string {
  const whole = trial.duration_s === null ? null : trial.warmup_s + trial.duration_s;
  return whole === null ? duration(trial.elapsed_s) : `${duration(Math.min(trial.elapsed_s, whole))} of ${duration(whole)}`;
}
