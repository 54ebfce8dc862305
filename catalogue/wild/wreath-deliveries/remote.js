'use strict';
// Stand-in of the courier: a few dispatchers, each busy with one inquiry at a time, and a line in front of them.

const http = require('node:http');

const healthy = process.env.VARIANT === 'healthy';
const dispatchers = healthy ? 256 : 8;
const inquiryMs = healthy ? 250 : 40;
const lineLength = 160;

const body = JSON.stringify({
  slots: [
    { part: 'morning', free: 3 },
    { part: 'noon', free: 1 },
    { part: 'afternoon', free: 5 },
    { part: 'evening', free: 2 },
  ],
});
const line = [];
let busy = 0;

function next() {
  while (busy < dispatchers && line.length > 0) {
    const res = line.shift();
    busy++;
    setTimeout(() => {
      busy--;
      res.setHeader('content-type', 'application/json');
      res.end(body);
      next();
    }, inquiryMs);
  }
}

http
  .createServer((req, res) => {
    if (line.length >= lineLength) {
      res.statusCode = 503;
      return res.end();
    }
    line.push(res);
    next();
  })
  .listen(Number(process.env.PORT) + 1, '127.0.0.1');
