'use strict';
const WORDS = {
  en: { open: 'open', closed: 'closed', wait: 'min wait' },
  de: { open: 'offen', closed: 'geschlossen', wait: 'min Wartezeit' },
};

function row(lift, words, isFavourite) {
  const state = lift.open ? `${words.open}, ${lift.waitMinutes} ${words.wait}` : words.closed;
  return `<tr${isFavourite ? ' class="favourite"' : ''}><td>${lift.name}</td><td>${state}</td></tr>`;
}

function render(area, lifts, guest) {
  const words = WORDS[guest.language] ?? WORDS.en;
  const rows = lifts.map((lift) => row(lift, words, guest.favourites.includes(lift.name)));
  return `<!doctype html><title>${area}</title><table>\n${rows.join('\n')}\n</table>\n`;
}

module.exports = { render };
