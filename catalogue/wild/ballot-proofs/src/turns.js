'use strict';

// One proof per turn of the event loop, first come first served, so that /health is answered in between.
class Turns {
  constructor() {
    this.waiting = [];
    this.scheduled = false;
  }

  run(work) {
    return new Promise((resolve, reject) => {
      this.waiting.push({ work, resolve, reject });
      this.schedule();
    });
  }

  schedule() {
    if (this.scheduled || this.waiting.length === 0) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      const { work, resolve, reject } = this.waiting.shift();
      try {
        resolve(work());
      } catch (error) {
        reject(error);
      }
      this.schedule();
    });
  }
}

module.exports = { Turns };
