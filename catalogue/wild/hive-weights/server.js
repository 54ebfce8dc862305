'use strict';

const os = require('node:os');
const express = require('express');
const prom = require('prom-client');
const { Journal, FileGuard, QueueGuard } = require('./journal');
const scales = require('./scales');

const port = Number(process.env.PORT);
const variant = process.env.VARIANT || 'flawed';
const latencyMs = variant === 'healthy' ? 200 : 4;

prom.collectDefaultMetrics();
const duration = new prom.Histogram({
  name: 'http_request_duration_seconds',
  help: 'Duration of HTTP requests',
  labelNames: ['method', 'route', 'code'],
  buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
});

function guardFor(file) {
  if (variant === 'flawed') return new FileGuard(file);
  return new QueueGuard();
}

async function main() {
  await scales.serve(port + 1, latencyMs);
  const journal = new Journal(os.tmpdir(), guardFor);
  await journal.open('meadow');
  await journal.open('orchard');

  const app = express();
  app.disable('x-powered-by');
  app.use((req, res, next) => {
    const end = duration.startTimer({ method: req.method });
    res.on('finish', () => end({ route: req.route ? req.route.path : 'none', code: res.statusCode }));
    next();
  });

  app.get('/health', (req, res) => res.json({ status: 'up' }));
  app.get('/metrics', async (req, res) => {
    res.type(prom.register.contentType).send(await prom.register.metrics());
  });
  app.get('/apiaries/:apiary/hives/:hive/weight', async (req, res, next) => {
    try {
      const { apiary, hive } = req.params;
      if (!journal.guards.has(apiary)) return res.status(404).json({ error: 'no such apiary' });
      const { grams } = await scales.weigh(port + 1, hive);
      if (variant === 'healthy') return res.json({ apiary, hive, grams });
      const noted = await journal.record(apiary, { hive, grams, at: Date.now() });
      return res.json({ apiary, hive, grams, ...noted });
    } catch (error) {
      return next(error);
    }
  });

  const server = app.listen(port, '127.0.0.1', 1024);
  server.keepAliveTimeout = 60000;
}

main();
