import os

from flask import Flask
from prometheus_flask_exporter import PrometheusMetrics

from . import ship_log, tracking


def create_app():
    app = Flask(__name__)
    app.config["VARIANT"] = os.environ.get("VARIANT", "flawed")
    app.config["LOGSTORE"] = ("127.0.0.1", int(os.environ["PORT"]) + 1)
    app.config["DEPOT_SECONDS"] = 0.4 if app.config["VARIANT"] == "healthy" else 0.25
    PrometheusMetrics(app, path="/internal/metrics", group_by="url_rule")
    ship_log.configure(app)
    app.register_blueprint(tracking.pages)
    return app
