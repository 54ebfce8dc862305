'use strict';

/** Language and favourite lifts of a ski pass. */
async function guestOf(pass) {
  const answer = await fetch(`${process.env.GUESTS}/passes/${encodeURIComponent(pass)}`);
  if (!answer.ok) throw new Error(`guests: ${answer.status}`);
  return answer.json();
}

module.exports = { guestOf };
