"""Herbarium scans: sheet records of a botanical museum, with the label cut from the image archive's scan."""

import hashlib
import http.client
import json
import os
import tempfile
import time
from urllib.parse import parse_qs

from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

ARCHIVE_HOST = "127.0.0.1"
ARCHIVE_PORT = int(os.environ["PORT"]) + 1
ARCHIVE_TIMEOUT_S = 10

FAMILIES = ("Asteraceae", "Poaceae", "Rosaceae", "Fabaceae", "Orchidaceae", "Apiaceae")

REQUESTS = Counter("http_requests", "HTTP requests by path and status.", ["path", "status"])
LATENCY = Histogram(
    "http_request_duration_seconds",
    "Time to answer a request.",
    ["path"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2.5, 5),
)
IN_PROGRESS = Gauge("http_requests_in_progress", "Requests that are being answered.")
ARCHIVE_LATENCY = Histogram(
    "archive_request_duration_seconds",
    "Time of a fetch from the image archive.",
    buckets=(0.05, 0.1, 0.2, 0.3, 0.5, 1, 2.5),
)
SCANNED_BYTES = Counter("archive_received_bytes", "Bytes of scans received from the image archive.")


class NotFound(Exception):
    """No such sheet."""


def fetch_scan(sheet, target):
    """Copy the scan of a sheet from the archive into a file."""
    connection = http.client.HTTPConnection(ARCHIVE_HOST, ARCHIVE_PORT, timeout=ARCHIVE_TIMEOUT_S)
    try:
        with ARCHIVE_LATENCY.time():
            connection.request("GET", f"/scans/{sheet}.tif")
            response = connection.getresponse()
            if response.status == 404:
                raise NotFound(sheet)
            while chunk := response.read(16384):
                target.write(chunk)
                SCANNED_BYTES.inc(len(chunk))
    finally:
        connection.close()


def read_label(scan):
    """Return the label block, which the scanners append to the image."""
    scan.seek(-512, os.SEEK_END)
    block = scan.read(512)
    scan.seek(0)
    return {
        "checksum": hashlib.file_digest(scan, "sha256").hexdigest(),
        "collector": f"coll-{block[0]:03d}",
        "drawer": int.from_bytes(block[1:3], "big") % 900,
    }


def sheet_record(query):
    sheet = int(query.get("sheet", ["1"])[0])
    if sheet < 1:
        raise NotFound(sheet)
    with tempfile.TemporaryFile(prefix="scan-") as scan:
        fetch_scan(sheet, scan)
        size = scan.tell()
        label = read_label(scan)
    return {"sheet": sheet, "family": FAMILIES[sheet % len(FAMILIES)], "bytes": size, "label": label}


def families(query):
    return {"families": FAMILIES}


ROUTES = {"/sheets": sheet_record, "/families": families}


def reply(start_response, status, body, content_type="application/json"):
    start_response(status, [("Content-Type", content_type), ("Content-Length", str(len(body)))])
    return [body]


def application(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/metrics":
        return reply(start_response, "200 OK", generate_latest(), CONTENT_TYPE_LATEST)
    handler = ROUTES.get(path)
    if handler is None:
        return reply(start_response, "404 Not Found", b'{"error": "no such page"}')
    began = time.perf_counter()
    with IN_PROGRESS.track_inprogress():
        try:
            body = json.dumps(handler(parse_qs(environ.get("QUERY_STRING", "")))).encode()
            status = "200 OK"
        except NotFound:
            status, body = "404 Not Found", b'{"error": "no such sheet"}'
        except (OSError, http.client.HTTPException) as error:
            environ["wsgi.errors"].write(f"{path}: {error}\n")
            status, body = "500 Internal Server Error", b'{"error": "sheet cannot be read"}'
    LATENCY.labels(path).observe(time.perf_counter() - began)
    REQUESTS.labels(path, status[:3]).inc()
    return reply(start_response, status, body)
