'use strict';

const fs = require('node:fs/promises');
const path = require('node:path');
const crypto = require('node:crypto');

function seal(entry, previous) {
  let digest = Buffer.from(`${previous}:${JSON.stringify(entry)}`);
  for (let round = 0; round < 400; round += 1) {
    digest = crypto.createHash('sha256').update(digest).digest();
  }
  return digest.toString('hex');
}

async function append(file, entry) {
  const state = JSON.parse(await fs.readFile(file, 'utf8'));
  state.count += 1;
  state.seal = seal(entry, state.seal);
  state.recent = [entry, ...state.recent].slice(0, 20);
  await fs.writeFile(`${file}.next`, JSON.stringify(state));
  await fs.rename(`${file}.next`, file);
  return { number: state.count, seal: state.seal };
}

class FileGuard {
  constructor(file) {
    this.file = `${file}.lock`;
  }

  async run(task) {
    for (;;) {
      try {
        const handle = await fs.open(this.file, 'wx');
        await handle.close();
        break;
      } catch (error) {
        if (error.code !== 'EEXIST') throw error;
      }
    }
    try {
      return await task();
    } finally {
      await fs.unlink(this.file);
    }
  }
}

class QueueGuard {
  constructor() {
    this.tail = Promise.resolve();
  }

  run(task) {
    const turn = this.tail.then(task);
    this.tail = turn.catch(() => {});
    return turn;
  }
}

class Journal {
  constructor(folder, guardFor) {
    this.folder = folder;
    this.guardFor = guardFor;
    this.guards = new Map();
  }

  async open(apiary) {
    const file = path.join(this.folder, `${apiary}.json`);
    await fs.writeFile(file, JSON.stringify({ count: 0, seal: apiary, recent: [] }));
    this.guards.set(apiary, this.guardFor(file));
  }

  record(apiary, entry) {
    const file = path.join(this.folder, `${apiary}.json`);
    return this.guards.get(apiary).run(() => append(file, entry));
  }
}

module.exports = { Journal, FileGuard, QueueGuard };
