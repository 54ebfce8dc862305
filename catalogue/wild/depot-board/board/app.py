"""The depot board."""

import logging
import time

from flask import Flask, Response, abort, g, jsonify, request
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Histogram, generate_latest

from .carriers import Carriers
from .figures import RefreshedFigures, TickingFigures
from .settings import DEPOTS, load

log = logging.getLogger("board")

REQUESTS = Counter("http_requests_total", "Requests", ["method", "route", "status"])
SECONDS = Histogram("http_request_duration_seconds", "Time to answer", ["route"])


def create_app() -> Flask:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    settings = load()
    app = Flask(__name__)
    figures = TickingFigures(settings) if settings.variant == "flawed" else RefreshedFigures(settings)
    carriers = Carriers(settings.carrier_wait_s)
    log.info("board of %d depots, figures kept %.0f s", len(DEPOTS), settings.ttl_s)

    @app.before_request
    def started() -> None:
        g.started = time.perf_counter()

    @app.after_request
    def counted(response: Response) -> Response:
        route = request.url_rule.rule if request.url_rule else "none"
        REQUESTS.labels(request.method, route, response.status_code).inc()
        SECONDS.labels(route).observe(time.perf_counter() - g.started)
        return response

    @app.get("/healthz")
    def healthz() -> Response:
        return jsonify(status="ok")

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(generate_latest(), mimetype=CONTENT_TYPE_LATEST)

    @app.get("/depots")
    def depots() -> Response:
        return jsonify(depots=list(DEPOTS))

    @app.get("/depots/<depot>/load")
    def depot_load(depot: str) -> Response:
        if depot not in DEPOTS:
            abort(404)
        arriving = carriers.next_arrivals(depot)
        return jsonify(figures.get(depot) | {"arriving": arriving})

    return app
