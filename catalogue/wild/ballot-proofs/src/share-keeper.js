'use strict';

const fs = require('node:fs');

// Nanoseconds on a CPU, of all threads of a process.
function cpuNanos(pid) {
  let total = 0;
  for (const task of fs.readdirSync(`/proc/${pid}/task`)) {
    try {
      total += Number(fs.readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'latin1').split(' ')[0]);
    } catch {
      // the thread ended
    }
  }
  return total;
}

class ShareKeeper {
  constructor(pid, { cpuShare, periodMs }) {
    this.pid = pid;
    this.allowance = cpuShare * periodMs * 1e6;
    this.periodMs = periodMs;
    this.looksMs = 4;
    this.held = false;
  }

  start() {
    this.begin();
    this.timer = setInterval(() => this.look(), this.looksMs);
  }

  begin() {
    this.since = performance.now();
    this.used = cpuNanos(this.pid);
  }

  look() {
    try {
      if (performance.now() - this.since >= this.periodMs) {
        this.signal(false);
        this.begin();
      } else if (!this.held && cpuNanos(this.pid) - this.used >= this.allowance) {
        this.signal(true);
      }
    } catch {
      this.stop();
    }
  }

  signal(hold) {
    if (hold === this.held) return;
    process.kill(this.pid, hold ? 'SIGSTOP' : 'SIGCONT');
    this.held = hold;
  }

  stop() {
    clearInterval(this.timer);
    try {
      this.signal(false);
    } catch {
      // it is gone
    }
  }
}

module.exports = { ShareKeeper };
