'use strict';
// Prometheus text, in the names of prom-client.
const { monitorEventLoopDelay, performance } = require('node:perf_hooks');

const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();
let lastUtilization = performance.eventLoopUtilization();

class Histogram {
  constructor(name, help) {
    Object.assign(this, { name, help, series: new Map() });
  }
  observe(labels, value) {
    const key = Object.entries(labels).map(([k, v]) => `${k}="${v}"`).join(',');
    let s = this.series.get(key);
    if (!s) this.series.set(key, (s = { counts: new Array(BUCKETS.length).fill(0), sum: 0, count: 0 }));
    BUCKETS.forEach((le, i) => { if (value <= le) s.counts[i]++; });
    s.sum += value;
    s.count++;
  }
  text() {
    const out = [`# HELP ${this.name} ${this.help}`, `# TYPE ${this.name} histogram`];
    for (const [key, s] of this.series) {
      BUCKETS.forEach((le, i) => out.push(`${this.name}_bucket{${key},le="${le}"} ${s.counts[i]}`));
      out.push(`${this.name}_bucket{${key},le="+Inf"} ${s.count}`);
      out.push(`${this.name}_sum{${key}} ${s.sum}`, `${this.name}_count{${key}} ${s.count}`);
    }
    return out.join('\n');
  }
}

function gauge(name, help, rows) {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} gauge`, ...rows.map(([l, v]) => `${name}${l} ${v}`)].join('\n');
}

function processText() {
  const cpu = process.cpuUsage();
  const now = performance.eventLoopUtilization();
  const used = performance.eventLoopUtilization(now, lastUtilization).utilization;
  lastUtilization = now;
  return [
    '# TYPE process_cpu_seconds_total counter',
    `process_cpu_seconds_total ${(cpu.user + cpu.system) / 1e6}`,
    gauge('process_resident_memory_bytes', 'Resident memory size in bytes.', [['', process.memoryUsage().rss]]),
    gauge('nodejs_eventloop_lag_mean_seconds', 'Mean event loop delay.', [['', (delay.mean || 0) / 1e9]]),
    gauge('nodejs_eventloop_utilization', 'Share of time the event loop was busy.', [['', used]]),
  ].join('\n');
}

module.exports = { Histogram, gauge, processText };
