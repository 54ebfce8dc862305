import os
import threading
from decimal import Decimal

import requests
from flask import Flask, jsonify

TAX_URL = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}/vat"
app = Flask(__name__)
local = threading.local()

ORDERS = {
    n: {"customer": f"C{n % 97:04d}", "country": ("DE", "FR", "NL")[n % 3], "lines": [(k, Decimal(k * 7 + n % 13)) for k in range(1, 9)]}
    for n in range(1, 500)
}


def http():
    if not hasattr(local, "session"):
        local.session = requests.Session()
        local.session.trust_env = False
    return local.session


def vat(country):
    answer = http().get(f"{TAX_URL}/{country}", timeout=20)
    answer.raise_for_status()
    return Decimal(answer.json()["vat"]) / 100


@app.route("/invoices/<int:number>")
def invoice(number):
    order = ORDERS.get(number)
    if order is None:
        return jsonify(error="no such order"), 404
    net = sum(qty * price for qty, price in order["lines"])
    tax = (net * vat(order["country"])).quantize(Decimal("0.01"))
    return jsonify(number=number, customer=order["customer"], net=str(net), tax=str(tax), gross=str(net + tax))


@app.route("/healthz")
def healthz():
    return "ok\n"
