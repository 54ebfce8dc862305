// The authority's endpoint: TLS with a 4096 bit key, and a fixed time for a declaration.
const https = require('https');
const fs = require('fs');

const delay = Number(process.argv[2]);
const server = https.createServer(
  { key: fs.readFileSync(`${process.env.WILD_BUILD}/key.pem`), cert: fs.readFileSync(`${process.env.WILD_BUILD}/cert.pem`) },
  (req, res) => {
    setTimeout(() => {
      res.writeHead(200, { 'Content-Type': 'application/xml' });
      res.end(`<declaration mrn="${req.url.slice(1)}"><state>released</state></declaration>`);
    }, delay);
  },
);
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send(server.address().port));
process.on('disconnect', () => process.exit());
