'use strict';
const https = require('node:https');
const fs = require('node:fs');
const prom = require('prom-client');

prom.collectDefaultMetrics();
const connections = new prom.Counter({ name: 'origin_tls_connections_total', help: 'TLS handshakes' });
const requests = new prom.Histogram({
  name: 'origin_request_duration_seconds',
  help: 'Time in the handler',
  buckets: [0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1],
});

const build = process.env.WILD_BUILD;
const crmMs = process.env.VARIANT === 'healthy' ? 200 : 120;
const options = {
  key: fs.readFileSync(`${build}/origin.key`),
  cert: fs.readFileSync(`${build}/origin.crt`),
  keepAliveTimeout: 75_000, // longer than nginx keeps idle connections
};

const server = https.createServer(options, async (req, res) => {
  if (req.url === '/metrics') {
    res.setHeader('content-type', prom.register.contentType);
    return res.end(await prom.register.metrics());
  }
  const stop = requests.startTimer();
  const customer = /^\/customers\/(\d+)$/.exec(req.url)?.[1];
  if (!customer) {
    res.statusCode = 404;
    return res.end('not found\n');
  }
  setTimeout(() => { // the CRM
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify({ customer: Number(customer), segment: ['A', 'B', 'C'][customer % 3], since: 2009 }));
    stop();
  }, crmMs);
});
server.on('secureConnection', () => connections.inc());
server.listen(Number(process.argv[2]), '127.0.0.1', 512);
