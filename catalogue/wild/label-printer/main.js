#!/usr/bin/env node
// Turns an order into a shipping label. The renderer is a remote cluster; this service limits what it sends there.
const http = require('http');
const { once } = require('events');

const LIMITS = {
  flawed: { slots: 8, backlog: 8, renderMs: 100 },
  mended: { slots: 80, backlog: 200, renderMs: 100 },
  healthy: { slots: 80, backlog: 200, renderMs: 160 },
}[process.env.VARIANT || 'flawed'];

const stats = { accepted: 0, refused: 0, printed: 0 };
const backlog = [];
let running = 0;

function render(order) {
  return new Promise((resolve) => {
    setTimeout(() => resolve(`^XA^FO50,50^ADN,36,20^FDORDER ${order}^FS^XZ`), LIMITS.renderMs);
  });
}

function pump() {
  while (running < LIMITS.slots && backlog.length > 0) {
    const job = backlog.shift();
    running += 1;
    render(job.order).then((zpl) => {
      running -= 1;
      stats.printed += 1;
      job.res.writeHead(200, { 'Content-Type': 'application/zpl', 'Content-Length': Buffer.byteLength(zpl) });
      job.res.end(zpl);
      pump();
    });
  }
}

function label(req, res, order) {
  if (running >= LIMITS.slots && backlog.length >= LIMITS.backlog) {
    stats.refused += 1;
    res.writeHead(503, { 'Retry-After': '1', 'Content-Type': 'text/plain' });
    return res.end('label renderer is busy\n');
  }
  stats.accepted += 1;
  backlog.push({ order, res });
  pump();
}

function metrics(res) {
  const lines = [
    '# TYPE labels_accepted_total counter', `labels_accepted_total ${stats.accepted}`,
    '# TYPE labels_refused_total counter', `labels_refused_total ${stats.refused}`,
    '# TYPE labels_printed_total counter', `labels_printed_total ${stats.printed}`,
    '# TYPE render_slots_busy gauge', `render_slots_busy ${running}`,
    '# TYPE render_backlog gauge', `render_backlog ${backlog.length}`,
    '# TYPE process_resident_memory_bytes gauge', `process_resident_memory_bytes ${process.memoryUsage.rss()}`,
    '# TYPE process_cpu_seconds_total counter', `process_cpu_seconds_total ${process.cpuUsage().user / 1e6}`,
  ];
  res.writeHead(200, { 'Content-Type': 'text/plain; version=0.0.4' });
  res.end(lines.join('\n') + '\n');
}

const server = http.createServer((req, res) => {
  const { pathname } = new URL(req.url, 'http://localhost');
  const order = pathname.match(/^\/labels\/(\d{1,12})$/);
  if (order) return label(req, res, order[1]);
  if (pathname === '/metrics') return metrics(res);
  res.writeHead(404).end();
});

server.listen(Number(process.argv[2] || 8080), '127.0.0.1');
once(process, 'SIGTERM').then(() => process.exit(0));
