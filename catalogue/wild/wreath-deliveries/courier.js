'use strict';

const http = require('node:http');
const { setTimeout: sleep } = require('node:timers/promises');

const DEADLINE_MS = 1000;

class Courier {
  constructor({ url, variant, onCall }) {
    this.url = url;
    this.onCall = onCall;
    this.agent = new http.Agent({ keepAlive: true });
    this.attempts = 1;
    if (variant === 'flawed') {
      this.attempts = 5;
    }
    this.pauseMs = 50;
  }

  /** Free slots of a chapel, within the deadline. */
  async slots(chapel) {
    const timeoutMs = DEADLINE_MS / this.attempts;
    for (let attempt = 1; ; attempt++) {
      try {
        const slots = await this.get(`/v2/slots?chapel=${chapel}`, timeoutMs);
        this.onCall('ok');
        return slots;
      } catch (error) {
        this.onCall(error.code === 'TIMEOUT' ? 'timeout' : 'error');
        if (attempt >= this.attempts) throw error;
        await sleep(this.pauseMs);
      }
    }
  }

  get(path, timeoutMs) {
    return new Promise((resolve, reject) => {
      const req = http.get(this.url + path, { agent: this.agent }, (res) => {
        let text = '';
        res.setEncoding('utf8');
        res.on('data', (chunk) => (text += chunk));
        res.on('end', () => {
          clearTimeout(timer);
          if (res.statusCode === 200) resolve(JSON.parse(text).slots);
          else reject(Object.assign(new Error(`status ${res.statusCode}`), { code: 'STATUS' }));
        });
      });
      const timer = setTimeout(() => {
        req.destroy(Object.assign(new Error('timed out'), { code: 'TIMEOUT' }));
      }, timeoutMs);
      req.on('error', (error) => {
        clearTimeout(timer);
        reject(error);
      });
    });
  }
}

module.exports = { Courier };
