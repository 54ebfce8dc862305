"""What a trial begins with: the service warmed by requests, or not, and the tables as they should then be.

    python3 data.py warm HOST:PORT REQUESTS PEOPLE
    python3 data.py verify HOST:PORT REQUESTS PEOPLE LOGS

`REQUESTS` are sent to each endpoint in turn before the load; `verify` knows how many rows they have made.
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
    """Send so many requests to every endpoint; what was not answered as it should be."""
    faults: list[str] = []

    def share(first: int) -> None:
        connection = http.client.HTTPConnection(address, timeout=60)
        for number in range(first, requests, THREADS):
            for path, body, status in REQUESTS:
                connection.request(
                    "POST", path, json.dumps(body(number, people)), {"Content-Type": "application/json"}
                )
                answer = connection.getresponse()
                said = answer.read()
                # somebody whom another thread has banned is not let in, and is served all the same
                if answer.status != status and (path, answer.status) != ("/api/v1/users/authorize", 403):
                    faults.append(f"{path}: {answer.status} {said[:200]!r}")
        connection.close()

    threads = [threading.Thread(target=share, args=(first,)) for first in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return faults


def verify(address: str, requests: int, people: int, logs: int) -> list[str]:
    """What is not as the snapshot and so many requests to each endpoint leave it."""
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", "/actuator/rows")
    found = json.loads(connection.getresponse().read())
    connection.close()
    wanted = {
        "users": people + requests,
        "usergroup_user": people,
        "websites": people + requests,
        "login_history": requests,
        "logs": logs + requests,
    }
    return [
        f"{table}: {found[table]} rows, not {rows}" for table, rows in wanted.items() if found[table] != rows
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
