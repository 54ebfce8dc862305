'use strict';
const http = require('node:http');
const { TtlCache, RefreshingCache } = require('./cache');
const { liftStates } = require('./lifts');
const { guestOf } = require('./guests');
const { render } = require('./board');

const BOARD_TTL_MS = 2000; // the displays poll; two seconds are what the lift staff agreed to
const Cache = (process.env.VARIANT || 'flawed') === 'flawed' ? TtlCache : RefreshingCache;
const lifts = new Cache(liftStates, BOARD_TTL_MS);

async function board(area, req) {
  const guest = await guestOf(req.headers['x-ski-pass'] ?? 'anonymous');
  return render(area, await lifts.get(area), guest);
}

const server = http.createServer(async (req, res) => {
  const [, kind, area] = req.url.split('?')[0].split('/');
  try {
    if (kind !== 'boards' || !['north', 'glacier', 'village'].includes(area)) {
      res.writeHead(404).end();
      return;
    }
    const html = await board(area, req);
    res.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-length': Buffer.byteLength(html) });
    res.end(html);
  } catch (error) {
    console.error(`${req.url}: ${error.message}`);
    res.writeHead(502).end('the board is not available\n');
  }
});
server.listen(Number(process.argv[2]), '127.0.0.1', 511);
