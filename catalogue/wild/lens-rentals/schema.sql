CREATE TABLE lens (
    id       integer PRIMARY KEY,
    serial   text NOT NULL,
    model    text NOT NULL,
    day_rate numeric(8, 2) NOT NULL
);

CREATE TABLE rental (
    id          bigint PRIMARY KEY,
    lens_serial text NOT NULL,
    customer    text NOT NULL,
    taken_on    date NOT NULL,
    returned_on date,
    remarks     text NOT NULL DEFAULT ''
);

INSERT INTO lens
SELECT n, 'LX' || lpad(n::text, 6, '0'), (ARRAY['24-70 f/2.8', '70-200 f/4', '50 f/1.4', '100 macro'])[1 + n % 4], 12 + n % 40
FROM generate_series(1, 4000) AS n;

INSERT INTO rental
SELECT n,
       'lx' || lpad((1 + n % 4000)::text, 6, '0'),
       'C' || (n * 7919 % 25000),
       date '2023-01-01' + (n / 60)::int,
       CASE WHEN n <= 38000 THEN date '2023-01-03' + (n / 60)::int END,
       repeat('caps and hood checked; ', 3)
FROM generate_series(1, 40000) AS n;

CREATE UNIQUE INDEX lens_serial_key ON lens (serial);
CREATE INDEX rental_taken_on ON rental (taken_on);
