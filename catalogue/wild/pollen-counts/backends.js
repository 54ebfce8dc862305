'use strict';
// Stand-ins of the licence register and of the archive of counts.
const http = require('node:http');

const PORT = Number(process.env.PORT);
const ARCHIVE_MS = process.env.VARIANT === 'healthy' ? 300 : 40;

function reply(res, value) {
  const body = JSON.stringify(value);
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  res.end(body);
}

const register = http.createServer((req, res) => {
  setTimeout(() => reply(res, { peer: decodeURIComponent(req.url.split('/').pop()), licensed: true }), 15);
});

const archive = http.createServer((req, res) => {
  const [, station, pollen] = req.url.split('/');
  setTimeout(() => {
    const seed = station.length * 7 + pollen.length * 3;
    const hours = Array.from({ length: 24 }, (_, hour) => ({ hour, grains: (seed * (hour + 5)) % 190 }));
    reply(res, { station, pollen, hours });
  }, ARCHIVE_MS);
});

register.keepAliveTimeout = 0;
archive.keepAliveTimeout = 0;
register.listen(PORT + 1, '127.0.0.1');
archive.listen(PORT + 2, '127.0.0.1');
