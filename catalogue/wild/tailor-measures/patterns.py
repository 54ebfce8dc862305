"""Pattern pieces for made-to-measure garments."""

import os
import threading

import requests
from flask import Flask, abort, jsonify, request

import fitting

CUTTER_URL = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}/cloth"
FITTER = os.environ.get("FITTER", "local")

app = Flask(__name__)
_local = threading.local()


def _session():
    if not hasattr(_local, "session"):
        _local.session = requests.Session()
        _local.session.trust_env = False
    return _local.session


def _measures():
    try:
        measures = {name: float(request.args[name]) for name in ("chest", "waist", "hip")}
    except (KeyError, ValueError):
        abort(400, "chest, waist and hip are needed, in cm")
    if not all(40 <= value <= 200 for value in measures.values()):
        abort(400, "measures are out of range")
    return measures


def _cloth_from_cutter(pieces):
    answer = _session().post(CUTTER_URL, json=pieces, timeout=10)
    answer.raise_for_status()
    return answer.json()["cloth_cm"]


@app.get("/patterns/<garment>")
def pattern(garment):
    if garment not in fitting.PIECES:
        abort(404, "no such garment")
    measures = _measures()
    pieces = fitting.blocks(garment, measures)
    if FITTER == "cutter":
        return jsonify(garment=garment, pieces=pieces, cloth_cm=_cloth_from_cutter(pieces))
    fitted = [fitting.fit(block, measures["waist"]) for block in pieces]
    cloth = sum(each["w"] * each["h"] for each in fitted) / 140 * 1.12
    return jsonify(garment=garment, pieces=fitted, cloth_cm=round(cloth, 1))


@app.get("/garments")
def garments():
    return jsonify(sorted(fitting.PIECES))


@app.get("/health")
def health():
    return "ok\n"
