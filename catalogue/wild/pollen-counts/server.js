'use strict';
// Pollen counts for licensed readers.
const http = require('node:http');
const common = require('./headers');
const { Upstream } = require('./upstream');

const PORT = Number(process.env.PORT);
const register = new Upstream('licence register', PORT + 1, 2); // two at a time by contract
const archive = new Upstream('archive', PORT + 2, 256);

const STATIONS = new Set(['bergen', 'oslo', 'tromso', 'roros']);
const POLLEN = { birch: [30, 80], grass: [20, 50], alder: [30, 100], mugwort: [10, 30] };

function send(res, status, value) {
  const body = JSON.stringify(value);
  res.writeHead(status, {
    ...common,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
  });
  res.end(body);
}

function level(grains, [moderate, high]) {
  if (grains >= high) return 'high';
  return grains >= moderate ? 'moderate' : 'low';
}

async function counts(req, res, station, pollen) {
  const { licensed } = await req.socket.licence;
  if (!licensed) return send(res, 403, { error: 'this reader has no licence' });
  const { hours } = await archive.get(`/${station}/${pollen}`);
  const peak = hours.reduce((best, each) => (each.grains > best.grains ? each : best));
  const mean = hours.reduce((sum, each) => sum + each.grains, 0) / hours.length;
  return send(res, 200, {
    station,
    pollen,
    mean: Math.round(mean * 10) / 10,
    peak,
    level: level(mean, POLLEN[pollen]),
    hours: hours.map((each) => ({ ...each, level: level(each.grains, POLLEN[pollen]) })),
  });
}

const server = http.createServer((req, res) => {
  const [, root, station, pollen] = req.url.split('?')[0].split('/');
  if (root === 'healthz') return send(res, 200, { ok: true });
  if (req.method !== 'GET' || root !== 'counts') return send(res, 404, { error: 'not found' });
  if (!STATIONS.has(station) || !(pollen in POLLEN)) return send(res, 404, { error: 'no such station or pollen' });
  return counts(req, res, station, pollen).catch((error) => {
    console.error(error.message);
    if (!res.headersSent) send(res, 502, { error: 'try again later' });
  });
});

server.on('connection', (socket) => {
  socket.setNoDelay(true);
  socket.licence = register.get(`/licences/${encodeURIComponent(socket.remoteAddress)}`);
  socket.licence.catch(() => {});
});

server.keepAliveTimeout = 75_000;
server.listen(PORT, '127.0.0.1', 1024);
