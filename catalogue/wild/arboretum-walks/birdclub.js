'use strict';

const http = require('node:http');

const PORT = Number(process.env.PORT || 8080) + 1;
const LATENCY_MS = process.env.VARIANT === 'healthy' ? 220 : 8;
const BIRDS = ['nuthatch', 'treecreeper', 'goldcrest', 'hawfinch', 'redstart'];

const server = http.createServer((req, res) => {
  const seed = req.url.length;
  const body = JSON.stringify(BIRDS.filter((_, i) => (seed + i) % 2 === 0).map((bird) => ({ bird, daysAgo: seed % 6 })));
  setTimeout(() => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
    res.end(body);
  }, LATENCY_MS);
});
server.keepAliveTimeout = 65_000;
server.listen(PORT, '127.0.0.1');
