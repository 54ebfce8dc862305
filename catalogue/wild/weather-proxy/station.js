// The met office's forecast server. Its contract with us: `places` calculations at a time, the rest waits its turn.
import { createServer } from 'node:http';

const [port, places, ms] = process.argv.slice(2).map(Number);
const line = [];
let running = 0;

function start(res) {
  running++;
  setTimeout(() => {
    running--;
    res.end(JSON.stringify({ temperature: 4.5, wind: 11.2, symbol: 'rain' }));
    if (line.length) start(line.shift());
  }, ms);
}

createServer((req, res) => (running < places ? start(res) : line.push(res))).listen(port, '127.0.0.1', 512);
process.on('disconnect', () => process.exit(0));
