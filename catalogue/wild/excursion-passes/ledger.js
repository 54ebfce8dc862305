'use strict';
// Stand-in of the ledger of passes.

const http = require('node:http');

const port = Number(process.env.PORT) + 1;
const latencyMs = process.env.VARIANT === 'healthy' ? 300 : 80;

http
  .createServer((req, res) => {
    const passes = new URL(req.url, 'http://ledger').searchParams.get('passes').split(',');
    const found = Object.fromEntries(
      passes.map((pass) => [pass, { rides: pass.length % 5, validUntil: '2027-03-31' }]),
    );
    setTimeout(() => {
      res.setHeader('content-type', 'application/json');
      res.end(JSON.stringify(found));
    }, latencyMs);
  })
  .listen(port, '127.0.0.1', 511);
