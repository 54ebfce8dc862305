"""Matches the addresses of manifests with the street register."""

import logging
import time

from flask import Flask, abort, jsonify, request

import register
from geocoder import Geocoder
from matching import rank, split_house
from scoring import make_executor
from settings import settings

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
log = logging.getLogger("street-match")

app = Flask(__name__)
geocoder = Geocoder(settings.geocoder_ms)
executor = make_executor(settings)
executor.submit(rank, "Station Road", [(1, "Station Road")], 0.5).result()
log.info("scoring with %s (%d)", settings.executor, settings.scorers)


@app.get("/v1/match")
def match():
    query = request.args.get("q", "").strip()
    town = request.args.get("town", type=int)
    if not query or town is None:
        abort(400, "q and town are needed")
    began = time.perf_counter()
    name, house = split_house(query)
    candidates = [(street.id, street.name) for street in register.shortlist(town, name, settings.shortlist)]
    best = executor.submit(rank, name, candidates, settings.min_score).result()
    place = geocoder.locate(town, best[0][0] if best else None)
    took = (time.perf_counter() - began) * 1000
    if took > 5000:
        log.warning("slow match of %r in town %d: %.0f ms", query, town, took)
    return jsonify(
        query=query,
        house=house,
        position=place,
        matches=[{"id": id_, "name": register.get(id_).name, "score": score} for id_, score in best],
    )


@app.get("/v1/streets/<int:street_id>")
def street(street_id: int):
    found = register.get(street_id)
    if found is None:
        abort(404)
    return jsonify(id=found.id, town=found.town, name=found.name)


@app.get("/healthz")
def healthz():
    return jsonify(status="ok")
