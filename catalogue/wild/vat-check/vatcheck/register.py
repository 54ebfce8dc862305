"""The tax office's register."""
import os
import threading

import requests
from prometheus_client import Counter, Gauge, Histogram
from requests.adapters import HTTPAdapter

SECONDS = Histogram(
    "vat_register_request_duration_seconds",
    "Time of a call to the tax office's register",
    buckets=(0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10),
)
IN_PROGRESS = Gauge("vat_register_requests_in_progress", "Calls to the register that have not been answered yet")
ERRORS = Counter("vat_register_errors", "Calls to the register that failed", ["reason"])

_url = os.environ.get("REGISTER_URL", "http://127.0.0.1:8081")
_local = threading.local()


class Unavailable(Exception):
    pass


def _session():
    if not hasattr(_local, "session"):
        _local.session = requests.Session()
        _local.session.trust_env = False
        _local.session.mount("http://", HTTPAdapter(pool_connections=1, pool_maxsize=1))
    return _local.session


@IN_PROGRESS.track_inprogress()
@SECONDS.time()
def ask(country, number):
    try:
        answer = _session().get(f"{_url}/rest/{country}/{number}", timeout=(2, 30))
        answer.raise_for_status()
        return answer.json()
    except requests.RequestException as error:
        ERRORS.labels(type(error).__name__).inc()
        raise Unavailable from error
