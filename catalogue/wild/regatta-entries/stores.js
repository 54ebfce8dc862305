'use strict';
// Stand-ins of the eight entry stores.
const http = require('node:http');

const LATENCY_MS = process.env.VARIANT === 'healthy' ? 300 : 40;
const CLASSES = ['Finn', 'Laser', '470', 'Etchells'];

for (let store = 0; store < 8; store++) {
  const server = http.createServer((req, res) => {
    const [, , country, number] = req.url.split('/');
    setTimeout(() => {
      const entry = {
        sail: `${country} ${number}`,
        boat: `Boat ${number}`,
        class: CLASSES[Number(number) % CLASSES.length],
        handicap: 0.9 + (Number(number) % 23) / 100,
        paid: Number(number) % 5 !== 0,
      };
      const body = JSON.stringify(entry);
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
      res.end(body);
    }, LATENCY_MS);
  });
  server.keepAliveTimeout = 60_000;
  server.listen(Number(process.env.PORT) + 1 + store, '127.0.0.1');
}
