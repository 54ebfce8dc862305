'use strict';
const http = require('node:http');

class Upstream {
  constructor(name, port, maxSockets) {
    this.name = name;
    this.port = port;
    this.agent = new http.Agent({ keepAlive: true, maxSockets });
  }

  get(path) {
    return new Promise((resolve, reject) => {
      const req = http.get({ host: '127.0.0.1', port: this.port, path, agent: this.agent }, (res) => {
        let body = '';
        res.setEncoding('utf8');
        res.on('data', (chunk) => { body += chunk; });
        res.on('error', reject);
        res.on('end', () => {
          if (res.statusCode !== 200) return reject(new Error(`${this.name} answered ${res.statusCode}`));
          return resolve(JSON.parse(body));
        });
      });
      req.on('error', reject);
    });
  }
}

module.exports = { Upstream };
