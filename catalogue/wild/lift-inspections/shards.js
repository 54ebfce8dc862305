'use strict';

// Stand-ins of the six shards that hold the records of lifts.
const http = require('node:http');

const PORT = Number(process.env.PORT);
const DELAY_MS = process.env.VARIANT === 'healthy' ? 140 : 40;
const TYPES = ['passenger', 'passenger', 'goods', 'hoist'];

function record(number, shard) {
  const digits = Number(number.slice(4));
  const inspected = new Date(Date.UTC(2024 + (digits % 3), digits % 12, 1 + (digits % 28)));
  return { number, shard, type: TYPES[digits % TYPES.length], floors: 2 + (digits % 19), inspected };
}

for (let shard = 0; shard < 6; shard++) {
  const server = http.createServer((req, res) => {
    setTimeout(() => {
      const body = JSON.stringify(record(req.url.split('/').pop(), shard));
      res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
      res.end(body);
    }, DELAY_MS);
  });
  server.keepAliveTimeout = 60_000;
  server.listen(PORT + 1 + shard, '127.0.0.1', 512);
}
