// Metrics in the text format of Prometheus, named as prom-client's.
const BOUNDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const counters = new Map();
const durations = new Map();
let active = 0;

export const begin = () => { active += 1; };

export function count(name, labels) {
  const series = `${name}{${labels}}`;
  counters.set(series, (counters.get(series) ?? 0) + 1);
}

export function end(route, code, seconds) {
  active -= 1;
  count('http_requests_total', `method="GET",route="${route}",code="${code}"`);
  const key = `method="GET",route="${route}"`;
  if (!durations.has(key)) durations.set(key, { buckets: BOUNDS.map(() => 0), sum: 0, count: 0 });
  const series = durations.get(key);
  BOUNDS.forEach((bound, i) => { if (seconds <= bound) series.buckets[i] += 1; });
  series.sum += seconds;
  series.count += 1;
}

export function text() {
  const lines = [];
  for (const name of new Set([...counters.keys()].map((series) => series.split('{')[0]))) {
    lines.push(`# TYPE ${name} counter`);
    for (const [series, value] of counters) if (series.startsWith(`${name}{`)) lines.push(`${series} ${value}`);
  }
  lines.push('# TYPE http_request_duration_seconds histogram');
  for (const [labels, { buckets, sum, count: total }] of durations) {
    BOUNDS.forEach((bound, i) => {
      lines.push(`http_request_duration_seconds_bucket{le="${bound}",${labels}} ${buckets[i]}`);
    });
    lines.push(`http_request_duration_seconds_bucket{le="+Inf",${labels}} ${total}`);
    lines.push(`http_request_duration_seconds_sum{${labels}} ${sum}`);
    lines.push(`http_request_duration_seconds_count{${labels}} ${total}`);
  }
  const { user, system } = process.cpuUsage();
  lines.push('# TYPE http_requests_active gauge', `http_requests_active ${active}`);
  lines.push('# TYPE process_cpu_seconds_total counter', `process_cpu_seconds_total ${(user + system) / 1e6}`);
  lines.push('# TYPE process_resident_memory_bytes gauge');
  lines.push(`process_resident_memory_bytes ${process.memoryUsage.rss()}`);
  return `${lines.join('\n')}\n`;
}
