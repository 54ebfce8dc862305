"""Heritage permits: may the owner of a listed building alter its windows, roof or front?

Zones and grades come from the land registry, over its web API.
"""

import os
import sys
from contextlib import AsyncExitStack

import aiohttp
from aiolimiter import AsyncLimiter
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import Http404, JsonResponse
from django.urls import path

VARIANT = os.environ.get("VARIANT", "flawed")
PORT = int(os.environ["PORT"])
REGISTRY = f"http://127.0.0.1:{PORT + 1}"
REGISTRY_PLANS = {"starter": (45, 1.0), "council": (5000, 1.0)}  # calls and the seconds they are spread over
PLAN_OF = {"flawed": "starter", "mended": "council"}
WORKS = {"windows": 2, "roof": 3, "front": 1, "interior": 4}

settings.configure(
    DEBUG=False,
    SECRET_KEY="heritage-permits",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=[],
    INSTALLED_APPS=[],
    USE_TZ=True,
)


class Registry:
    """Client of the land registry."""

    def __init__(self, plan):
        self._session = None
        self._turns = AsyncLimiter(*REGISTRY_PLANS[plan]) if plan else None

    def _client(self):
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=20)
            )
        return self._session

    async def parcel(self, number):
        async with AsyncExitStack() as stack:
            if self._turns is not None:
                await stack.enter_async_context(self._turns)
            answer = await stack.enter_async_context(self._client().get(f"{REGISTRY}/parcels/{number}"))
            if answer.status == 404:
                return None
            answer.raise_for_status()
            return await answer.json()


registry = Registry(PLAN_OF.get(VARIANT))


def decide(parcel, work):
    threshold = WORKS[work]
    if parcel["zone"] == "conservation":
        threshold += 1
    if parcel["grade"] == 0:
        return "not needed"
    return "needed" if parcel["grade"] <= threshold else "notice only"


async def permit(request, number, work):
    if work not in WORKS:
        raise Http404(work)
    parcel = await registry.parcel(number)
    if parcel is None:
        raise Http404(number)
    return JsonResponse(
        {
            "parcel": number,
            "work": work,
            "zone": parcel["zone"],
            "grade": parcel["grade"],
            "permit": decide(parcel, work),
            "fee": 0 if parcel["grade"] == 0 else 45 + 20 * (4 - parcel["grade"]),
        }
    )


async def works(request):
    return JsonResponse({"works": sorted(WORKS)})


async def health(request):
    return JsonResponse({"status": "up"})


urlpatterns = [
    path("health", health),
    path("works", works),
    path("parcels/<int:number>/permits/<slug:work>", permit),
]

application = get_asgi_application()

if __name__ == "__main__":
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
