CREATE TABLE bikes (
    id bigint PRIMARY KEY,
    frame_no text NOT NULL,
    maker text NOT NULL,
    model text NOT NULL,
    colour text NOT NULL,
    owner_ref text NOT NULL,
    registered_on date NOT NULL
);

CREATE TABLE reports (
    id bigserial PRIMARY KEY,
    bike_id bigint NOT NULL REFERENCES bikes,
    reported_on date NOT NULL,
    state text NOT NULL
);

INSERT INTO bikes
SELECT n,
       (ARRAY['WBK', 'STV', 'KGA', 'PXL'])[1 + n % 4] || '-' || lpad((100000 + n)::text, 7, '0'),
       (ARRAY['Walbrook', 'Stevens', 'Koga', 'Pexel'])[1 + n % 4],
       'Tour ' || (1 + n % 37),
       (ARRAY['black', 'red', 'green', 'blue', 'silver'])[1 + n % 5],
       md5(n::text),
       date '2019-01-01' + (n % 2400)
FROM generate_series(1, 24000) AS n;

INSERT INTO reports (bike_id, reported_on, state)
SELECT n, date '2024-01-01' + (n % 600), (ARRAY['stolen', 'found', 'withdrawn'])[1 + n % 3]
FROM generate_series(1, 24000, 3) AS n;

CREATE UNIQUE INDEX bikes_frame_no ON bikes (frame_no);
CREATE INDEX reports_bike_id ON reports (bike_id);
ANALYZE;
