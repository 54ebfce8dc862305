from flask import Flask, jsonify, request
from prometheus_client import Gauge
from prometheus_flask_exporter import PrometheusMetrics

from . import remote
from .holds import make_holds

app = Flask(__name__)
metrics = PrometheusMetrics(app, group_by="endpoint", excluded_paths=["/health"])
holds = make_holds()
Gauge("seats_holds", "Holds that are not paid yet").set_function(lambda: len(holds))

LIMIT = {"gold": 8, "silver": 6}


@app.route("/screenings/<int:screening>/hold", methods=["GET", "POST"])
def hold(screening):
    party = request.args.get("party", 1, type=int)
    try:
        account = remote.account(request.args.get("account", "guest"))
        if not 1 <= party <= LIMIT.get(account["tier"], 4):
            return jsonify(error="too many seats"), 400
        return jsonify(holds.hold(screening, party, account["account"]))
    except remote.RemoteError as error:
        return jsonify(error=str(error)), 502


@app.get("/health")
def health():
    return "ok\n"
