"""Prepare a trial: warm the service by requests, and verify the rows of its tables.

    python3 data.py warm HOST:PORT REQUESTS PEOPLE
    python3 data.py verify HOST:PORT REQUESTS PEOPLE LOGS

`warm` sends REQUESTS to each endpoint in turn before the load; `verify` counts the rows that they added.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
from collections.abc import Callable

THREADS = 8
# path, body of request number n, and the status that it is answered with
REQUESTS: tuple[tuple[str, Callable[[int, int], dict[str, object]], int], ...] = (
    ("/api/v1/logs/", lambda n, people: {"userId": 1 + n % people, "event": f"warm {n}"}, 201),
    ("/api/v1/users/", lambda n, people: {"username": f"warm{n}", "email": f"warm{n}@example.org"}, 201),
    (
        "/api/v1/users/authorize",
        lambda n, people: {"username": f"user{1 + n % people}", "group": "members"},
        200,
    ),
    ("/api/v1/users/ban", lambda n, people: {"username": f"user{1 + n % people}"}, 200),
    ("/api/v1/users/unban", lambda n, people: {"id": 1 + n % people}, 200),
    ("/api/v1/websites/", lambda n, people: {"ownerId": 1, "url": f"https://warm{n}.example.org/"}, 201),
)


def warm(address: str, requests: int, people: int) -> list[str]:
    """Send this many requests to every endpoint; return the unexpected responses."""
    faults: list[str] = []

    def share(first: int) -> None:
        connection = http.client.HTTPConnection(address, timeout=60)
        for number in range(first, requests, THREADS):
            for path, body, status in REQUESTS:
                connection.request(
                    "POST", path, json.dumps(body(number, people)), {"Content-Type": "application/json"}
                )
                answer = connection.getresponse()
                content = answer.read()
                # a user banned by another thread gets 403, which is correct too
                if answer.status != status and (path, answer.status) != ("/api/v1/users/authorize", 403):
                    faults.append(f"{path}: {answer.status} {content[:200]!r}")
        connection.close()

    threads = [threading.Thread(target=share, args=(first,)) for first in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return faults


def verify(address: str, requests: int, people: int, logs: int) -> list[str]:
    """List the tables whose rows differ from the snapshot plus this many requests to each endpoint."""
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", "/actuator/rows")
    rows_now = json.loads(connection.getresponse().read())
    connection.close()
    wanted = {
        "users": people + requests,
        "usergroup_user": people,
        "websites": people + requests,
        "login_history": requests,
        "logs": logs + requests,
    }
    return [
        f"{table}: {rows_now[table]} rows, not {rows}"
        for table, rows in wanted.items()
        if rows_now[table] != rows
    ]


def main() -> int:
    """Exit 1 with what is wrong, one a line."""
    verbs: dict[str, Callable[..., list[str]]] = {"warm": warm, "verify": verify}
    verb, address, *numbers = sys.argv[1:]
    faults = verbs[verb](address, *map(int, numbers))
    print("\n".join(faults[:20]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
