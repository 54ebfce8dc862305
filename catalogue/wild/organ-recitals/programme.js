'use strict';

const http = require('node:http');
const { createHash } = require('node:crypto');

const port = Number(process.env.PORT) + 1;
const ticketPort = port + 1;
const ticketLatencyMs = process.env.VARIANT === 'healthy' ? 220 : 30;

const composers = ['Buxtehude', 'Bach', 'Franck', 'Widor', 'Vierne', 'Messiaen', 'Reger'];
const works = ['Toccata', 'Passacaglia', 'Choral', 'Fugue in G', 'Symphony, finale', 'Trio sonata'];
const churches = ['St Nicholas', 'St Bavo', 'St Sulpice', 'Holy Cross', 'Minster'];

const recitals = new Map();
for (let id = 1; id <= 600; id++) {
  recitals.set(String(id), {
    id,
    church: churches[id % churches.length],
    date: new Date(Date.UTC(2027, 0, 3 + 7 * (id % 52))).toISOString().slice(0, 10),
    organist: `Organist ${1 + (id % 48)}`,
    pieces: Array.from({ length: 5 }, (_, place) => ({
      composer: composers[(id + place) % composers.length],
      title: works[(id * 3 + place) % works.length],
      minutes: 6 + ((id + place * 5) % 13),
    })),
  });
}

// Stand-in of the box office, a company in another town.
http
  .createServer((request, response) => {
    setTimeout(() => {
      const id = Number(request.url.split('/').pop());
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ free: 40 + (id % 160), price: 12 + (id % 9) }));
    }, ticketLatencyMs);
  })
  .listen(ticketPort, '127.0.0.1', 1024);

const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity });

function freeSeats(id) {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: ticketPort, path: `/seats/${id}`, agent };
    http
      .get(options, (answer) => {
        let text = '';
        answer.setEncoding('utf8');
        answer.on('data', (part) => (text += part));
        answer.on('end', () => resolve(JSON.parse(text)));
      })
      .on('error', reject);
  });
}

function send(response, status, body) {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    etag: `"${createHash('sha1').update(text).digest('hex').slice(0, 16)}"`,
  });
  response.end(text);
}

const server = http.createServer(async (request, response) => {
  const recital = recitals.get(request.url.split('/')[2]);
  if (!recital) {
    send(response, 404, { error: 'no such recital' });
    return;
  }
  try {
    const seats = await freeSeats(recital.id);
    const minutes = recital.pieces.reduce((sum, piece) => sum + piece.minutes, 0);
    send(response, 200, { ...recital, minutes, seats });
  } catch (error) {
    send(response, 502, { error: error.message });
  }
});
server.keepAliveTimeout = 75_000;
server.listen(port, '127.0.0.1', 1024);
