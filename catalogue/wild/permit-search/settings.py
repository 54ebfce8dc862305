"""Settings of the permit search."""

import os

VARIANT = os.environ["VARIANT"]
PORT = int(os.environ["PORT"])

LAND_OFFICE_PORT = PORT + 1
LAND_OFFICE_SECONDS = 0.26 if VARIANT == "healthy" else 0.05
CONNECTIONS = 160

REQUESTS_PER_SECOND = 140
BURST = 20
if VARIANT != "flawed":
    REQUESTS_PER_SECOND, BURST = 5000, 500
