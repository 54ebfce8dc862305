CREATE TABLE entry (
  id       bigserial PRIMARY KEY,
  account  int NOT NULL,
  booked   date NOT NULL,
  cents    bigint NOT NULL
);
INSERT INTO entry (account, booked, cents)
  SELECT i % 500, date '2026-01-01' + i % 300, (i * 7919) % 100000 - 40000 FROM generate_series(1, 20000) i;
CREATE INDEX entry_account ON entry (account, booked);

-- Closed years live in the archive, a foreign server that answers after `ms`.
CREATE FUNCTION carried_forward(acc int, ms int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_sleep(ms / 1000.0);
  RETURN acc * 1013;
END $$;
