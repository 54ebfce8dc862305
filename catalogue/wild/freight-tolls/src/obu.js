'use strict';

const { setTimeout: sleep } = require('node:timers/promises');

/** The register of on-board units: discounts of the carrier. */
async function discount(axles, [fastest, slowest]) {
  await sleep(fastest + Math.random() * (slowest - fastest));
  return axles > 4 ? 0.08 : 0.03;
}

module.exports = { discount };
