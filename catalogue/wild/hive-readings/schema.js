'use strict';

const TABLES = `
  CREATE TABLE hives (
    id int PRIMARY KEY,
    apiary text NOT NULL,
    queen_year int NOT NULL
  );
  CREATE TABLE readings (
    id bigserial PRIMARY KEY,
    hive_id int NOT NULL REFERENCES hives (id),
    taken_at timestamptz NOT NULL,
    weight_g int NOT NULL,
    brood_temp numeric(4, 1) NOT NULL
  );
  INSERT INTO hives
    SELECT n, 'apiary ' || (n % 24), 2021 + n % 5 FROM generate_series(1, 400) AS n;
  INSERT INTO readings (hive_id, taken_at, weight_g, brood_temp)
    SELECT 1 + n % 400, timestamptz '2026-05-01' + n * interval '20 seconds',
           24000 + (n * 7919) % 9000, 33.5 + (n % 25) / 10.0
    FROM generate_series(1, 200000) AS n;
`;

const INDEXES = 'CREATE INDEX readings_hive_taken ON readings (hive_id, taken_at DESC)';

async function migrate(pool, variant) {
  await pool.query(TABLES);
  if (variant !== 'flawed') await pool.query(INDEXES);
  await pool.query('VACUUM ANALYZE readings');
}

module.exports = { migrate };
