'use strict';

const express = require('express');
const pino = require('pino');
const prom = require('prom-client');
const { block, proof } = require('./merkle');
const { published } = require('./bulletin');
const { settings } = require('./tenants');
const { Turns } = require('./turns');

const log = pino({ name: 'ballot-proofs' });
const { leaves: size, bulletinMs } = settings();
const turns = new Turns();
const app = express();
app.disable('x-powered-by');
app.disable('etag');

prom.collectDefaultMetrics();
const took = new prom.Histogram({
  name: 'http_request_duration_seconds',
  help: 'Time from request to answer.',
  labelNames: ['method', 'route', 'code'],
});
const served = new prom.Counter({ name: 'proofs_total', help: 'Proofs given.', labelNames: ['election'] });

app.use((req, res, next) => {
  if (req.path === '/metrics') return next();
  const done = took.startTimer({ method: req.method });
  res.on('finish', () => done({ route: req.route ? req.route.path : 'none', code: res.statusCode }));
  next();
});

app.get('/health', (req, res) => res.json({ ok: true }));

app.get('/metrics', async (req, res) => {
  res.type(prom.register.contentType).send(await prom.register.metrics());
});

app.get('/elections/:election/ballots/:ballot/proof', async (req, res, next) => {
  try {
    const ballot = Number(req.params.ballot);
    if (!Number.isSafeInteger(ballot) || ballot < 0) return res.status(400).json({ error: 'bad ballot number' });
    const board = await published(req.params.election, bulletinMs);
    const found = await turns.run(() => {
      const { leaves, index } = block(req.params.election, ballot, size);
      return { index, ...proof(leaves, index) };
    });
    served.inc({ election: req.params.election });
    res.json({ ballot, ...found, board });
  } catch (error) {
    next(error);
  }
});

app.use((error, req, res, _next) => {
  log.error({ err: error, path: req.path }, 'request failed');
  res.status(500).json({ error: 'internal' });
});

const server = app.listen(Number(process.argv[2]), '127.0.0.1', 511, () => log.info('listening'));
process.on('SIGTERM', () => server.close(() => process.exit(0)));
