'use strict';

const GENERA = [
  ['Acer', 'maple'], ['Betula', 'birch'], ['Carpinus', 'hornbeam'], ['Fagus', 'beech'], ['Quercus', 'oak'],
  ['Tilia', 'lime'], ['Ulmus', 'elm'], ['Prunus', 'cherry'], ['Magnolia', 'magnolia'], ['Sorbus', 'rowan'],
];
const EPITHETS = ['palmatum', 'pendula', 'betulus', 'sylvatica', 'robur', 'cordata', 'glabra', 'avium', 'stellata'];
const REMARKS = [
  'Planted from seed of the 1911 expedition', 'Crown reduced after the storm', 'Grafted on local stock',
  'Flowers before the leaves', 'Bark peels in papery strips', 'Holds its leaves through the winter',
  'Tallest of its kind in the county', 'Gift of the horticultural society',
];

let state = 20240311;
function random(limit) {
  state = (Math.imul(state, 1103515245) + 12345) >>> 0;
  return Math.floor((state / 2 ** 32) * limit);
}

const trees = new Map();
for (let id = 1; id <= 900; id += 1) {
  const [genus, common] = GENERA[random(GENERA.length)];
  const epithet = EPITHETS[random(EPITHETS.length)];
  trees.set(id, {
    id,
    name: `${genus} ${epithet}`,
    common,
    bed: `${'ABCDEFGH'[random(8)]}${random(40)}`,
    planted: 1890 + random(130),
    girthCm: 20 + random(380),
    position: [51 + random(100000) / 1e7, -1 + random(100000) / 1e7],
    remark: `${REMARKS[random(REMARKS.length)]}. ${REMARKS[random(REMARKS.length)]}.`,
    accession: `${1890 + random(130)}-${random(9000) + 1000}${'ABCD'[random(4)]}`,
  });
}

const walks = new Map(
  [['spring', 'Spring blossom', 50], ['veterans', 'The veterans', 90], ['lakeside', 'Around the lake', 70]].map(
    ([slug, title, minutes]) => [
      slug,
      { slug, title, minutes, treeIds: Array.from({ length: 36 }, () => 1 + random(trees.size)) },
    ],
  ),
);

const treesOf = (walk) => walk.treeIds.map((id) => trees.get(id));

const legend = GENERA.map(([genus, common]) => ({ genus, common, symbol: genus.slice(0, 2).toUpperCase() }));

module.exports = { trees, walks, treesOf, legend };
