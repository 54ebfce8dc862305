'use strict';
// Free pitches of campsites, gathered from the booking systems.
const http = require('node:http');
const settings = require('./settings');
const { Gateway } = require('./gateway');

const gateways = settings.systems.map((system) => new Gateway(system, settings));

async function offers(region, nights) {
  const found = await Promise.all(gateways.map((gateway) => gateway.pitches(region, nights)));
  const pitches = found.flat().sort((a, b) => a.total - b.total || a.site.localeCompare(b.site));
  return { region, nights, count: pitches.length, pitches };
}

function send(response, status, body) {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

const server = http.createServer(async (request, response) => {
  const url = new URL(request.url, 'http://localhost');
  if (url.pathname === '/health') return send(response, 200, { status: 'up' });
  const match = /^\/offers\/([a-z-]+)$/.exec(url.pathname);
  const nights = Number(url.searchParams.get('nights') ?? 1);
  if (!match) return send(response, 404, { error: 'not found' });
  if (!Number.isInteger(nights) || nights < 1 || nights > 28) return send(response, 400, { error: 'nights is 1 to 28' });
  try {
    send(response, 200, await offers(match[1], nights));
  } catch (error) {
    console.error(error.message);
    send(response, 502, { error: 'booking system unavailable' });
  }
});

server.keepAliveTimeout = 65_000;
server.listen(settings.port, '0.0.0.0');
