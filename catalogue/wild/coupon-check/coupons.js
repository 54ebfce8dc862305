'use strict';
const express = require('express');

const variant = process.env.VARIANT || 'flawed';
const shop = { flawed: 120, mended: 120, healthy: 200 }[variant]; // ms to the shop's promotion service

// A campaign code is words joined by dashes, e.g. SUMMER-SALE-2026, possibly with a trailing check letter.
const LOOSE = /^(([A-Z0-9]+)-?)+!$/;
const STRICT = /^[A-Z0-9]+(?:-[A-Z0-9]+)*!$/;
const pattern = variant === 'flawed' ? LOOSE : STRICT;

function normalise(text) {
  return text.trim().toUpperCase().replaceAll('_', '-');
}

function promotion(code) {
  return new Promise((resolve) => {
    setTimeout(() => resolve({ code, percent: 5 + (code.length % 4) * 5, stackable: false }), shop);
  });
}

const router = express.Router();

router.get('/:code', async (req, res) => {
  const code = normalise(req.params.code);
  const signed = pattern.test(code);
  const offer = await promotion(code);
  res.json({ ...offer, signed });
});

router.post('/', express.json({ limit: '2kb' }), async (req, res) => {
  if (typeof req.body.code !== 'string') return res.status(422).json({ error: 'code is missing' });
  res.json(await promotion(normalise(req.body.code)));
});

const app = express();
app.use('/coupons', router);
app.use((req, res) => res.status(404).json({ error: 'not found' }));
app.use((err, req, res, next) => res.status(500).json({ error: err.message }));

const server = app.listen(process.argv[2], '127.0.0.1');
process.on('SIGTERM', () => server.close(() => process.exit(0)));
