'use strict';

const http = require('node:http');
const zlib = require('node:zlib');
const { promisify } = require('node:util');
const { walks, trees, treesOf, legend } = require('./garden');
const { sightingsNear } = require('./sightings');

const PORT = Number(process.env.PORT || 8080);
const VARIANT = process.env.VARIANT || 'flawed';
const brotli = promisify(zlib.brotliCompress);

const routes = [];

function get(pattern, handler) {
  const names = [];
  const source = pattern.replace(/:(\w+)/g, (_, name) => {
    names.push(name);
    return '([^/]+)';
  });
  routes.push({ regexp: new RegExp(`^${source}$`), names, handler });
}

class NotFound extends Error {}

function sendJson(res, status, body) {
  const text = Buffer.from(JSON.stringify(body));
  res.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': text.length,
  });
  res.end(text);
}

function findWalk(slug) {
  const walk = walks.get(slug);
  if (!walk) throw new NotFound(`no walk called ${slug}`);
  return walk;
}

const packOptions = { params: { [zlib.constants.BROTLI_PARAM_SIZE_HINT]: 16 * 1024 } };
if (VARIANT !== 'flawed') {
  packOptions.params[zlib.constants.BROTLI_PARAM_QUALITY] = 4;
}

get('/healthz', async (req, res) => sendJson(res, 200, { status: 'ok' }));

get('/trees/:id', async (req, res, { id }) => {
  const tree = trees.get(Number(id));
  if (!tree) throw new NotFound(`no tree numbered ${id}`);
  const sightings = await sightingsNear(tree);
  sendJson(res, 200, { ...tree, sightings });
});

get('/walks/:slug', async (req, res, { slug }) => {
  const walk = findWalk(slug);
  const stops = treesOf(walk);
  const sightings = await sightingsNear(stops[0]);
  sendJson(res, 200, {
    slug: walk.slug,
    title: walk.title,
    minutes: walk.minutes,
    stops: stops.slice(0, 12).map(({ id, name, bed }) => ({ id, name, bed })),
    sightings,
  });
});

get('/walks/:slug/pack', async (req, res, { slug }) => {
  const walk = findWalk(slug);
  const stops = treesOf(walk);
  const sightings = await sightingsNear(stops[0]);
  const content = JSON.stringify({ walk, stops, legend, sightings, packedAt: new Date().toISOString() });
  const pack = await brotli(content, packOptions);
  res.writeHead(200, {
    'content-type': 'application/vnd.arboretum.pack',
    'content-length': pack.length,
    'content-disposition': `attachment; filename="${walk.slug}.pack"`,
  });
  res.end(pack);
});

const server = http.createServer(async (req, res) => {
  const { pathname } = new URL(req.url, 'http://arboretum.local');
  try {
    for (const { regexp, names, handler } of routes) {
      const match = regexp.exec(pathname);
      if (!match) continue;
      const params = Object.fromEntries(names.map((name, i) => [name, decodeURIComponent(match[i + 1])]));
      await handler(req, res, params);
      return;
    }
    throw new NotFound('no such page');
  } catch (error) {
    if (error instanceof NotFound) return sendJson(res, 404, { error: error.message });
    console.error(error);
    sendJson(res, 500, { error: 'internal error' });
  }
});

server.keepAliveTimeout = 65_000;
server.listen(PORT, () => console.log(`arboretum-walks on ${PORT}`));

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => process.exit(0));
}
