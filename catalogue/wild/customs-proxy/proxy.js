const http = require('http');
const https = require('https');
const fs = require('fs');
const { fork } = require('child_process');
const prom = require('prom-client');

const variant = process.env.VARIANT || 'flawed';
const ca = fs.readFileSync(`${process.env.WILD_BUILD}/cert.pem`);
const agent = {
  flawed: () => new https.Agent({ ca, keepAlive: false, maxCachedSessions: 0 }),
  mended: () => new https.Agent({ ca, keepAlive: true, maxFreeSockets: 100, timeout: 50_000 }),
  healthy: () => new https.Agent({ ca, keepAlive: true, maxFreeSockets: 100, timeout: 50_000 }),
}[variant]();

prom.collectDefaultMetrics();
const outgoing = new prom.Histogram({
  name: 'http_client_request_duration_seconds',
  help: 'Requests to the authority',
  labelNames: ['host'],
  buckets: [0.05, 0.1, 0.2, 0.4, 0.8, 1.6],
});
const opened = new prom.Counter({ name: 'http_client_connections_opened_total', help: 'New connections to the authority' });

let port;
function declaration(mrn) {
  const done = outgoing.startTimer({ host: 'customs' });
  return new Promise((resolve, reject) => {
    const request = https.get({ host: '127.0.0.1', port, path: `/${mrn}`, agent, servername: 'localhost' }, (reply) => {
      const parts = [];
      reply.on('data', (part) => parts.push(part));
      reply.on('end', () => {
        done();
        resolve(Buffer.concat(parts).toString());
      });
    });
    request.on('socket', () => request.reusedSocket || opened.inc());
    request.setTimeout(20_000, () => request.destroy(new Error('authority timed out')));
    request.on('error', reject);
  });
}

async function handle(req, res) {
  if (req.url === '/metrics') {
    res.setHeader('Content-Type', prom.register.contentType);
    return res.end(await prom.register.metrics());
  }
  const mrn = req.url.match(/^\/declarations\/([0-9A-Z]{18})$/)?.[1];
  if (!mrn) return res.writeHead(400).end('an MRN has 18 letters and digits\n');
  try {
    const xml = await declaration(mrn);
    res.setHeader('Content-Type', 'application/json');
    res.end(JSON.stringify({ mrn, state: /<state>(\w+)</.exec(xml)[1] }));
  } catch (err) {
    res.writeHead(502).end(`${err.message}\n`);
  }
}

const authority = fork(`${__dirname}/authority.js`, [variant === 'healthy' ? '160' : '110']);
authority.once('message', (value) => {
  port = value;
  http.createServer(handle).listen(Number(process.argv[2]), '127.0.0.1');
});
