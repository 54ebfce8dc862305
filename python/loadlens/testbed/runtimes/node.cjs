"use strict";

// What this process's event loop, collector and heap did, one JSON object a second, appended to a file of its
// own in the folder LOADLENS_RUNTIME. Preloaded by NODE_OPTIONS, in worker threads too. It must never disturb
// the service: it throws nothing, prints nothing and keeps no process alive.

(() => {
  const folder = process.env.LOADLENS_RUNTIME;
  if (!folder) return;

  const STEP_MS = 20; // between two looks at the loop
  const SAMPLE_MS = 1000;
  const A_DECADE = 10; // classes of lag

  const fs = require("node:fs");
  const v8 = require("node:v8");
  const { threadId } = require("node:worker_threads");
  const { PerformanceObserver, constants, performance } = require("node:perf_hooks");

  const kinds = {
    [constants.NODE_PERFORMANCE_GC_MINOR]: "minor",
    [constants.NODE_PERFORMANCE_GC_MAJOR]: "major",
    [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: "incremental",
    [constants.NODE_PERFORMANCE_GC_WEAKCB]: "weak_callbacks",
  };
  const lag = { counts: {}, sum: 0, max: 0 };
  const gc = {};
  let longestGc = 0;
  let cost = 0;
  let file = -1;
  let last = performance.now();
  let sampled = last;

  // A timer that was due at any moment of a turn would have waited until its end. So a late look counts for all
  // the looks that were due within it, and the counts are over time: what a timer set at random would meet.
  function look() {
    const now = performance.now();
    let late = now - last - STEP_MS;
    last = now;
    if (late > lag.max) lag.max = late;
    do {
      const waited = Math.max(0, late);
      const group = waited < 1 ? 0 : 1 + Math.floor(Math.log10(waited) * A_DECADE);
      lag.counts[group] = (lag.counts[group] || 0) + 1;
      lag.sum += waited;
      late -= STEP_MS;
    } while (late > 0);
    if (now - sampled >= SAMPLE_MS) {
      sampled = now;
      sample();
    }
    cost += performance.now() - now;
  }

  function sample() {
    const loop = performance.eventLoopUtilization();
    const heap = v8.getHeapStatistics();
    const held = {};
    for (const kind of process.getActiveResourcesInfo?.() ?? []) held[kind] = (held[kind] || 0) + 1;
    const content = {
      active_ms: loop.active,
      idle_ms: loop.idle,
      lag_counts: lag.counts,
      lag_sum_ms: lag.sum,
      lag_max_ms: lag.max,
      gc,
      gc_longest_ms: longestGc,
      heap_used: heap.used_heap_size,
      heap_limit: heap.heap_size_limit,
      external: heap.external_memory,
      held,
      cost_ms: cost,
    };
    lag.max = 0;
    longestGc = 0;
    write(`{"t":${process.hrtime.bigint()},"step_ms":${STEP_MS},"a_decade":${A_DECADE},${JSON.stringify(content).slice(1)}\n`);
  }

  function write(text) {
    try {
      if (file < 0) file = fs.openSync(`${folder}/${process.pid}-${threadId}.jsonl`, "a");
      fs.writeSync(file, text);
    } catch {
      clearInterval(timer); // the folder is gone, or the disk is full: there is nobody to tell
    }
  }

  const timer = setInterval(look, STEP_MS);
  timer.unref();
  try {
    new PerformanceObserver((list) => {
      const began = performance.now();
      for (const entry of list.getEntries()) {
        const kind = kinds[entry.detail?.kind] ?? "other";
        const sums = (gc[kind] ??= { count: 0, ms: 0 });
        sums.count += 1;
        sums.ms += entry.duration;
        if (entry.duration > longestGc) longestGc = entry.duration;
      }
      cost += performance.now() - began;
    }).observe({ entryTypes: ["gc"] });
  } catch {
    // a Node without these entries: the sums stay empty
  }
})();
