import assert from "node:assert/strict";
import test from "node:test";

import type { Cell, Trial, Update } from "../src/api.ts";
import { isBeyond, nearest, within } from "../src/axis.ts";
import { figureText, intervalText, known } from "../src/known.ts";
import { append, filled, marksOf, picturesOf } from "../src/model.ts";
import { merged } from "../src/series.ts";
import { run, stream, totals, trial, update } from "./trial.ts";

test("new points are appended to every column, and a class that is new had no failure before", () => {
  const live = trial();

  assert.ok(append(live, update()));

  const [load] = live.streams;
  assert.deepEqual(live.points.start_s, [0, 1, 2]);
  assert.deepEqual(load?.due_per_s, [10, 10, 20]);
  assert.deepEqual(load.failures, { timeout: [0, 2, 0], reset: [0, 0, 4] });
  assert.equal(load.totals.due, 40);
  assert.deepEqual(live.generator.busy, [0.1, 0.2, 0.3]);
  assert.deepEqual(live.service?.topics[0]?.series[0]?.values, [0.3, 0.4, 0.5]);
});

test("a trial that has only begun has no rows, and takes the first ones", () => {
  const begun = JSON.parse(JSON.stringify({ ...trial({ service: null }), points: {}, generator: { threads: null }, streams: [{ name: "main", role: "load", steps: [], failures: {} }] })) as Trial;
  const live = filled(begun);

  assert.equal(picturesOf(live).get("requests")?.times.length, 0);
  assert.ok(append(live, update({ service: null })));
  assert.ok(append(live, { ...update({ service: null }), points: {}, streams: [{ failures: {}, totals: totals() }], generator: {} } as unknown as Update));
  assert.deepEqual(live.streams[0]?.due_per_s, [20]);
});

test("points of another trial, or of other series, are refused and nothing is appended", () => {
  const live = trial();

  assert.equal(append(live, update({ trial: "block-2" })), false);
  assert.equal(append(live, update({ service: { start_s: [2.5], topics: [] } })), false);

  assert.deepEqual(live, trial());
});

test("the sums of the points are the accounting", () => {
  const live = trial();
  append(live, update());

  const due = live.streams[0]?.due_per_s.reduce<number>((sum, rate, i) => sum + (rate ?? 0) * (live.points.length_s[i] ?? 0), 0);

  assert.equal(due, 30); // 10 + 10 + half a second of 20/s
});

test("eight hours of seconds stay within 2,000 rows, and the sums stay the accounting", () => {
  const live = trial();
  for (let second = 2; second < 28_800; second += 1) append(live, update({ points: { start_s: [second], length_s: [1], phase: ["measured"] } }));

  const rows = live.points.start_s.length;
  const sum = (column: readonly (number | null)[], length = true) => column.reduce<number>((all, each, i) => all + (each ?? 0) * (length ? (live.points.length_s[i] ?? 0) : 1), 0);
  assert.ok(rows > 1000 && rows <= 2000, String(rows));
  for (const column of [live.streams[0]?.due_per_s, live.streams[0]?.failures.reset, live.generator.busy]) assert.equal(column?.length, rows);
  assert.ok((live.service?.topics[0]?.series[0]?.values.length ?? 0) <= 2000);
  assert.ok(Math.abs(sum(live.streams[0]?.due_per_s ?? []) - (20 + 20 * 28_798)) < 1e-3); // 10 + 10, then 20 per second
  assert.equal(sum(live.streams[0]?.failures.reset ?? [], false), 4 * 28_798);
});

test("a point is drawn at its end, and failures per second", () => {
  const pictures = picturesOf(trial({ points: { start_s: [0, 1], length_s: [1, 0.5], phase: ["measured", "measured"] } }));

  assert.deepEqual(pictures.get("requests")?.times, [1, 1.5]);
  assert.deepEqual(pictures.get("failures")?.lines, [{ name: "timed out", merge: "mean", values: [0, 4] }]);
});

test("milliseconds after the end make no rate", () => {
  const pictures = picturesOf(trial({ points: { start_s: [0, 1], length_s: [1, 0.003], phase: ["measured", "drain"] } }));

  assert.deepEqual(pictures.get("requests")?.times, [1]); // the point of 3 ms is left out
  assert.deepEqual(pictures.get("requests")?.lines.map(({ values }) => values), [[10], [10], [10]]);
});

test("percentiles that too few requests carry are left out, marked and counted", () => {
  const response = picturesOf(trial()).get("response");

  assert.deepEqual(response?.leftOut, [1, 2]);
  assert.equal(response.note, "○ left out: p95 in 2 points with fewer than 73 successes, p99 in 2 points with fewer than 368 successes");
});

test("a percentile that enough requests carry is open if the rest never finished", () => {
  const timeouts = stream({ count: [10, 400], p50_s: [0.01, null], p95_s: [null, null], p99_s: [null, null] });

  const response = picturesOf(trial({ streams: [timeouts] })).get("response");

  assert.equal(response?.note, "○ left out: p95 in 1 point with fewer than 73 successes, p99 in 1 point with fewer than 368 successes, 1 point with requests that never finished");
});

test("a probe is drawn by its response time alone, and a topic with one chart per unit", () => {
  const [cpu] = trial().service?.topics ?? [];
  const mixed = { ...cpu, id: "cpu", title: "CPU", left_out: 2, series: [...(cpu?.series ?? []), { name: "queue", what: "", unit: "", labels: {}, values: [1, 2] }] };
  const pictures = picturesOf(trial({ streams: [stream(), stream({ name: "/health", role: "probe" })], service: { start_s: [0.5, 1.5], length_s: 1, topics: [mixed] } }));

  assert.deepEqual([...pictures.keys()].filter((id) => /^(requests|response|cpu)/.test(id)), ["requests", "response", "response-/health", "cpu-share", "cpu-number"]);
  assert.equal(pictures.get("cpu-share")?.note, "2 more in the readings");
});

test("of many lines the first six are drawn, and the table has all", () => {
  const series = Array.from({ length: 15 }, (_, i) => ({ name: `t${i}`, what: "", unit: "share", labels: {}, values: [i, 0] }));
  const picture = picturesOf(trial({ service: { start_s: [0.5, 1.5], length_s: 1, topics: [{ id: "cpu", title: "CPU", left_out: 0, series }] } })).get("cpu-share");

  assert.equal(picture?.drawn, 6);
  assert.equal(picture.lines.length, 15);
  assert.equal(picture.note, "9 more in the table");
});

test("neighbours become one: rates by their mean, percentiles by the highest, gaps stay gaps", () => {
  const [times, rates, tails] = merged(
    [
      { values: [1, 2, 3, 4, 5], merge: "last" },
      { values: [1, 10, 20, 30, 50], merge: "mean" },
      { values: [9, null, null, 2, 7], merge: "highest" },
    ],
    3,
  );

  assert.deepEqual(times, [1, 3, 5]);
  assert.deepEqual(rates, [1, 15, 40]);
  assert.deepEqual(tails, [9, null, 7]);
});

test("eight hours of seconds are drawn with at most 2,000 points", () => {
  const values = Array.from({ length: 28_800 }, (_, i) => i);

  const [column] = merged([{ values, merge: "last" }], 2000);

  assert.equal(column?.length, 1920); // every 15 seconds
  assert.equal(column.at(-1), 28_799);
});

test("a span holds its rows and one on either side", () => {
  const times = [0, 1, 2, 3, 4, 5];

  assert.deepEqual(within(times, { min: 2, max: 3 }), [1, 5]);
  assert.deepEqual(within(times, { min: -1, max: 9 }), [0, 6]);
  assert.deepEqual(within(times, { min: 8, max: 9 }), [5, 6]);
  assert.equal(nearest(times, 2.6), 3);
  assert.equal(nearest(times, -4), 0);
});

test("the first sentence says what is known: the server's words, the verdict so far, or the last second", () => {
  assert.equal(known(run({ answer: ["p99 is 12 ms", "more"] }), trial()), "P99 is 12 ms");
  assert.equal(known(run({ provisional: [{ at_s: 1, words: "CPU" }, { at_s: 2, words: "a lock" }] }), null), "So far: a lock");
  assert.equal(known(run(), null), "The run begins: no request was sent yet");
  const none = { start_s: [], length_s: [], phase: [] };
  assert.equal(known(run(), trial({ points: none })), "The trial has begun: no counts have come yet");
  assert.equal(known(run(), trial()), "In the last second 8.00 /s answered, half within 20.0 ms; 2 requests of 30 failed so far");
  assert.equal(known(run(), trial({ streams: [stream({ totals: totals({ failed: 0 }) })] })), "In the last second 8.00 /s answered, half within 20.0 ms; no failures so far");
});

test("a finished run of one trial says its figures", () => {
  const figure = (value: number) => ({ value, low: null, high: null });
  const cell: Cell = {
    case: "c", block: 1, state: "complete", trial: "block-1", attempts: 1, reasons: [], began_s: 0, ended_s: 1,
    figures: { throughput_per_s: figure(120), p50_s: figure(0.01), p95_s: figure(0.02), p99_s: figure(0.03), ok: 98, bad: 1, failed: 1 },
  };

  const words = known(run({ state: "finished", trials: [cell] }), null);

  assert.equal(words, "120 /s answered as expected; half within 10.0 ms; 99 % within 30.0 ms; 2 of 100 requests failed");
});

test("a figure without a value says why", () => {
  assert.equal(figureText({ value: null, low: null, high: null, undecided: "needs 21 s" }, "s"), "undecided: needs 21 s");
  assert.equal(figureText(null, "s"), "not measured");
  assert.equal(intervalText({ value: 0.02, low: 0.01, high: null }, "s"), "10.0–open ms");
});

test("what bears on the figures is marked at its moment: a changed load from when it changes, not from its event", () => {
  const line = { event: "", case: "c", trial: "block-1" };
  const log = [
    { ...line, at_s: 100.5, words: "found a probe", state: null },
    { ...line, at_s: 101, words: "load changed", state: "caution" as const, since_t0_s: 1.25 },
    { ...line, at_s: 101.5, words: "service died", state: "bad" as const, since_t0_s: null },
    { ...line, at_s: 99, words: "warned before it", state: "caution" as const },
    { ...line, at_s: 200, words: "trial invalid", state: "bad" as const },
  ];

  assert.deepEqual(marksOf(run({ log }), { ...trial(), case: "c", trial: "block-1", t0_s: 100, elapsed_s: 2 }), [
    { at: 1.25, text: "load changed", isBad: false },
    { at: 1.5, text: "service died", isBad: true },
  ]);
});

test("a zoom lies beyond a trial that has just begun, and within one that lasted as long", () => {
  assert.ok(isBeyond({ min: 10, max: 20 }, { min: 0, max: 1 }));
  assert.ok(isBeyond({ min: 0, max: 20 }, { min: 0, max: 1 }));
  assert.ok(!isBeyond({ min: 10, max: 20 }, { min: 0, max: 20 }));
  assert.ok(!isBeyond({ min: 10, max: 20.4 }, { min: 0, max: 20 })); // sealed, a trial may end a little earlier
});
