"""The cinema group's accounts and the theatre's seat system."""
import os

import urllib3
from prometheus_client import Histogram

ACCOUNTS_URL = os.environ.get("ACCOUNTS_URL", "http://127.0.0.1:8081")
THEATRE_URL = os.environ.get("THEATRE_URL", "http://127.0.0.1:8082")

CALLS = Histogram("remote_call_seconds", "Time of calls to other systems", ["system"])
http = urllib3.PoolManager(num_pools=4, maxsize=128, timeout=urllib3.Timeout(total=10), retries=False)


class RemoteError(Exception):
    pass


def _call(system, method, url):
    with CALLS.labels(system).time():
        try:
            response = http.request(method, url)
        except urllib3.exceptions.HTTPError as error:
            raise RemoteError(f"{system}: {error}") from error
    if response.status != 200:
        raise RemoteError(f"{system}: {response.status}")
    return response.json()


def account(number):
    return _call("accounts", "GET", f"{ACCOUNTS_URL}/accounts/{number}")


def claim(screening, party):
    return _call("theatre", "POST", f"{THEATRE_URL}/screenings/{screening}/claims?party={party}")
