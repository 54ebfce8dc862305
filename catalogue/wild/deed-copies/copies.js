'use strict';
const path = require('node:path');
const Piscina = require('piscina');
const prom = require('prom-client');

const isFlawed = (process.env.VARIANT || 'flawed') === 'flawed';

const pool = new Piscina({
  filename: path.join(__dirname, 'worker.js'),
  minThreads: 4,
  maxThreads: 4,
  concurrentTasksPerWorker: isFlawed ? 1 : 32,
});

new prom.Gauge({
  name: 'worker_pool_threads',
  help: 'Worker threads',
  collect() {
    this.set(pool.threads.length);
  },
});
new prom.Gauge({
  name: 'worker_pool_queue_size',
  help: 'Copies that wait for a thread',
  collect() {
    this.set(pool.queueSize);
  },
});
const copies = new prom.Counter({ name: 'deed_copies_total', help: 'Certified copies' });

/** Return the certified copy of a deed. */
async function certify(deed) {
  const copy = await pool.run({ deed, clerk: 'counter' });
  copies.inc();
  return copy;
}

module.exports = { certify };
