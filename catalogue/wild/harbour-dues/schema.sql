CREATE TABLE ledgers (harbour integer PRIMARY KEY, next_receipt bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE receipts (
    harbour integer NOT NULL,
    number bigint NOT NULL,
    boat integer NOT NULL,
    cents integer NOT NULL,
    issued timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (harbour, number)
);
INSERT INTO ledgers SELECT n, 1 FROM generate_series(1, 40) AS n;
