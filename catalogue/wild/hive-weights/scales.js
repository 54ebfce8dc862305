'use strict';

const http = require('node:http');

function serve(port, latencyMs) {
  const server = http.createServer((req, res) => {
    const hive = decodeURIComponent(req.url.split('/').pop());
    const grams = 18000 + ([...hive].reduce((sum, c) => sum + c.charCodeAt(0), 0) * 37) % 24000;
    setTimeout(() => {
      res.setHeader('content-type', 'application/json');
      res.end(JSON.stringify({ hive, grams }));
    }, latencyMs);
  });
  server.keepAliveTimeout = 60000;
  return new Promise((resolve) => server.listen(port, '127.0.0.1', 1024, resolve));
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 512, maxFreeSockets: 512 });

function weigh(port, hive) {
  return new Promise((resolve, reject) => {
    http
      .get({ host: '127.0.0.1', port, path: `/scales/${encodeURIComponent(hive)}`, agent }, (res) => {
        let body = '';
        res.setEncoding('utf8');
        res.on('data', (chunk) => { body += chunk; });
        res.on('end', () => resolve(JSON.parse(body)));
      })
      .on('error', reject);
  });
}

module.exports = { serve, weigh };
