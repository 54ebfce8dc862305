import logging
import time

from flask import Blueprint, current_app, jsonify

pages = Blueprint("tracking", __name__)
log = logging.getLogger("parcels")

STATIONS = ["accepted", "sorted", "on its way", "in delivery", "delivered"]


def depot(parcel):
    time.sleep(current_app.config["DEPOT_SECONDS"])  # the depot's mainframe
    return STATIONS[sum(map(ord, parcel)) % len(STATIONS)]


@pages.route("/track/<parcel>")
def track(parcel):
    if not parcel.isalnum():
        return jsonify(error="letters and digits only"), 400
    state = depot(parcel)
    log.info("tracked parcel=%s state=%s", parcel, state)
    return jsonify(parcel=parcel, state=state)


@pages.route("/")
def home():
    return "Where is my parcel?"
