// Availability of concert tickets; the numbers come from the venue's system.
const http = require('http');

const venueMs = process.env.VARIANT === 'healthy' ? 200 : 110;

http
  .createServer((req, res) => {
    const show = /^\/shows\/(\d+)\/available$/.exec(req.url);
    if (!show) return res.writeHead(404).end();
    setTimeout(() => {
      res.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
      res.end(JSON.stringify({ show: Number(show[1]), seats: (show[1] * 37) % 1200, standing: (show[1] * 91) % 3000 }));
    }, venueMs);
  })
  .listen(Number(process.argv[2]), '127.0.0.1');
