"""Counts who opens the newsletter: a picture of one pixel, and the country it was asked from."""
import os
import sqlite3
import tempfile
import time
from contextlib import closing

from flask import Flask, Response, abort, g, request

DB = os.path.join(tempfile.gettempdir(), "clicks.db")
VARIANT = os.environ.get("VARIANT", "flawed")

LINKS = range(1, 21)
PIXEL = bytes.fromhex("47494638396101000100800000000000ffffff21f90401000000002c000000000100010000020144003b")

app = Flask(__name__)


def db():
    if "db" not in g:
        g.db = sqlite3.connect(DB, timeout=60, isolation_level=None)
        g.db.execute("PRAGMA synchronous = NORMAL")
    return g.db


@app.teardown_appcontext
def close(_):
    if "db" in g:
        g.db.close()


def country_of(ip):
    """Where an address is, from the geo service: 20 ms away."""
    time.sleep(0.02)
    return "DE" if sum(map(int, ip.split("."))) % 2 else "FR"


def is_robot(agent):
    """Asks the bot list, which is a slow service of another team."""
    time.sleep(0.4 if VARIANT == "healthy" else 0.25)
    return "bot" in agent.lower()


def record_locked(link, ip):
    con = db()
    con.execute("BEGIN IMMEDIATE")
    con.execute("INSERT INTO clicks (link, country, at) VALUES (?, ?, ?)", (link, country_of(ip), time.time()))
    con.execute("UPDATE totals SET clicks = clicks + 1 WHERE link = ?", (link,))
    con.execute("COMMIT")


def record_short(link, ip):
    country = country_of(ip)
    con = db()
    con.execute("BEGIN IMMEDIATE")
    con.execute("INSERT INTO clicks (link, country, at) VALUES (?, ?, ?)", (link, country, time.time()))
    con.execute("UPDATE totals SET clicks = clicks + 1 WHERE link = ?", (link,))
    con.execute("COMMIT")


record = record_locked if VARIANT == "flawed" else record_short


@app.route("/c/<int:link>.gif")
def click(link):
    if link not in LINKS:
        abort(404)
    if not is_robot(request.headers.get("User-Agent", "")):
        record(link, "192.0.2.17")
    return Response(PIXEL, mimetype="image/gif", headers={"Cache-Control": "no-store"})


@app.route("/totals")
def totals():
    return {str(link): n for link, n in db().execute("SELECT link, clicks FROM totals ORDER BY link")}


with closing(sqlite3.connect(DB)) as first:
    first.executescript(
        """
        PRAGMA journal_mode = WAL;
        CREATE TABLE IF NOT EXISTS clicks (id INTEGER PRIMARY KEY, link INT, country TEXT, at REAL);
        CREATE TABLE IF NOT EXISTS totals (link INTEGER PRIMARY KEY, clicks INT NOT NULL);
        """
    )
    first.executemany("INSERT OR IGNORE INTO totals VALUES (?, 0)", [(link,) for link in LINKS])
    first.commit()
