'use strict';

const http = require('node:http');
const { setTimeout: sleep } = require('node:timers/promises');

const firstPort = Number(process.env.PORT) + 1;
const healthy = process.env.VARIANT === 'healthy';
const readers = healthy ? Infinity : 4;
const readMs = healthy ? 250 : 40;

function openStore(number) {
  const waiting = [];
  let busy = 0;

  async function read(id) {
    if (busy >= readers) await new Promise((resolve) => waiting.push(resolve));
    else busy += 1;
    await sleep(readMs);
    if (waiting.length) waiting.shift()();
    else busy -= 1;
    return { id, store: number, bay: (id * 7) % 90, weightKg: 20 + (id % 180) };
  }

  const server = http.createServer(async (req, res) => {
    const record = await read(Number(req.url.split('/').pop()));
    res.setHeader('content-type', 'application/json');
    res.end(JSON.stringify(record));
  });
  server.keepAliveTimeout = 120_000;
  server.listen(firstPort + number, '127.0.0.1');
}

for (let number = 0; number < 5; number += 1) openStore(number);
