'use strict';

const http = require('node:http');
const client = require('prom-client');
const { Pool } = require('pg');
const { migrate } = require('./schema');

const port = Number(process.env.PORT);
const pool = new Pool({ max: 130 });
const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity });

client.collectDefaultMetrics();
const requestSeconds = new client.Histogram({
  name: 'http_request_duration_seconds',
  help: 'Duration of HTTP requests',
  labelNames: ['method', 'route', 'status_code'],
  buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
});
const querySeconds = new client.Histogram({
  name: 'db_query_duration_seconds',
  help: 'Duration of database queries',
  labelNames: ['query'],
  buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
});
for (const [state, read] of Object.entries({
  total: () => pool.totalCount,
  idle: () => pool.idleCount,
  waiting: () => pool.waitingCount,
})) {
  new client.Gauge({
    name: `pg_pool_${state}_count`,
    help: `Connection pool: ${state}`,
    collect() {
      this.set(read());
    },
  });
}

async function query(name, text, values) {
  const connection = await pool.connect();
  const stop = querySeconds.startTimer({ query: name });
  try {
    return (await connection.query({ name, text, values })).rows;
  } finally {
    stop();
    connection.release();
  }
}

function weather() {
  return new Promise((resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port: port + 1, path: '/now', agent }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => (body += chunk));
      response.on('end', () => resolve(JSON.parse(body)));
      response.on('error', reject);
    });
    request.on('error', reject);
  });
}

async function latest(hive) {
  const outside = await weather();
  const [about] = await query('hive', 'SELECT id, apiary, queen_year FROM hives WHERE id = $1', [hive]);
  if (!about) return null;
  const readings = await query(
    'latest_readings',
    'SELECT taken_at, weight_g, brood_temp FROM readings WHERE hive_id = $1 ORDER BY taken_at DESC LIMIT 10',
    [hive],
  );
  const gain = readings.length > 1 ? readings[0].weight_g - readings.at(-1).weight_g : 0;
  return { ...about, outside, gain, readings };
}

function send(res, status, body) {
  res.writeHead(status, { 'content-type': 'application/json' });
  res.end(JSON.stringify(body));
}

const server = http.createServer(async (req, res) => {
  if (req.url === '/metrics') {
    res.setHeader('content-type', client.register.contentType);
    res.end(await client.register.metrics());
    return;
  }
  const stop = requestSeconds.startTimer({ method: req.method });
  const match = /^\/hives\/(\d+)\/readings$/.exec(req.url);
  const route = match ? '/hives/:id/readings' : 'none';
  res.on('finish', () => stop({ route, status_code: res.statusCode }));
  if (!match) {
    send(res, 404, { error: 'not found' });
    return;
  }
  try {
    const found = await latest(Number(match[1]));
    send(res, found ? 200 : 404, found || { error: 'no such hive' });
  } catch (error) {
    console.error(error.message);
    send(res, 500, { error: 'internal error' });
  }
});
server.keepAliveTimeout = 75_000;

migrate(pool, process.env.VARIANT).then(() => {
  server.listen(port, '127.0.0.1', 1024, () => console.log(`hive-readings on ${port}`));
});
