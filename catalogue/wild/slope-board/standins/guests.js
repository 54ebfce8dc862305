'use strict';
// Stand-in of the guests' service.
const http = require('node:http');
const ANSWER_MS = process.env.VARIANT === 'healthy' ? 150 : 60;
http
  .createServer((req, res) => {
    setTimeout(() => {
      res.setHeader('content-type', 'application/json');
      res.end(JSON.stringify({ language: 'de', favourites: ['Seekar'] }));
    }, ANSWER_MS);
  })
  .listen(Number(process.argv[2]), '127.0.0.1');
