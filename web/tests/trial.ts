// A trial as the server sends it, small enough to count by hand.

import type { Run, Stream, Totals, Trial, Update } from "../src/api.ts";

export const totals = (more: Partial<Totals> = {}): Totals => ({
  due: 30, issued: 30, dropped: 0, waiting: 0, answered: 28, ok: 28, unexpected_status: 0, check_failed: 0, failed: 2, in_flight: 0,
  failed_by: { timeout: 2 }, status: { "200": 28 }, law: "due 30 = issued 30", holds: true, ...more,
});

const columns = {
  due_per_s: [10, 10], sent_per_s: [10, 10], answered_per_s: [10, 8], ok_per_s: [10, 8], bad_per_s: [0, 0], in_flight: [1, 2],
  count: [10, 8], p50_s: [0.01, 0.02], p95_s: [null, null], p99_s: [null, null], failures: { timeout: [0, 2] },
};

export const stream = (more: Partial<Stream> = {}): Stream => ({
  name: "main", role: "load", load: "10/s", steps: [{ name: "x", request: "GET /x" }], ...structuredClone(columns), totals: totals(), ...more,
});

export const trial = (more: Partial<Trial> = {}): Trial => ({
  case: "c", name: "10/s", trial: "block-1", block: 1, attempt: 1, state: "running", reasons: [], t0_s: 1000, warmup_s: 1, duration_s: 9,
  elapsed_s: 2, phase: "measured", notes: [], points: { start_s: [0, 1], length_s: [1, 1], phase: ["warmup", "measured"] }, streams: [stream()],
  needs: { p50_s: 6, p95_s: 73, p99_s: 368 }, failures: [], generator: { threads: 1, busy: [0.1, 0.2], lag_p99_s: [1e-5, 2e-5], stalled_s: [0, 0] }, nodes: [],
  service: {
    start_s: [0.5, 1.5], length_s: 1,
    topics: [{ id: "cpu", title: "CPU", left_out: 0, series: [{ name: "api", what: "CPU of api", unit: "share", labels: {}, values: [0.3, 0.4] }] }],
  },
  ...more,
});

/** One more second of `trial()`. */
export const update = (more: Partial<Update> = {}): Update => ({
  case: "c", trial: "block-1", elapsed_s: 3, phase: "measured", points: { start_s: [2], length_s: [0.5], phase: ["measured"] },
  streams: [{
    due_per_s: [20], sent_per_s: [20], answered_per_s: [20], ok_per_s: [20], bad_per_s: [0], in_flight: [3], count: [10], p50_s: [0.03],
    p95_s: [null], p99_s: [null], failures: { reset: [4] }, totals: totals({ due: 40 }),
  }],
  failures: [], generator: { busy: [0.3], lag_p99_s: [3e-5], stalled_s: [0] }, nodes: [],
  service: { start_s: [2.5], topics: [{ id: "cpu", series: [{ values: [0.5] }] }] }, ...more,
});

export const run = (more: Partial<Run> = {}): Run => ({
  id: "r", name: "r", study: "s", question: "q", kind: "hit", state: "running", created_s: 0, updated_s: 0, planned: 1, complete: 0, words: "",
  path: "/r", cases: [], blocks: 1, trials: [], levels: [], provisional: [], answer: [], log: [], running: null, actions: {}, why: {}, has_report: false,
  ...more,
});
