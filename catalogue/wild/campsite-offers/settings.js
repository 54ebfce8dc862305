'use strict';
// Settings by variant.
const PORT = Number(process.env.PORT);

const base = {
  port: PORT,
  systems: [
    { name: 'pitchbook', port: PORT + 1 },
    { name: 'fieldstay', port: PORT + 2 },
  ],
  bookingMs: 55,
  callsAtOnce: 8,
  patienceMs: 150,
};

const byVariant = {
  flawed: {},
  mended: { callsAtOnce: 400 },
  healthy: { callsAtOnce: 400, bookingMs: 280 },
};

module.exports = { ...base, ...byVariant[process.env.VARIANT] };
