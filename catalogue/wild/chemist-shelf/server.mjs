// Which medicines a chemist can have by the next delivery.
import http from 'node:http';
import * as metrics from './metrics.mjs';
import { stockOf } from './stock.mjs';

const FORMS = ['tablets', 'drops', 'ointment', 'inhaler', 'syrup'];
const ROUNDS = ['07:30', '11:00', '14:30', '17:45'];

function json(response, status, body) {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length });
  response.end(bytes);
  return status;
}

async function availability(pzn, response) {
  if (!/^\d{7,8}$/.test(pzn)) return json(response, 400, { error: 'a PZN has seven or eight digits' });
  try {
    const stock = await stockOf(pzn);
    return json(response, 200, {
      pzn,
      form: FORMS[Number(pzn) % FORMS.length],
      packs: stock.packs,
      delivery: stock.packs > 0 ? ROUNDS[Number(stock.depot.slice(1)) % ROUNDS.length] : null,
    });
  } catch (error) {
    return json(response, error.status ?? 502, { error: error.message });
  }
}

const server = http.createServer(async (request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost');
  if (pathname === '/metrics') {
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
    response.end(metrics.text());
    return;
  }
  if (pathname === '/health') {
    json(response, 200, { status: 'ok' });
    return;
  }
  const began = performance.now();
  metrics.begin();
  const match = pathname.match(/^\/medicines\/([^/]+)\/availability$/);
  const route = match ? '/medicines/:pzn/availability' : 'none';
  const status = match ? await availability(match[1], response) : json(response, 404, { error: 'not found' });
  metrics.end(route, status, (performance.now() - began) / 1000);
});
server.keepAliveTimeout = 75_000;
server.listen(Number(process.env.PORT), '127.0.0.1', 1024);
