'use strict';

const fs = require('node:fs');
const { readFile, stat } = require('node:fs/promises');

function read(file) {
  return JSON.parse(fs.readFileSync(file, 'utf8'));
}

/** The published table, as it is now. */
class PublishedTable {
  constructor(file) {
    this.file = file;
  }

  stretch(id) {
    return read(this.file).stretches.find((each) => each.id === id);
  }
}

/** The published table, loaded again when it was published again. */
class WatchedTable {
  constructor(file, log) {
    this.file = file;
    this.log = log;
    this.mtimeMs = fs.statSync(file).mtimeMs;
    this.index(read(file));
    setInterval(() => this.refresh(), 5000).unref();
  }

  index(table) {
    this.byId = new Map(table.stretches.map((each) => [each.id, each]));
  }

  async refresh() {
    try {
      const { mtimeMs } = await stat(this.file);
      if (mtimeMs === this.mtimeMs) return;
      this.index(JSON.parse(await readFile(this.file, 'utf8')));
      this.mtimeMs = mtimeMs;
    } catch (error) {
      this.log.error({ err: error }, 'tolls were not loaded');
    }
  }

  stretch(id) {
    return this.byId.get(id);
  }
}

module.exports = { PublishedTable, WatchedTable };
