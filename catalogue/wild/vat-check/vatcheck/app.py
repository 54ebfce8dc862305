import time

from flask import Flask, Response, g, jsonify, request
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

from . import numbers, register

app = Flask(__name__)
REQUESTS = Counter("http_requests", "Requests", ["method", "endpoint", "status"])
LATENCY = Histogram(
    "http_request_duration_seconds",
    "Time to answer",
    ["endpoint"],
    buckets=(0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10),
)
IN_PROGRESS = Gauge("http_requests_in_progress", "Requests being answered")
THREADS = Gauge("gunicorn_threads", "Threads that answer requests")
THREADS.set(96)


@app.before_request
def begin():
    g.began = time.perf_counter()
    IN_PROGRESS.inc()


@app.after_request
def count(response):
    LATENCY.labels(request.endpoint).observe(time.perf_counter() - g.began)
    REQUESTS.labels(request.method, request.endpoint, response.status_code).inc()
    return response


@app.teardown_request
def end(_error):
    IN_PROGRESS.dec()


@app.get("/check/<text>")
def check(text):
    try:
        country, number = numbers.split(text)
    except ValueError as error:
        return jsonify(valid=False, reason=str(error)), 422
    try:
        answer = register.ask(country, number)
    except register.Unavailable:
        return jsonify(error="the register does not answer"), 503
    return jsonify(country=country, number=number, valid=answer["valid"], name=answer["name"], proof=answer["requestId"])


@app.get("/ping")
def ping():
    return "pong"


@app.get("/metrics")
def metrics():
    return Response(generate_latest(), content_type=CONTENT_TYPE_LATEST)
