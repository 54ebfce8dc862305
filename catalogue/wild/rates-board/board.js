'use strict';
const http = require('node:http');
const path = require('node:path');
const { fork } = require('node:child_process');
const prom = require('prom-client');

const VARIANT = process.env.VARIANT || 'flawed';
const TTL_MS = VARIANT === 'healthy' ? 30_000 : 250; // rates are at most a quarter of a second old
const PAGE_MS = VARIANT === 'healthy' ? 150 : 100;

prom.collectDefaultMetrics();
const hits = new prom.Counter({ name: 'rates_cache_hits_total', help: 'Answers from the cache' });
const misses = new prom.Counter({ name: 'rates_cache_misses_total', help: 'Answers that needed the feed' });
const feedSeconds = new prom.Histogram({
  name: 'rates_feed_request_duration_seconds',
  help: 'Time of a request to the feed',
  buckets: [0.25, 0.5, 1, 2, 4, 8, 16],
});

const agent = new http.Agent({ keepAlive: true });
let feedPort;

function fetchRates() {
  const stop = feedSeconds.startTimer();
  return new Promise((resolve, reject) => {
    http
      .get({ host: '127.0.0.1', port: feedPort, path: '/latest', agent }, (res) => {
        let body = '';
        res.setEncoding('utf8');
        res.on('data', (part) => (body += part));
        res.on('end', () => {
          stop();
          resolve(JSON.parse(body));
        });
      })
      .on('error', reject);
  });
}

let cached = { expires: 0, rates: null };
let pending = null;

async function refresh() {
  misses.inc();
  const rates = await fetchRates();
  cached = { rates, expires: Date.now() + TTL_MS };
  return rates;
}

async function currentRates() {
  if (cached.expires > Date.now()) {
    hits.inc();
    return cached.rates;
  }
  if (VARIANT === 'flawed') return refresh();
  pending ??= refresh().finally(() => (pending = null));
  return cached.rates ?? pending; // stale for the time of one refresh
}

const app = require('fastify')();

app.get('/board/:currency', async (request, reply) => {
  const rates = await currentRates();
  const rate = rates[request.params.currency];
  if (!rate) return reply.code(404).send({ error: 'not on the board' });
  await new Promise((r) => setTimeout(r, PAGE_MS)); // spread, from the pricing service
  return { currency: request.params.currency, bid: rate * 0.998, ask: rate * 1.002, at: rates.at };
});

app.get('/metrics', async (request, reply) => {
  reply.header('content-type', prom.register.contentType);
  return prom.register.metrics();
});

const feed = fork(path.join(__dirname, 'feed.js'));
feed.once('message', (port) => {
  feedPort = port;
  app.listen({ host: '127.0.0.1', port: Number(process.argv[2]) });
});
