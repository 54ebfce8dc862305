'use strict';
// Stand-in of the veterinary laboratory that knows test results.
const http = require('node:http');

const LATENCY_MS = 260;

http
  .createServer((request, response) => {
    setTimeout(() => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ tag: request.url.split('/').pop().toUpperCase(), tb: 'clear', bvd: 'clear' }));
    }, LATENCY_MS);
  })
  .listen(Number(process.env.PORT) + 2, '127.0.0.1');
