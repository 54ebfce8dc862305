// Client of the wholesaler's stock service.
import { setTimeout as sleep } from 'node:timers/promises';
import { count } from './metrics.mjs';

const BASE = `http://127.0.0.1:${Number(process.env.PORT) + 1}`;
const POLICIES = {
  flawed: { tries: 6, tryMs: 120, pauseMs: 0 },
  mended: { tries: 2, tryMs: 2500, pauseMs: 400 },
  healthy: { tries: 2, tryMs: 2500, pauseMs: 400 },
};
const policy = POLICIES[process.env.VARIANT ?? 'flawed'];

export class StockError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function ask(pzn) {
  try {
    const response = await fetch(`${BASE}/stock/${pzn}`, { signal: AbortSignal.timeout(policy.tryMs) });
    const body = await response.json();
    if (response.status >= 500) throw new StockError(`wholesaler answered ${response.status}`, 502);
    count('wholesaler_requests_total', 'outcome="ok"');
    return body;
  } catch (error) {
    const late = error.name === 'TimeoutError';
    count('wholesaler_requests_total', `outcome="${late ? 'timeout' : 'error'}"`);
    throw late ? new StockError('wholesaler did not answer in time', 504) : error;
  }
}

export async function stockOf(pzn) {
  let last;
  for (let n = 0; n < policy.tries; n += 1) {
    if (n > 0 && policy.pauseMs > 0) await sleep(policy.pauseMs * 2 ** (n - 1) * (0.5 + Math.random()));
    try {
      return await ask(pzn);
    } catch (error) {
      last = error;
    }
  }
  throw last;
}
