// From the numbers of a trial to the charts that show them, and the points of a running trial appended. No page here.

import type { Numbers, Points, Run, Service, Stream, Topic, Trial, Update } from "./api.ts";
import type { Line, Mark, Picture } from "./charts.ts";
import { several } from "./format.ts";
import { MOST_POINTS } from "./series.ts";
import words from "./words.json";

const COLUMNS = ["due_per_s", "sent_per_s", "answered_per_s", "ok_per_s", "bad_per_s", "in_flight", "count", "p50_s", "p95_s", "p99_s"] as const;
const LOAD_COLUMNS = ["busy", "lag_p99_s", "stalled_s"] as const;
const MOST_HELD = MOST_POINTS; // rows of a run that is followed
const SLIVER_S = 0.2; // the resolution is a second
const PERCENTILES = ["p50_s", "p95_s", "p99_s"] as const;
const MOST_DRAWN = 6; // lines of a chart: as many as there are colours that can be told apart

/** Return a trial with all of its columns: one that has only begun lacks those that have no row yet. */
export function filled(trial: Trial): Trial {
  const none = (names: readonly string[]): Record<string, never[]> => Object.fromEntries(names.map((name) => [name, []]));
  return {
    ...trial,
    points: { ...none(["start_s", "length_s", "phase"]), ...trial.points },
    streams: trial.streams.map((stream) => ({ ...none(COLUMNS), ...stream })),
    generator: { ...none(LOAD_COLUMNS), ...trial.generator },
  };
}

/** Append the new points of a running trial; false if they belong to another trial or do not fit. */
export function append(trial: Trial, update: Update): boolean {
  const { service } = update;
  if (trial.case !== update.case || trial.trial !== update.trial) return false;
  if (trial.streams.length !== update.streams.length) return false;
  if (service && !fits(trial.service, service)) return false;
  trial.elapsed_s = update.elapsed_s;
  trial.phase = update.phase;
  trial.failures = update.failures;
  trial.nodes = update.nodes;
  const before = trial.points.start_s.length;
  const rows = (update.points as Partial<Points>).start_s?.length ?? 0; // columns without a new row may be missing
  add(trial.points.start_s, update.points.start_s);
  add(trial.points.length_s, update.points.length_s);
  add(trial.points.phase, update.points.phase);
  trial.streams.forEach((stream, i) => {
    const more = update.streams[i];
    if (!more) return;
    for (const column of COLUMNS) add(stream[column], more[column]);
    for (const kind of new Set([...Object.keys(stream.failures), ...Object.keys(more.failures)])) {
      const counts = (stream.failures[kind] ??= Array<number>(before).fill(0));
      add(counts, more.failures[kind] ?? Array<number>(rows).fill(0));
    }
    stream.totals = more.totals;
  });
  for (const column of LOAD_COLUMNS) add(trial.generator[column], update.generator[column]);
  if (service && trial.service) {
    add(trial.service.start_s, service.start_s);
    trial.service.topics.forEach((topic, i) => {
      topic.series.forEach((series, k) => { add(series.values, service.topics[i]?.series[k]?.values ?? []); });
    });
  }
  halve(trial);
  return true;
}

/** Make one point of two neighbours where a trial has too many, so that a tab stays small for as long as a run lasts. */
function halve(trial: Trial): void {
  const { points, streams, generator, service } = trial;
  if (points.start_s.length > MOST_HELD) {
    const lengths = [...points.length_s];
    const mean = (a: number, b: number, row: number): number => {
      const [first, second] = [lengths[row] ?? 0, lengths[row + 1] ?? 0];
      return (a * first + b * second) / (first + second);
    };
    for (const stream of streams) {
      for (const name of COLUMNS) pairwise(stream[name], name.endsWith("_per_s") || name === "in_flight" ? mean : name === "count" ? sum : Math.max);
      for (const counts of Object.values(stream.failures)) pairwise(counts, sum);
    }
    for (const name of LOAD_COLUMNS) pairwise(generator[name], name === "stalled_s" ? sum : Math.max);
    pairwise(points.start_s, Math.min);
    pairwise(points.length_s, sum);
    points.phase.splice(0, points.phase.length, ...points.phase.filter((_, row) => row % 2 === 0));
  }
  if (service && service.start_s.length > MOST_HELD) {
    pairwise(service.start_s, Math.min);
    for (const topic of service.topics) for (const series of topic.series) pairwise(series.values, Math.max);
  }
}

const sum = (a: number, b: number): number => a + b;

function pairwise(column: Numbers, join: (a: number, b: number, row: number) => number): void {
  const rows = column.length;
  for (let row = 0; row < rows; row += 2) {
    const [a = null, b = null] = [column[row], column[row + 1]];
    column[row / 2] = a === null ? b : b === null ? a : join(a, b, row);
  }
  column.length = Math.ceil(rows / 2);
}

function add<T>(column: T[], more: readonly T[] = []): void {
  for (const each of more) column.push(each);
}

function fits(service: Service | null, more: NonNullable<Update["service"]>): boolean {
  return (
    service?.topics.length === more.topics.length &&
    service.topics.every((topic, i) => topic.id === more.topics[i]?.id && topic.series.length === more.topics[i].series.length)
  );
}

/** Return the end of each point: a rate is known once its time has passed. */
export const endsOf = (points: Points): number[] => points.start_s.map((start, i) => start + (points.length_s[i] ?? 0));

/** Return the streams that are the load; the others are probes, of which only the response time is drawn. */
export function loadsOf(trial: Trial): readonly Stream[] {
  const loads = trial.streams.filter(({ role }) => role === "load");
  return loads.length ? loads : trial.streams;
}

/** Return the charts of a trial by name, in their order on the page. */
export function picturesOf(whole: Trial): Map<string, Picture> {
  const trial = withoutSlivers(whole);
  const times = endsOf(trial.points);
  const pictures = new Map<string, Picture>();
  const loads = loadsOf(trial);
  for (const stream of trial.streams) {
    const isLoad = loads.includes(stream);
    const isNamed = !isLoad || loads.length > 1;
    const of = isNamed ? `${isLoad ? "" : "probe "}${stream.name}: ` : "";
    const id = (name: string): string => (isNamed ? `${name}-${stream.name}` : name);
    if (!isLoad) {
      pictures.set(id("response"), responseOf(trial, stream, of, times));
      continue;
    }
    pictures.set(id("requests"), {
      title: `${of}requests`,
      unit: "1/s",
      times,
      lines: [
        { name: "due", values: stream.due_per_s, merge: "mean", slot: 4, dashed: true },
        { name: "sent", values: stream.sent_per_s, merge: "mean", slot: 1 },
        { name: "answered", values: stream.answered_per_s, merge: "mean", slot: 3 },
      ],
    });
    pictures.set(id("response"), responseOf(trial, stream, of, times));
    pictures.set(id("in-flight"), { title: `${of}in flight`, unit: "requests", times, lines: [{ name: "in flight, mean", values: stream.in_flight, slot: 1 }] });
    const failures = failureLines(stream, trial.points);
    if (failures.length) pictures.set(id("failures"), { title: `${of}failures`, unit: "1/s", times, lines: failures });
  }
  const { busy, lag_p99_s, stalled_s } = trial.generator;
  pictures.set("busy", { title: "generator busy", unit: "share", times, lines: [{ name: "busiest thread", values: busy, slot: 1 }] });
  pictures.set("lag", {
    title: "generator late",
    unit: "s",
    times,
    lines: [
      { name: "p99 of lateness", values: lag_p99_s, slot: 1 },
      ...(stalled_s.some((each) => each) ? [{ name: "stood still", values: stalled_s, slot: 2 }] : []),
    ],
  });
  for (const topic of trial.service?.topics ?? []) {
    for (const [unit, series] of byUnit(topic)) pictures.set(`${topic.id}-${unit || "number"}`, topicOf(topic, unit, series, trial.service?.start_s ?? []));
  }
  return pictures;
}

/** Leave out points too short for a rate, such as the milliseconds in which the last responses come. */
function withoutSlivers(trial: Trial): Trial {
  const lengths = trial.points.length_s;
  if (lengths.every((length) => length >= SLIVER_S)) return trial;
  const kept = <T>(column: readonly T[]): T[] => column.filter((_, row) => (lengths[row] ?? 0) >= SLIVER_S);
  const { start_s, length_s, phase } = trial.points;
  return {
    ...trial,
    points: { start_s: kept(start_s), length_s: kept(length_s), phase: kept(phase) },
    streams: trial.streams.map((stream) => ({
      ...stream,
      ...Object.fromEntries(COLUMNS.map((name) => [name, kept(stream[name])])),
      failures: Object.fromEntries(Object.entries(stream.failures).map(([kind, counts]) => [kind, kept(counts)])),
    })),
    generator: { ...trial.generator, ...Object.fromEntries(LOAD_COLUMNS.map((name) => [name, kept(trial.generator[name])])) },
  };
}

function responseOf(trial: Trial, stream: Stream, of: string, times: readonly number[]): Picture {
  const leftOut = times.filter((_, i) => PERCENTILES.some((name) => stream[name][i] === null));
  const missing = PERCENTILES.map((name) => ({ name: name.slice(0, 3), points: stream[name].filter((each, i) => each === null && (stream.count[i] ?? 0) < trial.needs[name]).length, least: trial.needs[name] }));
  // A percentile that enough requests carry can still be open: those above it never finished.
  const open = trial.points.start_s.filter((_, i) => PERCENTILES.some((name) => stream[name][i] === null && (stream.count[i] ?? 0) >= trial.needs[name])).length;
  const texts = missing.filter(({ points }) => points).map(({ name, points, least }) => `${name} in ${several(points, "point")} with fewer than ${least} successes`);
  if (open) texts.push(`${several(open, "point")} with requests that never finished`);
  return {
    title: `${of}response time`,
    unit: "s",
    times,
    isLog: true,
    leftOut,
    lines: PERCENTILES.map((name, i) => ({ name: name.slice(0, 3), values: stream[name], slot: [1, 3, 2][i] ?? 7 })),
    ...(texts.length ? { note: `○ left out: ${texts.join(", ")}` } : {}),
  };
}

function failureLines(stream: Stream, points: Points): Line[] {
  return Object.entries(stream.failures)
    .filter(([, counts]) => counts.some((each) => each))
    .map(([kind, counts]) => ({ name: wordsOf(kind), merge: "mean" as const, values: counts.map((each, i) => (each === null ? null : each / (points.length_s[i] ?? 1))) }));
}

function byUnit(topic: Topic): Map<string, Topic["series"]> {
  const units = new Map<string, Topic["series"]>();
  for (const series of topic.series) units.set(series.unit, [...(units.get(series.unit) ?? []), series]);
  return units;
}

function topicOf(topic: Topic, unit: string, series: Topic["series"], times: readonly number[]): Picture {
  const notes = [
    series.length > MOST_DRAWN ? `${series.length - MOST_DRAWN} more in the table` : "",
    topic.left_out ? `${topic.left_out} more in the readings` : "",
  ].filter(Boolean);
  return {
    title: topic.title,
    unit,
    times,
    drawn: MOST_DRAWN,
    lines: series.map((each) => ({ name: each.name, values: each.values })),
    ...(notes.length ? { note: notes.join(", ") } : {}),
  };
}

/** Return a class of failure in the words of the report. */
export const wordsOf = (kind: string): string => (words.outcomes as Readonly<Record<string, string>>)[kind] ?? kind.replaceAll("_", " ");

/** Return where the axis of time ends: a running trial has room for its first minute, so that it need not jump. */
export function endOf(trial: Trial): number {
  const planned = trial.duration_s === null ? trial.elapsed_s : trial.warmup_s + trial.duration_s;
  return trial.state === "running" ? Math.max(trial.elapsed_s, Math.min(planned, 60)) : Math.max(trial.elapsed_s, 1);
}

/** Return what of the log bears on the figures of a trial, at its moments. */
export function marksOf(run: Run, trial: Trial): Mark[] {
  const zero = trial.t0_s;
  if (zero === null) return [];
  const own = (line: Run["log"][number]): boolean => line.case === trial.case && line.trial === trial.trial;
  return run.log
    .filter(({ state }) => state === "bad" || state === "caution")
    .map((line) => ({ at: (own(line) ? line.since_t0_s : null) ?? line.at_s - zero, text: line.words, isBad: line.state === "bad" }))
    .filter(({ at }) => at >= 0 && at <= trial.elapsed_s);
}
