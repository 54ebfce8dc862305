"use strict";

// A page that costs CPU time, and sometimes waits without costing any.
//   PORT, REPLICA    where it listens, and which one it is
//   ROUNDS           of work for one page; the same in every trial
//   WAIT_MS, WAITS   how long a page waits besides, and how often (0 to 1)
//   TIMES            the file that each answer is written down in

const fs = require("node:fs");
const express = require("express");
const { spin } = require("./work");

const port = Number(process.env.PORT);
const replica = process.env.REPLICA;
const rounds = Number(process.env.ROUNDS);
const waitMs = Number(process.env.WAIT_MS);
const waits = Number(process.env.WAITS);
const themes = ["crimson", "navy", "forest"];

for (let i = 0; i < 30; i++) spin(rounds); // for the compiler: the first visitor pays what the others pay

const times = fs.createWriteStream(process.env.TIMES, { flags: "a" });

function writeDown(request, answer, next) {
  const began = process.hrtime.bigint();
  answer.on("finish", () => {
    const seconds = Number(process.hrtime.bigint() - began) / 1e9;
    times.write(`${JSON.stringify({ path: request.path, status: answer.statusCode, seconds })}\n`);
  });
  next();
}

const app = express();
app.set("view engine", "ejs");
app.set("views", `${__dirname}/views`);
app.disable("x-powered-by");

app.use(writeDown);

app.get("/health", (_, answer) => answer.send("ok"));

app.get("/", async (_, answer) => {
  const began = process.hrtime.bigint();
  spin(rounds);
  if (Math.random() < waits) await new Promise((wake) => setTimeout(wake, waitMs));
  const processingMs = Number(process.hrtime.bigint() - began) / 1e6;
  answer.set("X-Replica", replica);
  answer.render("page", { port, theme: themes[(Number(replica) - 1) % themes.length], processingMs });
});

const server = app.listen(port, "127.0.0.1", 511);
process.on("SIGTERM", () => {
  server.close(() => times.end(() => process.exit(0)));
  server.closeAllConnections();
});
