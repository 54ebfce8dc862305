'use strict';
// Parcel tracking for partners. Every call carries the partner's name and API secret.

const crypto = require('node:crypto');
const express = require('express');
const prom = require('prom-client');

const VARIANT = process.env.VARIANT || 'flawed';
const ROUNDS = 15_000;
const CARRIER_MS = VARIANT === 'healthy' ? 180 : 110;

prom.collectDefaultMetrics();
const duration = new prom.Histogram({
  name: 'http_request_duration_seconds',
  help: 'Duration of HTTP requests in seconds',
  labelNames: ['method', 'route', 'status_code'],
  buckets: [0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 5],
});

const partners = new Map();
for (const name of ['nordkap', 'lindgren', 'posti']) {
  const salt = crypto.createHash('sha1').update(name).digest();
  partners.set(name, {
    name,
    salt,
    hash: crypto.pbkdf2Sync(`${name}-8f3a`, salt, ROUNDS, 32, 'sha512'),
    signature: crypto.createHmac('sha256', salt).update(`${name}-8f3a`).digest(),
  });
}

const verified = new Map(); // HMAC of a secret that was proven once -> time of the proof
const perBoot = crypto.randomBytes(32);

function secretMatches(partner, secret) {
  const candidate = crypto.pbkdf2Sync(secret, partner.salt, ROUNDS, 32, 'sha512'); // same cost as in the portal
  return crypto.timingSafeEqual(candidate, partner.hash);
}

function remembered(partner, secret) {
  const tag = crypto.createHmac('sha256', perBoot).update(`${partner.name}\0${secret}`).digest('hex');
  if (verified.get(tag) > Date.now() - 600_000) return true;
  const ok = secretMatches(partner, secret);
  if (ok) verified.set(tag, Date.now());
  return ok;
}

function signed(partner, secret) {
  const candidate = crypto.createHmac('sha256', partner.salt).update(secret).digest();
  return crypto.timingSafeEqual(candidate, partner.signature);
}

const check = { flawed: secretMatches, mended: remembered, healthy: signed }[VARIANT];

function authenticate(req, res, next) {
  const partner = partners.get(req.query.partner);
  if (!partner || !check(partner, String(req.query.secret || ''))) {
    return res.status(401).json({ error: 'unknown partner or wrong secret' });
  }
  req.partner = partner.name;
  next();
}

// The carrier's API is in another data centre.
const askCarrier = (parcel) =>
  new Promise((resolve) => {
    setTimeout(resolve, CARRIER_MS, { parcel, status: 'in transit', hub: `H${parcel % 17}`, eta: '2026-12-02' });
  });

const app = express();
app.disable('x-powered-by');
app.use((req, res, next) => {
  const stop = duration.startTimer({ method: req.method });
  res.on('finish', () => stop({ route: req.route ? req.route.path : 'none', status_code: res.statusCode }));
  next();
});
app.get('/v1/parcels/:id', authenticate, async (req, res) => {
  const state = await askCarrier(Number(req.params.id));
  res.json({ partner: req.partner, ...state });
});
app.get('/metrics', async (req, res) => {
  res.type(prom.register.contentType).send(await prom.register.metrics());
});

app.listen(Number(process.argv[2]), '127.0.0.1');
