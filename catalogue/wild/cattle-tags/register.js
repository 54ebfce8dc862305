'use strict';
// Queries of the cattle register.
const { Pool } = require('pg');

const pool = new Pool({ max: 24 });

const COLUMNS = `
  SELECT p.ear_tag, p.breed, p.sex, to_char(p.born, 'YYYY-MM-DD') AS born, p.dam_tag, h.name AS holding, h.county
  FROM passport p JOIN holding h ON h.cph = p.cph`;

async function findAsTyped(tag) {
  const { rows } = await pool.query(
    `${COLUMNS}
     WHERE upper(p.ear_tag) = upper($1)`,
    [tag],
  );
  return rows[0];
}

async function findNormalised(tag) {
  const { rows } = await pool.query(
    `${COLUMNS}
     WHERE p.ear_tag = $1`,
    [tag.trim().toUpperCase()],
  );
  return rows[0];
}

module.exports = { pool, find: process.env.VARIANT === 'flawed' ? findAsTyped : findNormalised };
