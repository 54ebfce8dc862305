CREATE TABLE coupons (code text PRIMARY KEY, percent int NOT NULL, valid_until date NOT NULL);
CREATE TABLE baskets (id int PRIMARY KEY, total_cents int NOT NULL, coupon text NOT NULL REFERENCES coupons);
INSERT INTO coupons VALUES ('SPRING', 10, '2099-01-01'), ('WELCOME', 15, '2099-01-01'), ('XMAS2019', 20, '2019-12-31');
INSERT INTO baskets
  SELECT n, 1000 + (n * 37) % 9000, CASE WHEN n % 25 = 0 THEN 'XMAS2019' WHEN n % 2 = 0 THEN 'SPRING' ELSE 'WELCOME' END
  FROM generate_series(1, 5000) n;
