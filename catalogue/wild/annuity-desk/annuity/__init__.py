"""Quotes for life annuities."""

import json
import logging
import os
from pathlib import Path

from flask import Flask, abort, jsonify, request
from prometheus_flask_exporter.multiprocess import GunicornInternalPrometheusMetrics

from annuity.funds import FundPrices
from annuity.mortality import AGES, SEXES
from annuity.valuation import make_valuation

log = logging.getLogger("annuity")


def create_app() -> Flask:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(process)d] %(levelname)s %(message)s")
    variant = os.environ.get("VARIANT", "mended")
    settings = json.loads((Path(__file__).parent.parent / "conf" / f"{variant}.json").read_text())
    app = Flask("annuity")
    GunicornInternalPrometheusMetrics(app, group_by="endpoint", excluded_paths=["^/health$"])
    funds = FundPrices(settings["fund_prices_ms"])
    valuation = make_valuation(settings["valuation"])
    log.info("quotes for ages %d to %d", AGES.start, AGES.stop - 1)

    @app.get("/quote")
    def quote():
        try:
            age = int(request.args["age"])
            premium = float(request.args["premium"])
            rate = float(request.args.get("rate", 0.02))
        except ValueError:
            abort(400, "age, premium and rate are numbers")
        sex = request.args.get("sex", "f")
        if age not in AGES or sex not in SEXES or not 0 < rate < 0.1:
            abort(422, "no annuity for these")
        price = funds.price("BOND-10Y")
        net = premium * (1 - settings["loading"]) * price
        offers = []
        for years in settings["guarantees"]:
            factor = valuation.factor(sex, age, rate, years)
            offers.append({"guaranteed_years": years, "monthly": round(net / factor, 2)})
        return jsonify(age=age, sex=sex, premium=premium, offers=offers)

    @app.get("/health")
    def health():
        return jsonify(ok=True)

    return app
