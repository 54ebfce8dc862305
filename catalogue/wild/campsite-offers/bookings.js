'use strict';
// Stand-ins of the two booking systems.
const http = require('node:http');
const settings = require('./settings');

const SITES = {
  pitchbook: ['Thirlmere Edge', 'Far Sawrey Farm', 'Beck Meadow', 'Low Wray Shore'],
  fieldstay: ['Hawkshead Orchard', 'Coniston Hall', 'Eskdale Green'],
};

function pitches(system, nights) {
  return SITES[system].map((site, i) => ({
    site,
    pitch: `${system[0].toUpperCase()}${i * 7 + 3}`,
    electric: i % 2 === 0,
    total: (18 + i * 4) * nights,
  }));
}

for (const { name, port } of settings.systems) {
  http
    .createServer((request, response) => {
      const url = new URL(request.url, 'http://localhost');
      const body = JSON.stringify(pitches(name, Number(url.searchParams.get('nights')) || 1));
      setTimeout(() => {
        response.setHeader('content-type', 'application/json');
        response.end(body);
      }, settings.bookingMs);
    })
    .listen(port, '127.0.0.1');
}
