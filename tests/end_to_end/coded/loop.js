// One event loop hashes each password itself: the core of the loop is the limit.
"use strict";
const { pbkdf2Sync } = require("crypto");
const { createServer } = require("http");

function register(password) {
  return pbkdf2Sync(password, "salt", 20000, 32, "sha256").toString("hex"); // hashes
}

createServer((request, response) => {
  response.end(register("secret"));
}).listen(Number(process.argv[2]), "127.0.0.1");
