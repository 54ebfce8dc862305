CREATE TABLE customer (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE product (id int PRIMARY KEY, title text NOT NULL, cents int NOT NULL);
CREATE TABLE invoice (id int PRIMARY KEY, customer_id int NOT NULL REFERENCES customer);
CREATE TABLE line (
  id int PRIMARY KEY, invoice_id int NOT NULL REFERENCES invoice, product_id int NOT NULL REFERENCES product, pieces int NOT NULL
);
INSERT INTO customer SELECT i, 'Customer ' || i FROM generate_series(1, 50) i;
INSERT INTO product SELECT i, 'Product ' || i, 100 + i * 7 % 900 FROM generate_series(1, 2000) i;
INSERT INTO invoice SELECT i, 1 + i % 50 FROM generate_series(1, 200) i;
INSERT INTO line SELECT i, 1 + i % 200, 1 + (i * 13 + i / 200 * 7) % 2000, 1 + i % 5 FROM generate_series(1, 120000) i;
CREATE INDEX line_invoice ON line (invoice_id);
ANALYZE;
