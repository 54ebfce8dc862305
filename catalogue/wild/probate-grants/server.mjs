// Probate grants: hands out grant numbers without gaps and enters each one in the national roll.
import http from 'node:http';
import { createHash } from 'node:crypto';
import { Mutex } from './mutex.mjs';

const PORT = Number(process.env.PORT);
const VARIANT = process.env.VARIANT ?? 'mended';
const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity });

class HttpError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function call(method, path, body) {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: PORT + 1, method, path, agent, timeout: 10_000 };
    const request = http.request(options, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => {
        if (response.statusCode >= 400) {
          reject(new HttpError(502, `national roll answered ${response.statusCode}`));
          return;
        }
        resolve(JSON.parse(Buffer.concat(chunks)));
      });
    });
    request.on('timeout', () => request.destroy(new HttpError(504, 'national roll timed out')));
    request.on('error', reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

class Register {
  #series = new Mutex();
  #next = 1;
  #grants = new Map();

  async issue(registry, estate) {
    const release = await this.#series.acquire();
    try {
      const grant = this.#number(registry, estate);
      if (VARIANT !== 'flawed') {
        release();
      }
      grant.entry = (await call('POST', '/entries', grant)).entry;
      return grant;
    } finally {
      release();
    }
  }

  #number(registry, estate) {
    const number = `${registry}-${String(this.#next).padStart(7, '0')}`;
    this.#next += 1;
    const grant = { number, estate, seal: createHash('sha256').update(`${number}/${estate}`).digest('hex').slice(0, 16) };
    this.#grants.set(number, grant);
    if (this.#grants.size > 2_000) {
      this.#grants.delete(this.#grants.keys().next().value);
    }
    return grant;
  }

  find(number) {
    const grant = this.#grants.get(number);
    if (!grant) {
      throw new HttpError(404, `no grant ${number}`);
    }
    return grant;
  }
}

const register = new Register();
let estates = 0;

async function route(url) {
  if (url.pathname === '/up') {
    return { up: true };
  }
  if (url.pathname === '/grants/next') {
    estates += 1;
    return register.issue(url.searchParams.get('registry') ?? 'LDS', url.searchParams.get('estate') ?? `E${estates}`);
  }
  if (url.pathname.startsWith('/grants/')) {
    return register.find(url.pathname.slice('/grants/'.length));
  }
  throw new HttpError(404, 'no such page');
}

const server = http.createServer(async (request, response) => {
  let status = 200;
  let body;
  try {
    body = await route(new URL(request.url, 'http://localhost'));
  } catch (error) {
    status = error.status ?? 500;
    body = { error: error.message };
  }
  const text = JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
});

server.keepAliveTimeout = 75_000;
server.listen(PORT, '127.0.0.1', 1024);
