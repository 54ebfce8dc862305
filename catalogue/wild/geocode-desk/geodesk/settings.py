import os

VARIANT = os.environ.get("VARIANT", "flawed")
PORT = int(os.environ.get("PORT", "8080"))
PROVIDER_URL = os.environ.get("PROVIDER_URL", "http://127.0.0.1:8081")
PROVIDER_TIMEOUT = 10.0

if VARIANT == "flawed":
    CALLS_PER_SECOND = 60  # basic contract
else:
    CALLS_PER_SECOND = 2000  # fleet contract, from March on
