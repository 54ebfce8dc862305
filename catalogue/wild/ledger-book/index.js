'use strict';
const express = require('express');
const { Pool } = require('pg');
const { collectDefaultMetrics, register, Gauge, Histogram } = require('prom-client');

const variant = process.env.VARIANT || 'flawed';

const db = new Pool(
  variant === 'flawed'
    ? { max: 4, idleTimeoutMillis: 30_000 }
    : { max: 90, idleTimeoutMillis: 30_000 },
);
db.on('error', (err) => console.error('idle client', err.message));

collectDefaultMetrics({ prefix: 'ledger_' });
new Gauge({ name: 'ledger_pg_clients', help: 'Clients of the pool', collect() { this.set(db.totalCount); } });
new Gauge({ name: 'ledger_pg_idle_clients', help: 'Idle clients', collect() { this.set(db.idleCount); } });
new Gauge({ name: 'ledger_pg_waiting', help: 'Callers waiting for a client', collect() { this.set(db.waitingCount); } });
const queryTime = new Histogram({
  name: 'ledger_statement_seconds',
  help: 'Time to build a statement',
  buckets: [0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
});

const archiveMs = variant === 'healthy' ? 220 : 120;
const STATEMENT = `
  SELECT carried_forward($1, $2) AS carried, count(*)::int AS entries, coalesce(sum(cents), 0)::bigint AS turnover,
         max(booked) AS latest
  FROM entry WHERE account = $1`;

const app = express();

app.get('/accounts/:id/statement', async (req, res, next) => {
  const account = Number.parseInt(req.params.id, 10);
  if (Number.isNaN(account)) return res.status(400).json({ error: 'account must be a number' });
  const stop = queryTime.startTimer();
  try {
    const { rows } = await db.query(STATEMENT, [account, archiveMs]);
    const { carried, entries, turnover, latest } = rows[0];
    res.json({ account, entries, latest, balance: Number(carried) + Number(turnover) });
  } catch (err) {
    next(err);
  } finally {
    stop();
  }
});

app.get('/healthz', (req, res) => res.send('ok'));
app.get('/metrics', async (req, res) => res.type(register.contentType).send(await register.metrics()));

app.use((err, req, res, next) => {
  console.error(err.message);
  res.status(500).json({ error: 'internal error' });
});

app.listen(Number(process.argv[2]), '127.0.0.1');
