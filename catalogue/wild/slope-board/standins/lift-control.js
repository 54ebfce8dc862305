'use strict';
// Stand-in of the lift control: a PLC gateway with two lines, 200 ms a query.
const http = require('node:http');
const LINES = 2;
const QUERY_MS = 200;
const NAMES = ['Hornbahn', 'Seekar', 'Rosskopf', 'Alpenrose', 'Kanzel', 'Gratlift', 'Zirben', 'Talbahn'];
const waiting = [];
let busy = 0;

function next() {
  if (busy === LINES || waiting.length === 0) return;
  busy += 1;
  const answer = waiting.shift();
  setTimeout(() => {
    busy -= 1;
    answer();
    next();
  }, QUERY_MS);
}

http
  .createServer((req, res) => {
    waiting.push(() => {
      const minute = Math.floor(Date.now() / 60_000);
      const lifts = NAMES.map((name, n) => ({ name, open: n !== 6, waitMinutes: (minute + 3 * n) % 12 }));
      res.setHeader('content-type', 'application/json');
      res.end(JSON.stringify(lifts));
    });
    next();
  })
  .listen(Number(process.argv[2]), '127.0.0.1');
