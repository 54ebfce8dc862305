"""Tells the ferry's check-in whether a pet may travel, from the national chip registry's record of it."""

import json
import os
import re
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import Any

import urllib3

REGISTRY_URL = os.environ["REGISTRY_URL"]
REGISTRY_CA = os.environ["REGISTRY_CA"]
PATH = re.compile(r"/passports/(\d{15})")
SAILING = date(2027, 3, 14)
TIMEOUT = urllib3.Timeout(connect=10, read=10)


def new_pool() -> urllib3.PoolManager:
    """Return a client that trusts the registry's certificate alone."""
    return urllib3.PoolManager(maxsize=160, ca_certs=REGISTRY_CA, timeout=TIMEOUT, retries=False)


class FreshRegistry:
    """The chip registry, asked as the vendor's sample shows."""

    def fetch(self, chip: str) -> dict[str, Any]:
        """Return the record of a chip."""
        with new_pool() as pool:
            answer = pool.request("GET", f"{REGISTRY_URL}/v1/chips/{chip}")
        return answer.json()


class Registry:
    """The chip registry."""

    def __init__(self) -> None:
        self.pool = new_pool()

    def fetch(self, chip: str) -> dict[str, Any]:
        """Return the record of a chip."""
        return self.pool.request("GET", f"{REGISTRY_URL}/v1/chips/{chip}").json()


registry = FreshRegistry() if os.environ["VARIANT"] == "flawed" else Registry()


def passport(chip: str) -> dict[str, Any]:
    """Return what the check-in shows of a pet."""
    record = registry.fetch(chip)
    born = date.fromisoformat(record["born"])
    rabies_until = date.fromisoformat(record["rabies_until"])
    reasons = []
    if SAILING - born < timedelta(weeks=15):
        reasons.append("younger than 15 weeks")
    if rabies_until < SAILING:
        reasons.append(f"rabies vaccination ended on {rabies_until}")
    if record["species"] == "dog":
        reasons.append("tapeworm treatment to be shown")
    return {
        "chip": chip,
        "species": record["species"],
        "keeper": record["keeper"],
        "sailing": SAILING.isoformat(),
        "may_travel": rabies_until >= SAILING,
        "remarks": reasons,
    }


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Serve /passports/CHIP and /health."""
    path = environ["PATH_INFO"]
    status = "200 OK"
    if path == "/health":
        body: dict[str, Any] = {"status": "ok"}
    elif found := PATH.fullmatch(path):
        try:
            body = passport(found[1])
        except urllib3.exceptions.HTTPError as error:
            status, body = "502 Bad Gateway", {"error": f"chip registry: {error}"}
    else:
        status, body = "404 Not Found", {"error": "no such page"}
    data = json.dumps(body).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(data)))])
    return [data]
