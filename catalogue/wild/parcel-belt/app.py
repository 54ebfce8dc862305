import hashlib
import os
import random
import time

from flask import Flask, Response, jsonify
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

import store

VARIANT = os.environ["VARIANT"]
DB = os.path.join(os.environ["TMPDIR"], "parcels.db")
LABEL_KEY = b"belt-4-north"

if os.path.exists(DB):
    os.unlink(DB)
store.create(DB)
pool = store.ConnectionPool(DB, size=80 if VARIANT == "healthy" else 20, timeout=2.0)

SORTED = Counter("parcels_sorted_total", "Parcels by lane", ["lane"])
LATENCY = Histogram("sort_duration_seconds", "Time to sort one parcel")
Gauge("db_pool_size", "Connections of the pool").set(pool.size)
Gauge("db_pool_checked_out", "Connections in use").set_function(lambda: pool.size - pool.idle())
Gauge("db_pool_idle", "Connections at rest").set_function(pool.idle)

app = Flask(__name__)


def label(parcel, depot, last):
    text = f"{parcel['barcode']}|{depot['name']}|{last}".encode()
    if VARIANT == "healthy":
        time.sleep(0.25)  # the printer signs it
        return parcel["barcode"]
    return hashlib.pbkdf2_hmac("sha256", text, LABEL_KEY, 9000).hex()


@app.get("/belt/next")
@LATENCY.time()
def sort_next():
    parcel_id = random.randrange(1, store.PARCELS + 1)
    conn = pool.acquire()
    parcel = conn.execute("select * from parcel where id = ?", (parcel_id,)).fetchone()
    if parcel["depot_id"] is None:
        if VARIANT != "flawed":
            pool.release(conn)
        SORTED.labels("manual").inc()
        return jsonify(barcode=parcel["barcode"], lane="manual", reason="postcode not served")
    depot = conn.execute("select * from depot where id = ?", (parcel["depot_id"],)).fetchone()
    last = conn.execute("select max(at), count(*) from scan where parcel_id = ?", (parcel_id,)).fetchone()
    stamp = label(parcel, depot, last[0])
    pool.release(conn)
    SORTED.labels("chute").inc()
    return jsonify(barcode=parcel["barcode"], lane=f"chute {depot['chute']}", scans=last[1], label=stamp)


@app.errorhandler(store.PoolExhausted)
def exhausted(error):
    return jsonify(error=str(error)), 503


@app.get("/healthz")
def healthz():
    return "ok"


@app.get("/metrics")
def metrics():
    return Response(generate_latest(), content_type=CONTENT_TYPE_LATEST)
