import { fork } from 'node:child_process';
import Fastify from 'fastify';
import { Gauge, Histogram, collectDefaultMetrics, register } from 'prom-client';

const port = Number(process.argv[2]);
const variant = process.env.VARIANT ?? 'flawed';
const [places, ms] = { flawed: [10, 200], mended: [120, 200], healthy: [120, 300] }[variant];
const station = fork(new URL('./station.js', import.meta.url), [port + 1, places, ms]);
station.on('exit', () => process.exit(1));

collectDefaultMetrics();
const outgoing = new Histogram({
  name: 'outgoing_http_request_duration_seconds',
  help: 'Calls of other services',
  labelNames: ['peer', 'status'],
  buckets: [0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.3, 2],
});
const open = new Gauge({ name: 'outgoing_http_requests_open', help: 'Calls under way', labelNames: ['peer'] });
const incoming = new Histogram({
  name: 'http_request_duration_seconds',
  help: 'Requests of users',
  labelNames: ['route', 'status'],
  buckets: [0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.3, 2],
});

async function forecast(place) {
  const stop = outgoing.startTimer({ peer: 'met' });
  open.inc({ peer: 'met' });
  try {
    const reply = await fetch(`http://127.0.0.1:${port + 1}/point/${place}`);
    stop({ status: reply.status });
    return await reply.json();
  } finally {
    open.dec({ peer: 'met' });
  }
}

const app = Fastify();

app.addHook('onResponse', async (request, reply) => {
  incoming.observe({ route: request.routeOptions.url ?? 'none', status: reply.statusCode }, reply.elapsedTime / 1000);
});

app.get('/weather/:place', async (request) => {
  const { place } = request.params;
  const now = await forecast(place);
  return { place, ...now, advice: now.symbol === 'rain' ? 'bring an umbrella' : 'enjoy' };
});

app.get('/metrics', async (request, reply) => {
  reply.type(register.contentType);
  return register.metrics();
});

await app.listen({ host: '127.0.0.1', port });
