"""Building permits by parcel, for residents and estate agents."""

import time

import urllib3
from flask import Flask, Response, g, jsonify, request
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

import settings
from limiter import TokenBucket

app = Flask(__name__)
bucket = TokenBucket(settings.REQUESTS_PER_SECOND, settings.BURST)
land_office = urllib3.HTTPConnectionPool(
    "127.0.0.1", settings.LAND_OFFICE_PORT, maxsize=settings.CONNECTIONS, timeout=10, retries=False
)

REQUESTS = Counter("flask_http_request_total", "Total number of HTTP requests", ["method", "status"])
SECONDS = Histogram("flask_http_request_duration_seconds", "Flask HTTP request duration in seconds", ["method", "path"])
IN_PROGRESS = Gauge("flask_http_requests_in_progress", "HTTP requests in progress")

PERMITS = {
    "1182-40": [
        {"number": "BP-2019-0417", "kind": "loft conversion", "state": "completed"},
        {"number": "BP-2024-1120", "kind": "heat pump", "state": "issued"},
    ],
    "1182-41": [{"number": "BP-2022-0932", "kind": "carport", "state": "expired"}],
}


@app.before_request
def begin():
    g.began = time.perf_counter()
    IN_PROGRESS.inc()
    if request.path == "/permits" and not bucket.admit():
        return jsonify(error="too many requests"), 429, {"Retry-After": "1"}
    return None


@app.after_request
def observe(response: Response) -> Response:
    if request.path == "/permits":
        REQUESTS.labels(request.method, response.status_code).inc()
        SECONDS.labels(request.method, request.path).observe(time.perf_counter() - g.began)
    return response


@app.teardown_request
def end(_error):
    IN_PROGRESS.dec()


@app.get("/permits")
def permits():
    parcel = request.args.get("parcel", "")
    if parcel not in PERMITS:
        return jsonify(error="no such parcel"), 404
    answer = land_office.request("GET", f"/parcels/{parcel}")
    return jsonify(parcel=answer.json(), permits=PERMITS[parcel])


@app.get("/healthz")
def healthz():
    return jsonify(status="ok")


@app.get("/metrics")
def metrics():
    return Response(generate_latest(), content_type=CONTENT_TYPE_LATEST)
