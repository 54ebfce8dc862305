'use strict';
// Stand-in for the bank's feed: it works on one request at a time, 300 ms each, and queues the others.
const http = require('node:http');

const queue = [];
let busy = 0;

function next() {
  while (busy < 1 && queue.length) {
    const res = queue.shift();
    busy++;
    setTimeout(() => {
      busy--;
      res.setHeader('content-type', 'application/json');
      res.end(JSON.stringify({ base: 'EUR', USD: 1.0814, NOK: 11.722, SEK: 11.301, at: Date.now() }));
      next();
    }, 300);
  }
}

const server = http.createServer((req, res) => {
  queue.push(res);
  next();
});
server.listen(0, '127.0.0.1', () => process.send(server.address().port));
process.on('disconnect', () => process.exit(0));
