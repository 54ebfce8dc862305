CREATE TABLE holding (
    cph         text PRIMARY KEY,
    name        text NOT NULL,
    county      text NOT NULL
);

CREATE TABLE passport (
    id          bigserial PRIMARY KEY,
    ear_tag     text NOT NULL,
    breed       text NOT NULL,
    sex         char(1) NOT NULL,
    born        date NOT NULL,
    dam_tag     text,
    cph         text NOT NULL REFERENCES holding
);

INSERT INTO holding
SELECT '12/' || lpad((h % 90)::text, 3, '0') || '/' || lpad(h::text, 4, '0'),
       (ARRAY['Home', 'Hill', 'Brook', 'Church', 'Mill'])[1 + h % 5] || ' Farm ' || h,
       (ARRAY['Devon', 'Cumbria', 'Powys', 'Fife'])[1 + h % 4]
FROM generate_series(0, 399) AS h;

INSERT INTO passport (ear_tag, breed, sex, born, dam_tag, cph)
SELECT 'UK-' || (204500 + n / 400) || '-' || lpad((n % 400 * 2 + n / 400 % 2)::text, 5, '0'),
       (ARRAY['Hereford', 'Angus', 'Limousin', 'Friesian', 'Charolais'])[1 + n % 5],
       (ARRAY['F', 'M'])[1 + n % 2],
       date '2019-01-01' + n % 2200,
       'UK-' || (204000 + n / 400) || '-' || lpad((n % 400)::text, 5, '0'),
       '12/' || lpad((n % 400 % 90)::text, 3, '0') || '/' || lpad((n % 400)::text, 4, '0')
FROM generate_series(0, 47999) AS n;

CREATE UNIQUE INDEX passport_ear_tag ON passport (ear_tag);
ANALYZE;
