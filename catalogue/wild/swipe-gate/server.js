'use strict';

const http = require('node:http');

const config = require('./lib/config');
const badges = require('./lib/badges');
const log = require('./lib/log');
const { Directory } = require('./lib/directory');

const directory = new Directory(config.directory);
const counts = { opened: 0, refused: 0 };

function send(res, status, body) {
  const text = JSON.stringify(body);
  res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
  res.end(text);
}

async function swipe(door, params) {
  const badge = badges.parse(params.get('badge'));
  if (!badge) return [400, { error: 'no such badge' }];
  const holder = await directory.holder(badge);
  const open = holder.active;
  counts[open ? 'opened' : 'refused'] += 1;
  return [200, { door, open, zone: badge.zone, staff: holder.staff, receipt: badges.codeOf(badge.number) }];
}

async function handle(req, res) {
  const begun = process.hrtime.bigint();
  if (config.closeAfterAnswer) res.setHeader('Connection', 'close');
  const { pathname, searchParams } = new URL(req.url, 'http://gate');
  if (pathname === '/health') return send(res, 200, { status: 'ok' });
  if (pathname === '/counts') return send(res, 200, { site: config.site, ...counts });
  const door = /^\/swipe\/([a-z0-9-]+)$/.exec(pathname);
  if (!door) return send(res, 404, { error: 'not found' });
  const [status, body] = await swipe(door[1], searchParams);
  send(res, status, body);
  log.info('swipe', { door: door[1], status, ms: Number((process.hrtime.bigint() - begun) / 1000n) / 1000 });
}

const server = http.createServer((req, res) => {
  handle(req, res).catch((error) => {
    log.info('failed', { error: error.message });
    if (!res.headersSent) send(res, 500, { error: 'internal' });
  });
});

server.listen({ host: config.host, port: config.port, backlog: config.backlog }, () => {
  log.info('gate is open', { port: config.port, site: config.site });
});
process.on('SIGTERM', () => process.exit(0));
