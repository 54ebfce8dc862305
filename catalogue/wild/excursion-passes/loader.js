'use strict';

const http = require('node:http');

/** Balances of passes from the ledger; calls that come close together share one look-up. */
class BalanceLoader {
  constructor({ host, port, singly, windowMs = 100 }) {
    this.host = host;
    this.port = port;
    this.singly = singly;
    this.windowMs = windowMs;
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 256 });
    this.waiting = new Map();
    this.timer = null;
  }

  load(pass) {
    if (this.singly) return this.fetch([pass]).then((found) => found[pass]);
    return new Promise((resolve, reject) => {
      const askers = this.waiting.get(pass) ?? [];
      askers.push({ resolve, reject });
      this.waiting.set(pass, askers);
      this.timer ??= setTimeout(() => this.flush(), this.windowMs);
    });
  }

  async flush() {
    const batch = this.waiting;
    this.waiting = new Map();
    this.timer = null;
    try {
      const found = await this.fetch([...batch.keys()]);
      for (const [pass, askers] of batch) askers.forEach((asker) => asker.resolve(found[pass]));
    } catch (error) {
      for (const askers of batch.values()) askers.forEach((asker) => asker.reject(error));
    }
  }

  fetch(passes) {
    const path = `/balances?passes=${encodeURIComponent(passes.join(','))}`;
    return new Promise((resolve, reject) => {
      http
        .get({ host: this.host, port: this.port, path, agent: this.agent, timeout: 5000 }, (res) => {
          let text = '';
          res.setEncoding('utf8');
          res.on('data', (chunk) => (text += chunk));
          res.on('end', () => resolve(JSON.parse(text)));
        })
        .on('timeout', function () {
          this.destroy(new Error('timed out'));
        })
        .on('error', reject);
    });
  }
}

module.exports = { BalanceLoader };
