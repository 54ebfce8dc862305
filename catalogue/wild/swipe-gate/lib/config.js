'use strict';

const variant = process.env.VARIANT || 'mended';

const base = {
  host: '127.0.0.1',
  port: Number(process.argv[2] || process.env.PORT || 8090),
  site: 'north-park',
  closeAfterAnswer: true,
  directory: { fastestMs: 18, slowestMs: 26, gatherMs: 10 },
};

const sites = {
  flawed: {
    ...base,
    backlog: 4,
  },
  mended: {
    ...base,
    backlog: 1024,
  },
  healthy: {
    ...base,
    backlog: 1024,
    closeAfterAnswer: false,
    directory: { fastestMs: 90, slowestMs: 120, gatherMs: 2 },
  },
};

module.exports = sites[variant];
