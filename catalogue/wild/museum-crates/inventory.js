'use strict';

const COLLECTIONS = ['aldermoor', 'bexley', 'carrow', 'dunmore', 'ettrick', 'fairlie', 'glennie', 'harcourt'];
const CLIMATES = ['dry', 'cool', 'standard'];

function loadInventory() {
  const crates = [];
  for (let id = 1; id <= 10_000; id += 1) {
    const collection = id % 5 === 0 ? COLLECTIONS[1 + ((id / 5) % 7)] : COLLECTIONS[0];
    crates.push({ id, code: `CR-${String(id).padStart(5, '0')}`, collection, climate: CLIMATES[id % 3] });
  }
  return crates;
}

module.exports = { loadInventory };
