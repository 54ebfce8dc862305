'use strict';
// Headers that every answer carries.

const gateway = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  connection: 'close',
};

const service = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

module.exports = process.env.VARIANT === 'flawed' ? gateway : service;
