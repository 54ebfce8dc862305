// Stand-in of the national roll.
import http from 'node:http';

const LATENCY_MS = process.env.VARIANT === 'healthy' ? 220 : 20;
let entries = 100_000;

const server = http.createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    setTimeout(() => {
      entries += 1;
      const text = JSON.stringify({ entry: entries });
      response.writeHead(201, { 'content-type': 'application/json', 'content-length': text.length });
      response.end(text);
    }, LATENCY_MS);
  });
});

server.keepAliveTimeout = 75_000;
server.listen(Number(process.env.PORT) + 1, '127.0.0.1', 1024);
