'use strict';

const { setTimeout: wait } = require('node:timers/promises');

// The bulletin board of the electoral office, where roots are published.
async function published(election, ms) {
  if (ms > 0) await wait(ms);
  return { election, board: 'https://board.example/' + election, published: ms > 0 };
}

module.exports = { published };
