'use strict';
// Calls to one booking system.
const http = require('node:http');

class Gateway {
  constructor({ name, port }, { callsAtOnce, patienceMs }) {
    this.name = name;
    this.port = port;
    this.free = callsAtOnce;
    this.patienceMs = patienceMs;
    this.waiting = [];
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 512 });
  }

  async pitches(region, nights) {
    if (!(await this.enter())) return [];
    try {
      return await this.get(`/regions/${region}/pitches?nights=${nights}`);
    } finally {
      this.leave();
    }
  }

  enter() {
    if (this.free > 0) {
      this.free -= 1;
      return true;
    }
    return new Promise((resolve) => {
      const waiter = { resolve };
      waiter.timer = setTimeout(() => {
        this.waiting.splice(this.waiting.indexOf(waiter), 1);
        resolve(false);
      }, this.patienceMs);
      this.waiting.push(waiter);
    });
  }

  leave() {
    const next = this.waiting.shift();
    if (!next) {
      this.free += 1;
      return;
    }
    clearTimeout(next.timer);
    next.resolve(true);
  }

  get(path) {
    return new Promise((resolve, reject) => {
      const call = http.get({ host: '127.0.0.1', port: this.port, path, agent: this.agent }, (answer) => {
        const parts = [];
        answer.on('data', (part) => parts.push(part));
        answer.on('end', () => {
          try {
            resolve(JSON.parse(Buffer.concat(parts).toString()));
          } catch (error) {
            reject(error);
          }
        });
      });
      call.setTimeout(5000, () => call.destroy(new Error(`${this.name} timed out`)));
      call.on('error', reject);
    });
  }
}

module.exports = { Gateway };
