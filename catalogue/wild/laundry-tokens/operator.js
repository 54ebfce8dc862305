'use strict';
// Stand-ins of the line operator's directory and of the card issuer.
const http = require('node:http');
const net = require('node:net');
const readline = require('node:readline');

const port = Number(process.env.PORT || 8080);
const sites = ['harbour-st', 'mill-lane', 'north-gate', 'college-rd'];

net.createServer((socket) => {
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  readline.createInterface({ input: socket }).on('line', (line) => {
    const line_port = Number(line.split(' ')[2]);
    setTimeout(() => socket.write(`OK ${sites[line_port % sites.length]} T${1 + (line_port % 3)}\n`), 15);
  });
}).listen(port + 1, '127.0.0.1');

const issuer = http.createServer((req, res) => {
  const card = Number(req.url.split('/').pop());
  setTimeout(() => res.end(JSON.stringify({ tokens: (card * 7) % 40 })), 75);
});
issuer.keepAliveTimeout = 75_000;
issuer.listen(port + 2, '127.0.0.1');
