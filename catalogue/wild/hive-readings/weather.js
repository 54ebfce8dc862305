'use strict';

const http = require('node:http');

const delayMs = process.env.VARIANT === 'healthy' ? 400 : 80;

const server = http.createServer((req, res) => {
  setTimeout(() => {
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify({ temperature: 17.5, wind: 3 }));
  }, delayMs);
});
server.keepAliveTimeout = 120_000;
server.listen(Number(process.env.PORT) + 1, '127.0.0.1', 1024);
