CREATE TABLE tickets (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer   int         NOT NULL,
    subject    text        NOT NULL,
    state      text        NOT NULL DEFAULT 'open',
    opened_at  timestamptz NOT NULL DEFAULT now()
);
INSERT INTO tickets (customer, subject, state, opened_at)
SELECT (n::bigint * 7919) % 20000, 'Ticket about order ' || n, CASE WHEN n % 5 = 0 THEN 'open' ELSE 'closed' END,
       now() - n * interval '1 minute'
FROM generate_series(1, 400000) AS n;
ANALYZE tickets;
