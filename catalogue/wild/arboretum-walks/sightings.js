'use strict';

const http = require('node:http');

const PORT = Number(process.env.SIGHTINGS_PORT || Number(process.env.PORT || 8080) + 1);
const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity });

function sightingsNear(tree) {
  return new Promise((resolve, reject) => {
    const path = `/near?lat=${tree.position[0]}&lon=${tree.position[1]}`;
    const request = http.get({ host: '127.0.0.1', port: PORT, path, agent }, (answer) => {
      const chunks = [];
      answer.on('data', (chunk) => chunks.push(chunk));
      answer.on('end', () => {
        try {
          resolve(JSON.parse(Buffer.concat(chunks)));
        } catch (error) {
          reject(error);
        }
      });
    });
    request.on('error', reject);
  });
}

module.exports = { sightingsNear };
