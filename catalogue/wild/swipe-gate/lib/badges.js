'use strict';

const crypto = require('node:crypto');

const secret = crypto.createHash('sha256').update('north-park badge printer').digest();

/** A badge carries a code that the printer derived from its number; older printers used many rounds. */
function codeOf(number) {
  return crypto.pbkdf2Sync(String(number), secret, 400, 16, 'sha256').toString('hex');
}

const zones = ['lobby', 'labs', 'archive', 'garage'];

function parse(text) {
  if (!/^\d{3,8}$/.test(text || '')) return null;
  const number = Number(text);
  return { number, zone: zones[number % zones.length] };
}

module.exports = { parse, codeOf };
