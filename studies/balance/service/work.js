"use strict";

// Rounds of work. What they cost is a matter of the machine: `node work.js MS` finds out how many take MS of CPU time.

function spin(rounds) {
  let sum = 0;
  for (let i = 0; i < rounds; i++) sum += i % 7;
  return sum;
}

// Of CPU time, not of wall time: what else runs on the machine, or a quota, does not change the work.
let rounds = 1e6; // that take 50 ms or more, once that is known
function perMs() {
  for (;;) {
    const before = process.cpuUsage();
    spin(rounds);
    const used = process.cpuUsage(before);
    const ms = (used.user + used.system) / 1e3;
    if (ms >= 50) return rounds / ms;
    rounds *= 2;
  }
}

module.exports = { spin };

if (require.main === module) {
  perMs(); // once for the compiler
  const found = Array.from({ length: 15 }, perMs).sort((a, b) => a - b);
  console.log(Math.round(found[7] * Number(process.argv[2])));
}
