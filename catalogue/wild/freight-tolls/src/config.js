'use strict';

const path = require('node:path');

const variant = process.env.VARIANT || 'mended';

module.exports = {
  port: Number(process.argv[2] || process.env.PORT || 8090),
  table: path.join(process.env.TMPDIR || '/tmp', 'tolls.json'),
  stretches: 9000,
  reload: variant === 'flawed' ? 'always' : 'changed',
  obuWaitMs: variant === 'healthy' ? [90, 130] : [55, 75],
};
