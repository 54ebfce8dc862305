"""Till: prices the next basket with its coupon."""
import itertools
import os
import time
from datetime import date

from flask import Flask, jsonify
from psycopg_pool import ConnectionPool, PoolTimeout

VARIANT = os.environ.get("VARIANT", "flawed")
LOYALTY_SECONDS = 0.35 if VARIANT == "healthy" else 0.25

app = Flask(__name__)
pool = ConnectionPool(f"host={os.environ['PGHOST']} user=postgres", min_size=4, max_size=24, timeout=4, open=True)
queue = itertools.count(1)

QUERY = "SELECT b.total_cents, c.percent, c.valid_until FROM baskets b JOIN coupons c ON c.code = b.coupon WHERE b.id = %s"


class Expired(Exception):
    pass


def loyalty_points(cents):
    time.sleep(LOYALTY_SECONDS)  # the loyalty programme's service
    return cents // 100


def discounted(total, percent, valid_until):
    if valid_until < date.today():
        raise Expired
    return total * (100 - percent) // 100


def price_of(basket):
    conn = pool.getconn()
    total, percent, valid_until = conn.execute(QUERY, (basket,)).fetchone()
    cents = discounted(total, percent, valid_until)
    pool.putconn(conn)
    return cents


def price_of_safely(basket):
    with pool.connection() as conn:
        total, percent, valid_until = conn.execute(QUERY, (basket,)).fetchone()
    return discounted(total, percent, valid_until)


look_up = price_of if VARIANT == "flawed" else price_of_safely


@app.get("/till/next")
def next_basket():
    basket = next(queue) % 5000 + 1
    cents = look_up(basket)
    return jsonify(basket=basket, cents=cents, points=loyalty_points(cents))


@app.errorhandler(Expired)
def expired(_):
    return jsonify(cents=None, note="this coupon has expired")


@app.errorhandler(PoolTimeout)
def busy(_):
    return jsonify(error="database not available"), 500


@app.get("/")
def index():
    return "till\n"
