'use strict';
// Which store holds an entry.

function fnv1a(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash ^= text.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193) >>> 0;
  }
  return hash;
}

function byCountry(sail, stores) {
  return fnv1a(sail.country) % stores;
}

function bySail(sail, stores) {
  return (fnv1a(sail.country) + Number(sail.number)) % stores;
}

module.exports = { byCountry, bySail };
