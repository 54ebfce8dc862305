'use strict';
const net = require('node:net');
const readline = require('node:readline');

// Client of the operator's line directory: a few sessions, one question at a time on each.
class LineDirectory {
  constructor({ host, port, sessions }) {
    this.address = { host, port };
    this.size = sessions;
    this.free = [];
    this.waiting = [];
  }

  async open() {
    for (let i = 0; i < this.size; i += 1) this.free.push(await this.dial(40));
  }

  dial(tries) {
    return new Promise((resolve, reject) => {
      const socket = net.connect(this.address, () => {
        socket.setNoDelay(true);
        const session = { socket, pending: null };
        readline.createInterface({ input: socket }).on('line', (line) => this.answered(session, line));
        resolve(session);
      });
      socket.once('error', (error) => {
        if (tries <= 0) return reject(error);
        return setTimeout(() => this.dial(tries - 1).then(resolve, reject), 100);
      });
    });
  }

  whois(address, port) {
    return new Promise((resolve, reject) => {
      this.waiting.push({ question: `WHOIS ${address} ${port}\n`, resolve, reject });
      this.pump();
    });
  }

  pump() {
    while (this.free.length > 0 && this.waiting.length > 0) {
      const session = this.free.pop();
      session.pending = this.waiting.shift();
      session.socket.write(session.pending.question);
    }
  }

  answered(session, line) {
    const { resolve, reject } = session.pending;
    session.pending = null;
    this.free.push(session);
    const [status, site, tariff] = line.split(' ');
    if (status === 'OK') resolve({ site, tariff });
    else reject(new Error(`line directory: ${line}`));
    this.pump();
  }
}

module.exports = { LineDirectory };
