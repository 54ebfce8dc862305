'use strict';
// Stand-in of the archive, a remote server.
const http = require('node:http');
const ANSWER_MS = process.env.VARIANT === 'healthy' ? 400 : 250;
const scan = Buffer.alloc(192 * 192);
for (let at = 0; at < scan.length; at += 1) scan[at] = (at * 31) % 251;
http
  .createServer((req, res) => {
    setTimeout(() => {
      res.setHeader('content-type', 'application/octet-stream');
      res.end(scan);
    }, ANSWER_MS);
  })
  .listen(Number(process.argv[2]), '127.0.0.1');
