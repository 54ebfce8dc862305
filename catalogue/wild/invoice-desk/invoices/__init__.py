import time

import requests
from flask import Flask, Response, g, jsonify, request
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, Counter, Histogram, generate_latest
from psycopg_pool import PoolTimeout

from . import settings
from .db import PoolCollector, pool
from .issue import NoSuchOrder, in_one_go, in_steps

DURATION = Histogram("http_request_duration_seconds", "Time of requests", ["method", "endpoint"])
REQUESTS = Counter("http_requests", "Requests", ["method", "endpoint", "status"])

issue = in_one_go if settings.SIGN_WITH_ORDER_OPEN else in_steps


def create_app():
    app = Flask(__name__)
    pool.open(wait=True)
    REGISTRY.register(PoolCollector())

    @app.before_request
    def start():
        g.start = time.perf_counter()

    @app.after_request
    def measure(response):
        if request.endpoint not in ("metrics", "healthz"):
            endpoint = request.endpoint or "unknown"
            DURATION.labels(request.method, endpoint).observe(time.perf_counter() - g.start)
            REQUESTS.labels(request.method, endpoint, response.status_code).inc()
        return response

    @app.route("/orders/<int:order_id>/invoice", methods=["GET", "POST"])  # GET for the old shop
    def invoice(order_id):
        try:
            return jsonify(issue(order_id))
        except NoSuchOrder:
            return jsonify(error="no such order"), 404
        except (PoolTimeout, requests.RequestException) as error:
            return jsonify(error=str(error)), 503

    @app.get("/healthz")
    def healthz():
        return "ok\n"

    @app.get("/metrics")
    def metrics():
        return Response(generate_latest(), content_type=CONTENT_TYPE_LATEST)

    return app
