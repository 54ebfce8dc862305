// Stand-in of the customs office's rates.
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const DELAY_MS = process.env.VARIANT === "healthy" ? 250 : 15;

const server = createServer(async (request, response) => {
  const boat = Number(request.url.split("/").pop());
  await sleep(DELAY_MS);
  const text = JSON.stringify({ centsPerMetre: 180 + (boat % 9) * 12, exempt: boat % 6 === 0 });
  response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
  response.end(text);
});

server.keepAliveTimeout = 75_000;
server.listen(Number(process.env.PORT) + 2, "127.0.0.1", 512);
