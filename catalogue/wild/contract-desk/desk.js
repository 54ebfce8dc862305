'use strict';
const { createServer } = require('node:http');
const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads');

// Documents are produced by a blocking client of the archive, therefore in worker threads.
// One document in twenty is a contract, which the notary's system has to sign.
const TYPES = { letter: 10, contract: 300 }; // ms until the archive or the notary answers

class Pool {
  constructor(name, size) {
    this.idle = [];
    this.queue = [];
    this.jobs = new Map();
    this.next = 0;
    for (let i = 0; i < size; i++) {
      const worker = new Worker(__filename, { workerData: { pool: name }, resourceLimits: { maxOldGenerationSizeMb: 16 } });
      worker.on('message', ({ id, text }) => {
        this.jobs.get(id)(text);
        this.jobs.delete(id);
        this.idle.push(worker);
        this.pump();
      });
      this.idle.push(worker);
    }
  }

  run(job) {
    return new Promise((resolve) => {
      const id = this.next++;
      this.jobs.set(id, resolve);
      this.queue.push({ ...job, id });
      this.pump();
    });
  }

  pump() {
    while (this.idle.length > 0 && this.queue.length > 0) this.idle.pop().postMessage(this.queue.shift());
  }
}

function main(variant, port) {
  const pools =
    variant === 'flawed'
      ? (() => {
          const shared = new Pool('documents', 4);
          return { letter: shared, contract: shared };
        })()
      : { letter: new Pool('letters', 14), contract: new Pool('contracts', 20) };
  const caseMs = variant === 'healthy' ? 160 : 90;
  let count = 0;

  createServer(async (req, res) => {
    if (!/^\/cases\/\d+\/document$/.test(req.url)) return res.writeHead(404).end();
    const number = ++count;
    const type = number % 20 === 0 ? 'contract' : 'letter';
    await new Promise((resolve) => setTimeout(resolve, caseMs)); // the case, from the case system
    const text = await pools[type].run({ number, type });
    res.writeHead(200, { 'content-type': 'application/pdf', 'content-length': text.length });
    res.end(text);
  }).listen(port, '127.0.0.1');
}

if (!isMainThread) {
  const clock = new Int32Array(new SharedArrayBuffer(4));
  parentPort.on('message', ({ id, number, type }) => {
    Atomics.wait(clock, 0, 0, TYPES[type]); // the blocking call
    parentPort.postMessage({ id, text: `%PDF-1.7\n% ${workerData.pool} ${type} ${number}\n%%EOF\n` });
  });
} else {
  main(process.env.VARIANT || 'flawed', Number(process.argv[2]));
}
