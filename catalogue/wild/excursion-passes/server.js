'use strict';
// Tills of the excursion boats ask here whether a pass still has rides. They speak HTTP with a connection per request.

const crypto = require('node:crypto');
const http = require('node:http');
const { BalanceLoader } = require('./loader');

const port = Number(process.env.PORT);
const variant = process.env.VARIANT;
const loader = new BalanceLoader({ host: '127.0.0.1', port: port + 1, singly: variant === 'healthy' });

const { privateKey } = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 });
const RIDES = { harbour: 1, island: 2, sunset: 3 };
const PASS = /^\/passes\/([A-Z0-9-]{4,16})\/rides$/;

function send(res, status, body) {
  const text = JSON.stringify(body);
  res.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    connection: 'close',
  });
  res.end(text);
}

async function rides(pass, trip) {
  const balance = await loader.load(pass);
  const needed = RIDES[trip];
  const ticket = {
    pass,
    trip,
    left: balance.rides,
    admitted: balance.rides >= needed,
    validUntil: balance.validUntil,
  };
  const seal = crypto.sign('sha256', JSON.stringify(ticket), privateKey);
  return { ...ticket, seal: seal.toString('base64url') };
}

const server = http.createServer(async (req, res) => {
  const url = new URL(req.url, 'http://till');
  if (url.pathname === '/health') return send(res, 200, { ok: true });
  const match = PASS.exec(url.pathname);
  const trip = url.searchParams.get('trip') ?? 'harbour';
  if (req.method !== 'GET' || !match) return send(res, 404, { error: 'no such page' });
  if (!(trip in RIDES)) return send(res, 400, { error: 'no such trip' });
  try {
    send(res, 200, await rides(match[1], trip));
  } catch (error) {
    console.error('balance of %s: %s', match[1], error.message);
    send(res, 502, { error: 'the ledger does not answer' });
  }
});

server.keepAliveTimeout = 0;

const options = { port, host: '127.0.0.1' };
if (variant === 'flawed') {
  options.backlog = 4;
}
server.listen(options, () => console.log('listening on %d', port));

process.on('SIGTERM', () => {
  server.close();
  process.exit(0);
});
