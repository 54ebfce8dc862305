// Dues of the boats that call at a harbour: each call gets the next receipt of the harbour's ledger.
import { createServer, get, Agent } from "node:http";
import { createRequire } from "node:module";

const pg = createRequire(`${process.env.WILD_BUILD}/package.json`)("pg");

const PORT = Number(process.env.PORT);
const VARIANT = process.env.VARIANT ?? "flawed";
const CUSTOMS_PORT = PORT + 2;
const agent = new Agent({ keepAlive: true });
const pool = new pg.Pool({
  host: "127.0.0.1",
  port: PORT + 1,
  user: "postgres",
  database: "postgres",
  max: 140,
});

const LEDGER = "SELECT next_receipt FROM ledgers WHERE harbour = $1 FOR UPDATE";
const ADVANCE = "UPDATE ledgers SET next_receipt = next_receipt + 1 WHERE harbour = $1";
const ISSUE = `
  WITH taken AS (UPDATE ledgers SET next_receipt = next_receipt + 1 WHERE harbour = $1 RETURNING next_receipt - 1 AS number)
  INSERT INTO receipts (harbour, number, boat, cents) SELECT $1, number, $2, $3 FROM taken RETURNING number`;
const RECEIPT = "INSERT INTO receipts (harbour, number, boat, cents) VALUES ($1, $2, $3, $4)";

// Asks customs for the rate of a boat, by its flag.
function customsRate(boat) {
  return new Promise((resolve, reject) => {
    const request = get({ host: "127.0.0.1", port: CUSTOMS_PORT, path: `/rates/${boat}`, agent }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (part) => (text += part));
      answer.on("end", () => resolve(JSON.parse(text)));
      answer.on("error", reject);
    });
    request.on("error", reject);
  });
}

const dues = (rate, metres) => Math.round(rate.centsPerMetre * metres * (rate.exempt ? 0.5 : 1));

async function inTransaction(work) {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const result = await work(client);
    await client.query("COMMIT");
    client.release();
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    client.release(error);
    throw error;
  }
}

async function issueAtomically(harbour, boat, metres) {
  return inTransaction(async (client) => {
    const { rows } = await client.query(LEDGER, [harbour]);
    const cents = dues(await customsRate(boat), metres);
    await client.query(RECEIPT, [harbour, rows[0].next_receipt, boat, cents]);
    await client.query(ADVANCE, [harbour]);
    return { harbour, receipt: Number(rows[0].next_receipt), boat, cents };
  });
}

async function issueRated(harbour, boat, metres) {
  const rate = await customsRate(boat);
  const cents = dues(rate, metres);
  const { rows } = await pool.query(ISSUE, [harbour, boat, cents]);
  return { harbour, receipt: Number(rows[0].number), boat, cents };
}

const issue = VARIANT === "flawed" ? issueAtomically : issueRated;

function answer(response, status, body) {
  const text = JSON.stringify(body);
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
  response.end(text);
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url, "http://harbour");
  const called = /^\/harbours\/(\d+)\/boats\/(\d+)\/dues$/.exec(url.pathname);
  try {
    if (url.pathname === "/health") {
      await pool.query("SELECT 1 FROM ledgers LIMIT 1");
      return answer(response, 200, { status: "up" });
    }
    if (!called) return answer(response, 404, { error: "not found" });
    const metres = Number(url.searchParams.get("metres") ?? 11);
    return answer(response, 200, await issue(Number(called[1]), Number(called[2]), metres));
  } catch (error) {
    console.error(error.message);
    return answer(response, 500, { error: "internal error" });
  }
});

server.keepAliveTimeout = 75_000;
server.listen(PORT, "127.0.0.1", 512);
