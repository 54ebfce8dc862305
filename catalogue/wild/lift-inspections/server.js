'use strict';

const http = require('node:http');
const express = require('express');
const client = require('prom-client');

const PORT = Number(process.env.PORT);
const VARIANT = process.env.VARIANT;
const SHARDS = 6;
const INTERVAL_MONTHS = { passenger: 12, goods: 24, hoist: 6 };

client.collectDefaultMetrics();
const requestSeconds = new client.Histogram({
  name: 'http_request_duration_seconds',
  help: 'Time to answer a request',
  labelNames: ['route', 'status_code'],
  buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
});
const shardSeconds = new client.Histogram({
  name: 'shard_query_duration_seconds',
  help: 'Time from the query of a record to its answer, by shard',
  labelNames: ['shard'],
  buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
});
const shardInFlight = new client.Gauge({
  name: 'shard_queries_in_flight',
  help: 'Queries that are not answered yet, by shard',
  labelNames: ['shard'],
});

function fnv1a(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  hash ^= hash >>> 15;
  return hash >>> 0;
}

const keyOf = {
  city: (number) => number.split('-')[0],
  lift: (number) => number,
};
const shardKey = VARIANT === 'flawed' ? keyOf.city : keyOf.lift;

// Each shard accepts few connections from any one application.
const CONNECTIONS = VARIANT === 'healthy' ? 128 : 6;
const agents = Array.from({ length: SHARDS }, () => new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS }));

function query(shard, number) {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: PORT + 1 + shard, path: `/lifts/${number}`, agent: agents[shard] };
    http
      .get(options, (answer) => {
        let text = '';
        answer.setEncoding('utf8');
        answer.on('data', (chunk) => (text += chunk));
        answer.on('error', reject);
        answer.on('end', () => {
          if (answer.statusCode === 200) resolve(JSON.parse(text));
          else reject(new Error(`shard ${shard} answered ${answer.statusCode}`));
        });
      })
      .on('error', reject);
  });
}

async function recordOf(number) {
  const shard = fnv1a(shardKey(number)) % SHARDS;
  const end = shardSeconds.startTimer({ shard });
  shardInFlight.inc({ shard });
  try {
    return await query(shard, number);
  } finally {
    shardInFlight.dec({ shard });
    end();
  }
}

function nextInspection(record) {
  const due = new Date(record.inspected);
  due.setUTCMonth(due.getUTCMonth() + INTERVAL_MONTHS[record.type]);
  return due.toISOString().slice(0, 10);
}

const app = express();
app.disable('x-powered-by');
app.set('etag', false);

app.get('/metrics', async (req, res) => {
  res.set('Content-Type', client.register.contentType);
  res.send(await client.register.metrics());
});

app.get('/health', (req, res) => res.json({ status: 'up' }));

app.get('/lifts/:number', async (req, res, next) => {
  const end = requestSeconds.startTimer({ route: '/lifts/:number' });
  res.on('finish', () => end({ status_code: res.statusCode }));
  const number = req.params.number.toUpperCase();
  if (!/^[A-Z]{3}-\d{5}$/.test(number)) {
    res.status(404).json({ error: `no lift has the number ${number}` });
    return;
  }
  try {
    const record = await recordOf(number);
    res.json({ ...record, due: nextInspection(record), overdue: new Date(nextInspection(record)) < new Date() });
  } catch (error) {
    next(error);
  }
});

app.use((error, req, res, next) => {
  console.error(error.message);
  res.status(502).json({ error: 'the record cannot be read now' });
});

app.listen(PORT, '127.0.0.1', 1024);
