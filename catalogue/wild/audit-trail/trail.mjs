// Consent service: shows what a person agreed to. The law wants a trace of each access to personal data.
import http from 'node:http';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const variant = process.env.VARIANT ?? 'flawed';
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'consent-'));
const file = path.join(dir, 'audit.log');
process.on('exit', () => fs.rmSync(dir, { recursive: true, force: true }));
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => process.exit(0));

class DurableLog {
  constructor(name) {
    this.fd = fs.openSync(name, 'a');
  }

  write(line) {
    fs.writeSync(this.fd, line + '\n');
    fs.fsyncSync(this.fd);
    return Promise.resolve();
  }
}

/** Collects the lines of a few milliseconds and makes them durable together, off the event loop. */
class GroupLog {
  constructor(name, everyMs = 10) {
    this.fd = fs.openSync(name, 'a');
    this.lines = [];
    this.waiting = [];
    this.every = everyMs;
    this.timer = null;
  }

  write(line) {
    this.lines.push(line);
    this.timer ??= setTimeout(() => this.flush(), this.every);
    return new Promise((resolve, reject) => this.waiting.push({ resolve, reject }));
  }

  flush() {
    const lines = this.lines.splice(0);
    const waiting = this.waiting.splice(0);
    this.timer = null;
    fs.write(this.fd, lines.join('\n') + '\n', (failed) => {
      if (failed) return waiting.forEach((w) => w.reject(failed));
      fs.fdatasync(this.fd, (err) => waiting.forEach((w) => (err ? w.reject(err) : w.resolve())));
    });
  }
}

const log = variant === 'flawed' ? new DurableLog(file) : new GroupLog(file, variant === 'healthy' ? 25 : 10);
const registryMs = variant === 'healthy' ? 150 : 100; // the national register
const PURPOSES = ['newsletter', 'profiling', 'sharing', 'research', 'geo', 'ads', 'calls', 'surveys'];

async function consents(person, trace) {
  await new Promise((resolve) => setTimeout(resolve, registryMs));
  const answer = {};
  const traces = PURPOSES.map((purpose, i) => {
    answer[purpose] = (person + i) % 3 !== 0;
    return log.write(`${new Date().toISOString()} ${trace} read ${person} ${purpose} ${answer[purpose]}`);
  });
  await Promise.all(traces);
  return answer;
}

let trace = 0;
http
  .createServer(async (req, res) => {
    const match = /^\/persons\/(\d+)\/consents$/.exec(req.url);
    if (!match) return res.writeHead(404).end();
    const answer = await consents(Number(match[1]), ++trace);
    const body = JSON.stringify(answer);
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
    res.end(body);
  })
  .listen(Number(process.argv[2]), '127.0.0.1');
