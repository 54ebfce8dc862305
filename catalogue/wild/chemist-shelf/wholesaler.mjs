// Stand-in of the wholesaler's stock service.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const PLANS = { flawed: { desks: 4, ms: 20 }, mended: { desks: 4, ms: 20 }, healthy: { desks: 1000, ms: 160 } };
const plan = PLANS[process.env.VARIANT];
const QUEUE = 300;
const queue = [];
let busy = 0;

function answer(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

async function work() {
  busy += 1;
  while (queue.length > 0) {
    const { pzn, response } = queue.shift();
    await sleep(plan.ms);
    answer(response, 200, { pzn, packs: Number(pzn) % 23, depot: `D${Number(pzn) % 5}` });
  }
  busy -= 1;
}

const server = http.createServer((request, response) => {
  queue.push({ pzn: request.url.split('/').pop(), response });
  if (queue.length > QUEUE) answer(queue.shift().response, 503, { error: 'busy' });
  if (busy < plan.desks) work();
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.env.PORT) + 1, '127.0.0.1', 1024);
