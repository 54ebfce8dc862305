import os

_v = os.getenv("VARIANT", "flawed")
USE_TABLE = _v != "flawed"
BUCKET_SECONDS = 0.35 if _v == "healthy" else 0.25
WIDTH, HEIGHT = 192, 144
