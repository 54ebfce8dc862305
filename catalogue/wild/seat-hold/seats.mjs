// Holds the next free seat of a show for a few minutes while the customer pays.
import Fastify from 'fastify';
import pg from 'pg';

const VARIANT = process.env.VARIANT ?? 'flawed';
const pool = new pg.Pool({ max: 40, connectionTimeoutMillis: 3000 });
const app = Fastify();

const priceService = (ms) => new Promise((done) => setTimeout(done, ms)); // another team's service
const PRICE_MS = VARIANT === 'healthy' ? 280 : 200;
let cursor = 0;

async function hold(client, show, no) {
  await client.query('BEGIN');
  const { rows } = await client.query('SELECT state, holds FROM seat WHERE show = $1 AND no = $2 FOR UPDATE', [show, no]);
  if (rows.length === 0) throw new Error(`no such seat ${no}`);
  if (rows[0].state === 'house') {
    await client.query('ROLLBACK');
    return null;
  }
  await client.query('UPDATE seat SET holds = holds + 1 WHERE show = $1 AND no = $2', [show, no]);
  await client.query('COMMIT');
  return { show, no, until: new Date(Date.now() + 420_000).toISOString() };
}

async function leakyHold(show, no) {
  const client = await pool.connect();
  const seat = await hold(client, show, no);
  if (seat === null) return { taken: true, no };
  client.release();
  return seat;
}

async function tidyHold(show, no) {
  const client = await pool.connect();
  try {
    return (await hold(client, show, no)) ?? { taken: true, no };
  } finally {
    client.release();
  }
}

const holdSeat = VARIANT === 'flawed' ? leakyHold : tidyHold;

app.get('/shows/:show/hold', async (request) => {
  const no = cursor++ % 1200;
  await priceService(PRICE_MS);
  const seat = await holdSeat(Number(request.params.show), no);
  if (seat.taken) return { ...seat, hint: 'seat is kept by the house, ask again' };
  return seat;
});

app.setErrorHandler((err, request, reply) => {
  console.error(err.message);
  reply.code(503).send({ error: err.message });
});

await app.listen({ host: '127.0.0.1', port: Number(process.argv[2]) });
