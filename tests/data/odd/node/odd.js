"use strict";

// A Node service with chosen bad manners, those of tests/end_to_end/odd_service.py: odd.js PORT [MANNER=VALUE ...]

const { spawn } = require("node:child_process");
const fs = require("node:fs");
const http = require("node:http");

const [port, ...words] = process.argv.slice(2);
const manners = Object.fromEntries(words.map((word) => word.split("=")));

if (manners.say) console.log(manners.say);
if (manners.exit) process.exit(Number(manners.exit));
if (manners.ignore) process.on(`SIG${manners.ignore}`, () => {});
if (manners.descendants) spawn("sleep", ["600"], { detached: true, stdio: "ignore" }).unref(); // a session of its own
if (manners.flood) flood(Number(manners.flood));
if ((manners.listen ?? "yes") === "yes") serve(Number(manners.status ?? 200));
setInterval(() => {}, 1000);

function flood(size) {
  const piece = Buffer.alloc(1 << 16, "x");
  for (fs.writeSync(1, "[first]"); size > 0; ) {
    try {
      size -= fs.writeSync(1, piece.subarray(0, size));
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
  fs.writeSync(1, "[last]");
}

function serve(status) {
  const said = (asked, answer) => (asked.url === "/die" ? die() : answer.writeHead(status).end("ok"));
  http.createServer(said).listen(Number(port), "127.0.0.1");
}

function die() {
  console.log("now I die");
  process.exit(7);
}
