'use strict';

const { setTimeout: sleep } = require('node:timers/promises');

/** The staff directory, in the head office; it answers up to 200 badges at once. */
class Directory {
  constructor({ fastestMs, slowestMs, gatherMs }) {
    this.fastestMs = fastestMs;
    this.slowestMs = slowestMs;
    this.gatherMs = gatherMs;
    this.waiting = [];
  }

  /** Who holds the badge; badges that are asked for within `gatherMs` share one request. */
  holder(badge) {
    return new Promise((resolve, reject) => {
      this.waiting.push({ badge, resolve, reject });
      if (this.waiting.length === 1) setTimeout(() => this.flush(), this.gatherMs);
    });
  }

  async flush() {
    const asked = this.waiting;
    this.waiting = [];
    try {
      const holders = await this.lookup(asked.map(({ badge }) => badge.number));
      asked.forEach(({ resolve }, n) => resolve(holders[n]));
    } catch (error) {
      asked.forEach(({ reject }) => reject(error));
    }
  }

  async lookup(numbers) {
    await sleep(this.fastestMs + Math.random() * (this.slowestMs - this.fastestMs));
    return numbers.map((number) => ({ staff: `S${number % 9000}`, active: true }));
  }
}

module.exports = { Directory };
