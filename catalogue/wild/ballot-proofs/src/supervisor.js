'use strict';

// Starts the service, starts it again when it fails, and keeps it within the rules of the host.
const { spawn } = require('node:child_process');
const path = require('node:path');
const pino = require('pino');
const { ShareKeeper } = require('./share-keeper');
const { settings } = require('./tenants');

const log = pino({ name: 'supervisor' });
const { rules } = settings();
let child = null;
let keeper = null;
let ending = false;

function start() {
  child = spawn(process.execPath, [path.join(__dirname, 'server.js'), process.argv[2]], { stdio: 'inherit' });
  log.info({ pid: child.pid, rules }, 'service started');
  if (rules.cpuShare !== null) {
    keeper = new ShareKeeper(child.pid, rules);
    keeper.start();
  }
  child.on('exit', (code, signal) => {
    if (keeper) keeper.stop();
    if (ending) process.exit(0);
    log.error({ code, signal }, 'service ended');
    setTimeout(start, 1000);
  });
}

function end() {
  ending = true;
  if (keeper) keeper.stop();
  if (child) child.kill('SIGTERM');
}

process.on('SIGTERM', end);
process.on('SIGINT', end);
start();
