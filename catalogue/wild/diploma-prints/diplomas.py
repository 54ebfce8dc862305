"""Printable diplomas of an evening school."""

import hashlib
import os
import tempfile
import time
from datetime import date
from pathlib import Path

from flask import Flask, Response, abort, g, request
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

VARIANT = os.environ["VARIANT"]
SPOOL = Path(os.environ["TMPDIR"]) / "spool"
SPOOL.mkdir(exist_ok=True)
COURSES = {"welding": "Welding, level II", "sommelier": "Wine service", "dutch-b1": "Dutch, B1", "joinery": "Joinery"}
PAGE = """%!PS-Adobe-3.0
%%Title: Diploma {number}
%%BoundingBox: 0 0 842 595
/Times-Roman findfont 34 scalefont setfont
120 420 moveto ({holder}) show
/Times-Roman findfont 20 scalefont setfont
120 370 moveto (has completed the course) show
120 330 moveto ({course}) show
120 120 moveto ({day}   No. {number}   {seal}) show
showpage
"""

REQUESTS = Counter("flask_http_request", "Requests answered.", ["method", "status"])
DURATION = Histogram("flask_http_request_duration_seconds", "Time to answer a request.", ["method", "path", "status"])
ACTIVE = Gauge("flask_http_requests_active", "Requests being answered.")
PRINTED = Counter("diplomas_printed", "Diplomas laid out.", ["course"])

app = Flask(__name__)


@app.before_request
def begin():
    g.began = time.perf_counter()
    ACTIVE.inc()


@app.after_request
def count(answer):
    REQUESTS.labels(request.method, answer.status_code).inc()
    path = request.url_rule.rule if request.url_rule else "unknown"
    DURATION.labels(request.method, path, answer.status_code).observe(time.perf_counter() - g.began)
    return answer


@app.teardown_request
def end(_):
    ACTIVE.dec()


def pupil(number):
    """Name and marks, from the records office's service."""
    time.sleep(0.120 if VARIANT == "healthy" else 0.030)
    digest = hashlib.md5(number.encode()).hexdigest()
    return {"holder": f"Holder {digest[:6].upper()}", "mark": int(digest[6:8], 16) % 5 + 6}


def seal(page):
    return hashlib.blake2b(page.encode(), digest_size=8).hexdigest()


def lay_out(page):
    """Write the page to the spool, where the printers' daemon could pick it up, and return its bytes."""
    fd, name = tempfile.mkstemp(suffix=".ps", dir=SPOOL)
    if VARIANT == "flawed":
        Path(name).write_text(page)
    else:
        with os.fdopen(fd, "w") as file:
            file.write(page)
    data = Path(name).read_bytes()
    os.unlink(name)
    return data


@app.get("/diplomas/<course>/<number>.ps")
def diploma(course, number):
    if course not in COURSES or not number.isalnum():
        abort(404)
    known = pupil(number)
    page = PAGE.format(
        number=number,
        holder=known["holder"],
        course=f"{COURSES[course]}, mark {known['mark']}",
        day=date.today().isoformat(),
        seal=seal(known["holder"] + course),
    )
    data = lay_out(page)
    PRINTED.labels(course).inc()
    return Response(data, content_type="application/postscript")


@app.get("/metrics")
def metrics():
    return Response(generate_latest(), content_type=CONTENT_TYPE_LATEST)
