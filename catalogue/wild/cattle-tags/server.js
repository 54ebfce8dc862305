'use strict';
// Cattle passports by ear tag, for auction marts.
const http = require('node:http');
const prom = require('prom-client');
const register = require('./register');

const PORT = Number(process.env.PORT);
const WITH_TESTS = process.env.VARIANT === 'healthy';
const labAgent = new http.Agent({ keepAlive: true, maxSockets: 256 });

prom.collectDefaultMetrics();
const seconds = new prom.Histogram({
  name: 'http_request_duration_seconds',
  help: 'Duration of HTTP requests in seconds',
  labelNames: ['method', 'route', 'status_code'],
  buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
});
new prom.Gauge({
  name: 'pg_pool_clients',
  help: 'Clients of the PostgreSQL pool',
  labelNames: ['state'],
  collect() {
    this.set({ state: 'total' }, register.pool.totalCount);
    this.set({ state: 'idle' }, register.pool.idleCount);
    this.set({ state: 'waiting' }, register.pool.waitingCount);
  },
});

function testsOf(tag) {
  return new Promise((resolve, reject) => {
    const call = http.get({ port: PORT + 2, host: '127.0.0.1', path: `/animals/${tag}`, agent: labAgent }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (part) => (text += part));
      answer.on('end', () => resolve(JSON.parse(text)));
    });
    call.on('error', reject);
  });
}

async function passport(tag) {
  const animal = await register.find(tag);
  if (!animal) return [404, { error: 'no such ear tag' }];
  return [200, WITH_TESTS ? { ...animal, tests: await testsOf(tag) } : animal];
}

function send(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

const server = http.createServer(async (request, response) => {
  if (request.url === '/health') return send(response, 200, { status: 'up' });
  if (request.url === '/metrics') {
    response.setHeader('content-type', prom.register.contentType);
    return response.end(await prom.register.metrics());
  }
  const match = /^\/passports\/([\w-]+)$/.exec(request.url);
  if (!match) return send(response, 404, { error: 'not found' });
  const stop = seconds.startTimer({ method: request.method, route: '/passports/:tag' });
  let [status, body] = [500, { error: 'register unavailable' }];
  try {
    [status, body] = await passport(match[1]);
  } catch (error) {
    console.error(error.message);
  }
  send(response, status, body);
  stop({ status_code: status });
});

server.keepAliveTimeout = 65_000;
server.listen(PORT, '0.0.0.0');
