'use strict';

const crypto = require('node:crypto');
const http = require('node:http');
const express = require('express');
const client = require('prom-client');
const { loadInventory } = require('./inventory');

const port = Number(process.env.PORT);
const variant = process.env.VARIANT;
const stores = [1, 2, 3, 4, 5].map((offset) => ({ name: `store-${offset}`, port: port + offset }));
const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity });
const crates = loadInventory();

client.collectDefaultMetrics();
const requestSeconds = new client.Histogram({
  name: 'http_request_duration_seconds',
  help: 'Duration of HTTP requests',
  labelNames: ['method', 'route', 'status_code'],
  buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
});
const storeSeconds = new client.Histogram({
  name: 'store_request_duration_seconds',
  help: 'Duration of reads from a store',
  labelNames: ['store'],
  buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
});
const storeInFlight = new client.Gauge({
  name: 'store_requests_in_flight',
  help: 'Reads from a store that have not returned',
  labelNames: ['store'],
});

function hashOf(text) {
  return crypto.createHash('md5').update(text).digest().readUInt32BE(0);
}

function placementKey(crate) {
  if (variant === 'flawed') {
    return crate.collection;
  }
  return crate.code;
}

function storeOf(crate) {
  return stores[hashOf(placementKey(crate)) % stores.length];
}

function getJson(target, path) {
  return new Promise((resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port: target.port, path, agent }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => {
        try {
          resolve(JSON.parse(Buffer.concat(chunks)));
        } catch (error) {
          reject(error);
        }
      });
      response.on('error', reject);
    });
    request.on('error', reject);
  });
}

async function readCrate(crate) {
  const store = storeOf(crate);
  const labels = { store: store.name };
  const stop = storeSeconds.startTimer(labels);
  storeInFlight.inc(labels);
  try {
    return await getJson(store, `/crates/${crate.id}`);
  } finally {
    storeInFlight.dec(labels);
    stop();
  }
}

const app = express();
app.disable('x-powered-by');
app.disable('etag');

app.use((req, res, next) => {
  const stop = requestSeconds.startTimer({ method: req.method });
  res.on('finish', () => stop({ route: req.route ? req.route.path : 'none', status_code: res.statusCode }));
  next();
});

app.get('/spot-check', async (req, res) => {
  const crate = crates[crypto.randomInt(crates.length)];
  const record = await readCrate(crate);
  res.json({ ...crate, bay: record.bay, weightKg: record.weightKg, due: '2027-01-31' });
});

app.get('/crates/:id', async (req, res) => {
  const crate = crates[Number(req.params.id) - 1];
  if (!crate) {
    res.status(404).json({ error: 'no such crate' });
    return;
  }
  res.json({ ...crate, ...(await readCrate(crate)) });
});

app.get('/healthz', (req, res) => res.json({ crates: crates.length }));

app.get('/metrics', async (req, res) => {
  res.type(client.register.contentType).send(await client.register.metrics());
});

app.use((error, req, res, next) => {
  console.error(error.message);
  res.status(502).json({ error: 'store unavailable' });
});

app.listen(port, '127.0.0.1', 1024, () => console.log(`museum-crates on ${port}`));
