'use strict';
// Florists ask which delivery slots are left for a funeral; the courier's API knows.

const http = require('node:http');
const client = require('prom-client');
const { Courier } = require('./courier');

const port = Number(process.env.PORT);

client.collectDefaultMetrics();
const duration = new client.Histogram({
  name: 'http_request_duration_seconds',
  help: 'Time to answer a request',
  labelNames: ['method', 'route', 'code'],
  buckets: [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
});
const calls = new client.Counter({
  name: 'courier_requests_total',
  help: 'Requests sent to the courier',
  labelNames: ['result'],
});

const courier = new Courier({
  url: `http://127.0.0.1:${port + 1}`,
  variant: process.env.VARIANT,
  onCall: (result) => calls.inc({ result }),
});

const SURCHARGE = { morning: 6.5, noon: 4, afternoon: 4, evening: 9 };

function offer(wreath, slots) {
  const weight = wreath === 'large' ? 1.8 : 1;
  return slots.map(({ part, free }) => ({
    part,
    free,
    price: Math.round(100 * (11.9 + SURCHARGE[part]) * weight) / 100,
  }));
}

async function handle(url) {
  const match = /^\/chapels\/(\d{1,5})\/slots$/.exec(url.pathname);
  if (!match) return [404, { error: 'no such page' }];
  const wreath = url.searchParams.get('wreath') ?? 'small';
  try {
    const slots = await courier.slots(match[1]);
    return [200, { chapel: Number(match[1]), wreath, slots: offer(wreath, slots) }];
  } catch (error) {
    return [error.code === 'TIMEOUT' ? 504 : 502, { error: 'the courier does not answer' }];
  }
}

const server = http.createServer(async (req, res) => {
  const url = new URL(req.url, 'http://florist');
  if (url.pathname === '/metrics') {
    res.setHeader('content-type', client.register.contentType);
    return res.end(await client.register.metrics());
  }
  if (url.pathname === '/health') return res.end('ok');
  const end = duration.startTimer({ method: req.method, route: '/chapels/:id/slots' });
  const [status, body] = await handle(url);
  res.writeHead(status, { 'content-type': 'application/json' });
  res.end(JSON.stringify(body));
  end({ code: status });
});

server.listen(port, '127.0.0.1');
