'use strict';

let lines = [];

setInterval(() => {
  if (lines.length === 0) return;
  process.stdout.write(lines.join(''));
  lines = [];
}, 500).unref();

function info(message, fields = {}) {
  lines.push(`${JSON.stringify({ at: new Date().toISOString(), message, ...fields })}\n`);
}

module.exports = { info };
