DROP TABLE IF EXISTS seat;
CREATE TABLE seat (show int, no int, state text NOT NULL DEFAULT 'free', holds int NOT NULL DEFAULT 0, PRIMARY KEY (show, no));
INSERT INTO seat (show, no, state)
  SELECT 12, n, CASE WHEN n % 30 = 29 THEN 'house' ELSE 'free' END FROM generate_series(0, 1199) n;
