'use strict';
const crypto = require('node:crypto');
const http = require('node:http');
const { LineDirectory } = require('./directory');

const port = Number(process.env.PORT || 8080);
const variant = process.env.VARIANT || 'mended';

const profiles = {
  flawed: { sessions: 3, legacyFirmware: true, liveBalance: false },
  mended: { sessions: 3, legacyFirmware: false, liveBalance: false },
  healthy: { sessions: 16, legacyFirmware: false, liveBalance: true },
};
const profile = profiles[variant];

const directory = new LineDirectory({ host: '127.0.0.1', port: port + 1, sessions: profile.sessions });
const issuer = new http.Agent({ keepAlive: true, maxSockets: 256 });

const programmes = [
  { code: 'C30', title: 'Cotton 30', tokens: 3, minutes: 42 },
  { code: 'C60', title: 'Cotton 60', tokens: 4, minutes: 68 },
  { code: 'W20', title: 'Wool 20', tokens: 3, minutes: 35 },
  { code: 'DRY', title: 'Tumble dry', tokens: 2, minutes: 25 },
];

const ledger = new Map();
for (let card = 1; card <= 2000; card += 1) {
  ledger.set(String(card), { tokens: (card * 7) % 40, lastWash: null });
}

function issuerBalance(card) {
  return new Promise((resolve, reject) => {
    const request = http.get(
      { host: '127.0.0.1', port: port + 2, path: `/cards/${card}`, agent: issuer },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8');
        answer.on('data', (part) => { text += part; });
        answer.on('end', () => resolve(JSON.parse(text).tokens));
      },
    );
    request.on('error', reject);
  });
}

async function cardView(card, terminal) {
  const entry = ledger.get(card);
  if (!entry) return null;
  const tokens = profile.liveBalance ? await issuerBalance(card) : entry.tokens;
  const affordable = programmes.filter((each) => each.tokens <= tokens);
  const body = { card, site: terminal.site, tariff: terminal.tariff, tokens, affordable };
  body.seal = crypto.createHmac('sha256', terminal.site).update(JSON.stringify(body)).digest('hex').slice(0, 24);
  return body;
}

function send(res, status, body) {
  const text = JSON.stringify(body);
  res.statusCode = status;
  res.setHeader('Content-Type', 'application/json');
  res.setHeader('Content-Length', Buffer.byteLength(text));
  if (profile.legacyFirmware) {
    res.setHeader('Connection', 'close');
  }
  res.end(text);
}

async function handle(req, res) {
  const path = req.url.split('?')[0];
  if (path === '/health') return send(res, 200, { status: 'ok' });
  if (path === '/programmes') return send(res, 200, programmes);

  const terminal = await req.socket.terminal;
  const match = /^\/cards\/(\d+)$/.exec(path);
  if (match && req.method === 'GET') {
    const view = await cardView(match[1], terminal);
    return view ? send(res, 200, view) : send(res, 404, { error: 'unknown card' });
  }
  return send(res, 404, { error: 'not found' });
}

const server = http.createServer((req, res) => {
  handle(req, res).catch((error) => {
    console.error(`${req.method} ${req.url}: ${error.message}`);
    send(res, 502, { error: 'upstream' });
  });
});
server.keepAliveTimeout = 75_000;

// Every terminal dials in through the sites' shared router, so a line is told apart by its address and port.
server.on('connection', (socket) => {
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.terminal = directory.whois(socket.remoteAddress, socket.remotePort);
  socket.terminal.catch(() => socket.destroy());
});

directory.open().then(() => {
  server.listen(port, '0.0.0.0', 511, () => console.log(`laundry tokens on ${port}`));
});
