// Quote service: answers with the average of an instrument's next ticks (long poll).
import { createServer } from 'node:http';
import { EventEmitter } from 'node:events';

const { VARIANT = 'flawed' } = process.env;
const TICKS = VARIANT === 'healthy' ? 18 : 12; // per answer, one each 10 ms
const market = new EventEmitter();
market.setMaxListeners(0); // there are many watchers in the morning

const SYMBOLS = 'EQNR NHY TEL DNB MOWI ORK YAR AKRBP STB SALM GJF TOM SUBC KOG LSG BAKKA SCHA VAR FRO NOD'.split(' ');
const last = new Map(SYMBOLS.map((s, i) => [s, 100 + i * 31]));
let sequence = 0;

setInterval(() => {
  sequence += 1;
  for (const symbol of SYMBOLS) {
    const price = last.get(symbol) + Math.sin(sequence + symbol.length);
    last.set(symbol, price);
    market.emit('tick', { symbol, price, sequence });
  }
}, 10);

class Watcher {
  constructor(symbol, depth = 600) {
    this.symbol = symbol;
    this.window = new Float64Array(depth); // for the moving average
    this.seen = 0;
    this.onTick = (tick) => this.push(tick);
    market.on('tick', this.onTick);
  }

  push(tick) {
    if (tick.symbol !== this.symbol) return;
    this.window[this.seen++ % this.window.length] = tick.price;
    let sum = 0;
    const n = Math.min(this.seen, this.window.length);
    for (let i = 0; i < n; i++) sum += this.window[i];
    this.average = sum / n;
    if (this.seen === TICKS) this.resolve({ ...tick, average: this.average });
  }

  next() {
    return new Promise((resolve) => (this.resolve = resolve));
  }

  close() {
    market.off('tick', this.onTick);
  }
}

const server = createServer(async (req, res) => {
  const [, kind, symbol] = req.url.split('/');
  if (kind !== 'next' || !last.has(symbol)) {
    res.writeHead(404).end();
    return;
  }
  const watcher = new Watcher(symbol);
  const tick = await watcher.next();
  if (VARIANT !== 'flawed') watcher.close();
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify(tick));
});

server.listen(Number(process.argv[2]), '127.0.0.1');
