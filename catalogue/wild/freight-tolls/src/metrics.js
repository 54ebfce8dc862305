'use strict';

const client = require('prom-client');

client.collectDefaultMetrics();

const seconds = new client.Histogram({
  name: 'http_request_duration_seconds',
  help: 'Time to answer',
  labelNames: ['method', 'route', 'status_code'],
});

function measure(req, res, next) {
  const end = seconds.startTimer({ method: req.method });
  res.on('finish', () => end({ route: req.route ? req.route.path : 'none', status_code: res.statusCode }));
  next();
}

async function expose(req, res) {
  res.type(client.register.contentType).send(await client.register.metrics());
}

module.exports = { measure, expose };
