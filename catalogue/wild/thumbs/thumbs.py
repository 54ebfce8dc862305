"""Grey thumbnails of product photos, brightened for the web shop."""
import io
import random
import struct
import time
import zlib
from functools import lru_cache

import settings
from flask import Flask, abort, send_file
from prometheus_flask_exporter import PrometheusMetrics

app = Flask(__name__)
metrics = PrometheusMetrics(app, group_by="endpoint")
metrics.info("thumbs_build", "version of this service", version="3.2.0")


def fetch_from_bucket(photo_id):
    """One GET to the object store. The photo is made up from its number."""
    time.sleep(settings.BUCKET_SECONDS)
    return _photo(photo_id % 50)


@lru_cache(maxsize=50)
def _photo(seed):
    rnd = random.Random(seed)
    return bytes(rnd.randrange(256) for _ in range(settings.WIDTH * settings.HEIGHT))


@lru_cache(maxsize=8)
def gamma_table(gamma):
    return bytes(min(255, round(255 * (v / 255) ** (1 / gamma))) for v in range(256))


def brighten(pixels, gamma):
    if settings.USE_TABLE:
        return pixels.translate(gamma_table(gamma))
    out = bytearray(len(pixels))
    for i, v in enumerate(pixels):
        out[i] = min(255, round(255 * (v / 255) ** (1 / gamma)))
    return bytes(out)


def png(pixels, width, height):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(b"\0" + pixels[y * width : (y + 1) * width] for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")
    )


@app.get("/thumb/<int:photo_id>.png")
def thumb(photo_id):
    if photo_id <= 0:
        abort(404)
    pixels = fetch_from_bucket(photo_id)
    bright = brighten(pixels, 1.6)
    return send_file(io.BytesIO(png(bright, settings.WIDTH, settings.HEIGHT)), mimetype="image/png")


@app.get("/ping")
@metrics.do_not_track()
def ping():
    return "pong"
