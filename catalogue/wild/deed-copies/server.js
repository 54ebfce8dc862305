'use strict';
const http = require('node:http');
const prom = require('prom-client');
const { certify } = require('./copies');

prom.collectDefaultMetrics();
const durations = new prom.Histogram({
  name: 'http_request_duration_seconds',
  help: 'Duration of requests',
  labelNames: ['route', 'status'],
  buckets: [0.05, 0.1, 0.25, 0.3, 0.5, 1, 2.5, 5, 10],
});

async function handle(req, res) {
  if (req.url === '/metrics') {
    res.setHeader('content-type', prom.register.contentType);
    return res.end(await prom.register.metrics());
  }
  const deed = /^\/deeds\/(\d+)\/copy$/.exec(req.url)?.[1];
  if (!deed) return res.writeHead(404).end();
  const stop = durations.startTimer({ route: '/deeds/:deed/copy' });
  try {
    const copy = await certify(Number(deed));
    res.writeHead(200, { 'content-type': 'application/json' }).end(`${JSON.stringify(copy)}\n`);
  } catch (error) {
    console.error(error.message);
    res.writeHead(502).end();
  }
  stop({ status: res.statusCode });
}

http.createServer(handle).listen(Number(process.argv[2]), '127.0.0.1', 511);
