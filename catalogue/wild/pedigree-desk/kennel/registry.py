"""Client of the kennel club's registry; every thread keeps its own connection."""

import http.client
import json
import threading

from django.conf import settings

_local = threading.local()


class RegistryError(Exception):
    pass


def parents(chip: int) -> dict:
    connection = getattr(_local, "connection", None)
    if connection is None:
        connection = _local.connection = http.client.HTTPConnection(*settings.REGISTRY, timeout=20)
    try:
        connection.request("GET", f"/chips/{chip}")
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise RegistryError(str(error)) from error
    if answer.status != 200:
        raise RegistryError(f"registry answered {answer.status}")
    return json.loads(body)
