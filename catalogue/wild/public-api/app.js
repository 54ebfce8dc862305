const express = require('express');
const { rateLimit } = require('express-rate-limit');
const { register, collectDefaultMetrics, Histogram } = require('prom-client');

const mode = process.env.VARIANT || 'flawed';
const port = Number(process.argv[2] || process.env.PORT);

collectDefaultMetrics();
const seconds = new Histogram({
  name: 'http_server_request_duration_seconds',
  help: 'Server-side latency',
  labelNames: ['code'],
  buckets: [0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8],
});

const app = express();
app.set('trust proxy', 1);

app.get('/metrics', async (req, res) => {
  res.set('Content-Type', register.contentType);
  res.end(await register.metrics());
});

app.use((req, res, next) => {
  const end = seconds.startTimer();
  res.once('finish', () => end({ code: res.statusCode }));
  next();
});

if (mode !== 'healthy') {
  app.use(
    rateLimit({
      windowMs: 1000,
      limit: mode === 'flawed' ? 90 : 2000,
      standardHeaders: 'draft-7',
      legacyHeaders: false,
      keyGenerator: (req) => req.get('x-api-key') || 'anonymous',
      message: { error: 'too many requests' },
      validate: false,
    }),
  );
}

const STATIONS = Array.from({ length: 400 }, (_, i) => ({
  id: 6000 + i,
  name: `Station ${i}`,
  docks: 10 + (i % 15),
  lat: 59.9 + (i % 20) / 400,
  lon: 10.7 + Math.floor(i / 20) / 400,
}));

// Live occupancy comes from the bike operator.
const occupancy = (station) =>
  new Promise((ok) => setTimeout(ok, mode === 'healthy' ? 180 : 110, (station.id * 13) % station.docks));

app.get('/v2/stations/:id', async (req, res) => {
  const station = STATIONS.find((s) => s.id === Number(req.params.id));
  if (!station) return res.status(404).json({ error: 'no such station' });
  const bikes = await occupancy(station);
  res.json({ ...station, bikes, free: station.docks - bikes });
});

app.listen(port, '127.0.0.1');
