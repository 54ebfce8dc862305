'use strict';

const express = require('express');
const pino = require('pino');

const config = require('./config');
const { publish } = require('./publish');
const { PublishedTable, WatchedTable } = require('./table');
const { discount } = require('./obu');
const { measure, expose } = require('./metrics');

const log = pino({ level: process.env.LOG_LEVEL || 'info' });
publish(config.table, config.stretches);
const table = config.reload === 'always' ? new PublishedTable(config.table) : new WatchedTable(config.table, log);

const app = express();
app.disable('x-powered-by');
app.use(measure);
app.get('/health', (req, res) => res.json({ status: 'ok' }));
app.get('/metrics', expose);

app.get('/tolls/:stretch', async (req, res, next) => {
  try {
    const axles = Number(req.query.axles || 2);
    const emission = String(req.query.class || 'euro6');
    if (!Number.isInteger(axles) || axles < 2 || axles > 12) {
      res.status(400).json({ error: 'axles' });
      return;
    }
    const off = await discount(axles, config.obuWaitMs);
    const stretch = table.stretch(req.params.stretch);
    if (!stretch || !(emission in stretch.cents)) {
      res.status(404).json({ error: 'no such stretch or class' });
      return;
    }
    const cents = stretch.km * stretch.cents[emission] * (axles / 2) * (1 - off);
    log.debug({ stretch: stretch.id, cents }, 'toll');
    res.json({ stretch: stretch.id, from: stretch.from, to: stretch.to, km: stretch.km, cents: Math.round(cents) });
  } catch (error) {
    next(error);
  }
});

app.use((error, req, res, next) => {
  log.error({ err: error }, 'failed');
  if (res.headersSent) next(error);
  else res.status(500).json({ error: 'internal' });
});

const server = app.listen(config.port, '127.0.0.1', () => log.info({ port: config.port }, 'tolls'));
server.keepAliveTimeout = 65000;
process.on('SIGTERM', () => process.exit(0));
