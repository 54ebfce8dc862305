'use strict';
const http = require('node:http');
const { performance } = require('node:perf_hooks');
const placement = require('./placement');
const { Histogram, gauge, processText } = require('./metrics');

const PORT = Number(process.env.PORT);
const STORES = 8;
const place = process.env.VARIANT === 'flawed' ? placement.byCountry : placement.bySail;
const CONNECTIONS = process.env.VARIANT === 'healthy' ? 64 : 4;

const requests = new Histogram('http_request_duration_seconds', 'Time of requests in seconds.');
const reads = new Histogram('entry_store_read_duration_seconds', 'Time of reads from a store, in seconds.');

const stores = Array.from({ length: STORES }, (_, i) => ({
  name: `entries-${i}`,
  port: PORT + 1 + i,
  agent: new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS }),
}));

const count = (lists) => Object.values(lists).reduce((sum, list) => sum + list.length, 0);

function read(store, path) {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const req = http.get({ host: '127.0.0.1', port: store.port, path, agent: store.agent }, (res) => {
      let body = '';
      res.setEncoding('utf8');
      res.on('data', (chunk) => { body += chunk; });
      res.on('error', reject);
      res.on('end', () => {
        reads.observe({ store: store.name }, (performance.now() - started) / 1000);
        resolve(JSON.parse(body));
      });
    });
    req.on('error', reject);
  });
}

function parseSail(text) {
  const match = /^([A-Z]{3})-(\d{1,6})$/.exec(text);
  return match && { country: match[1], number: match[2] };
}

function send(res, status, body, type = 'application/json') {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  res.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) });
  res.end(text);
}

async function entry(res, text) {
  const sail = parseSail(text);
  if (!sail) return send(res, 400, { error: 'a sail number is three letters, a dash and digits' });
  const store = stores[place(sail, STORES)];
  const found = await read(store, `/entries/${sail.country}/${sail.number}`);
  const fleet = found.handicap < 1 ? 'gold' : 'silver';
  return send(res, 200, { ...found, fleet, status: found.paid ? 'confirmed' : 'provisional' });
}

function metrics(res) {
  const label = (store) => `{store="${store.name}"}`;
  const text = [
    requests.text(),
    reads.text(),
    gauge('entry_store_connections_active', 'Connections in use.', stores.map((s) => [label(s), count(s.agent.sockets)])),
    gauge('entry_store_connections_max', 'Most connections.', stores.map((s) => [label(s), CONNECTIONS])),
    gauge('entry_store_reads_pending', 'Reads that wait.', stores.map((s) => [label(s), count(s.agent.requests)])),
    processText(),
  ].join('\n');
  send(res, 200, `${text}\n`, 'text/plain; version=0.0.4');
}

const server = http.createServer((req, res) => {
  const [, root, id] = req.url.split('?')[0].split('/');
  if (root === 'healthz') return send(res, 200, { ok: true });
  if (root === 'metrics') return metrics(res);
  if (req.method !== 'GET' || root !== 'entries' || !id) return send(res, 404, { error: 'not found' });
  const started = performance.now();
  res.on('finish', () => {
    const labels = { method: 'GET', route: '/entries/:sail', status_code: res.statusCode };
    requests.observe(labels, (performance.now() - started) / 1000);
  });
  return entry(res, id).catch((error) => {
    console.error(error.message);
    send(res, 502, { error: 'the entry store does not answer' });
  });
});
server.keepAliveTimeout = 65_000;
server.listen(PORT, '127.0.0.1');
