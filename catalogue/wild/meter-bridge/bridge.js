'use strict';
/*
 * HTTP bridge to electricity meters. The meters speak a serial protocol through the vendor's C library, which
 * blocks the calling thread until the concentrator answers. koffi runs such calls off the JavaScript thread.
 */
const variant = process.env.VARIANT ?? 'flawed';
if (variant !== 'flawed') process.env.UV_THREADPOOL_SIZE = '96';

const koffi = require('koffi');
const fastify = require('fastify')({ logger: false });

// No vendor hardware here: the round trip to the concentrator is a blocking call of the same length.
const lib = koffi.load('libc.so.6');
const meter_round_trip = lib.func('int usleep(unsigned int usec)');
const ROUND_TRIP_US = variant === 'healthy' ? 180_000 : 100_000;

const REGISTERS = { import_kwh: 0x0100, export_kwh: 0x0102, power_w: 0x0034, voltage_v: 0x0000 };

function readRegister(serial, register) {
  return new Promise((resolve, reject) => {
    meter_round_trip.async(ROUND_TRIP_US, (err, rc) => {
      if (err || rc !== 0) return reject(err ?? new Error(`meter ${serial}: rc ${rc}`));
      resolve(((serial * 2654435761 + register * 97) >>> 0) % 100000 / 100);
    });
  });
}

fastify.get('/meters/:serial/:register', {
  schema: {
    params: {
      type: 'object',
      properties: { serial: { type: 'integer' }, register: { enum: Object.keys(REGISTERS) } },
    },
  },
  handler: async (request) => {
    const { serial, register } = request.params;
    const value = await readRegister(serial, REGISTERS[register]);
    return { serial, register, value, read_at: new Date().toISOString() };
  },
});

fastify.get('/ready', async () => ({ ok: true }));

fastify.listen({ host: '127.0.0.1', port: Number(process.argv[2]) }).catch((err) => {
  console.error(err);
  process.exit(1);
});
