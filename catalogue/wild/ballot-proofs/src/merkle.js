'use strict';

const { createHash } = require('node:crypto');

function sha256(...parts) {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
}

// Leaves of the block that a ballot is in; ballots are kept as salted commitments.
function block(election, ballot, size) {
  const first = Math.floor(ballot / size) * size;
  const leaves = [];
  for (let n = first; n < first + size; n++) leaves.push(sha256(`${election}:${n}`));
  return { leaves, index: ballot - first };
}

function proof(leaves, index) {
  const path = [];
  let level = leaves;
  let at = index;
  while (level.length > 1) {
    const sibling = at ^ 1;
    path.push({ side: sibling < at ? 'left' : 'right', hash: level[sibling].toString('hex') });
    const above = [];
    for (let n = 0; n < level.length; n += 2) above.push(sha256(level[n], level[n + 1]));
    level = above;
    at >>= 1;
  }
  return { root: level[0].toString('hex'), path };
}

module.exports = { block, proof };
