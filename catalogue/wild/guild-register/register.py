"""Register of the guild's craftspeople: who may fit, glaze or thatch, and until when."""

import hashlib
import os
import time
from datetime import date, timedelta

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import Http404, JsonResponse
from django.urls import path

CRAFTS = ("glazier", "thatcher", "fitter", "mason", "cooper", "wheelwright")
TOWNS = ("Ludlow", "Frome", "Hexham", "Totnes", "Buxton", "Whitby", "Rye")
ARCHIVE_S = 0.25 if os.environ.get("VARIANT") == "healthy" else 0.0
FIRST_DAY = date(2026, 1, 5)

settings.configure(
    DEBUG=False,
    SECRET_KEY="guild-register",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    INSTALLED_APPS=[],
    SECURE_PROXY_SSL_HEADER=("HTTP_X_FORWARDED_PROTO", "https"),
    USE_TZ=True,
)


def member_of(number):
    seal = hashlib.sha256(f"guild:{number}".encode()).hexdigest()
    return {
        "member": number,
        "craft": CRAFTS[number % len(CRAFTS)],
        "town": TOWNS[number % len(TOWNS)],
        "valid_until": (FIRST_DAY + timedelta(days=number % 700)).isoformat(),
        "seal": seal[:16],
    }


MEMBERS = {number: member_of(number) for number in range(1000, 4000)}


def from_archive(number):
    """Members who left are with the county archive, which takes its time."""
    time.sleep(ARCHIVE_S)
    return MEMBERS.get(number)


def member(request, number):
    found = from_archive(number) if ARCHIVE_S else MEMBERS.get(number)
    if found is None:
        raise Http404(number)
    return JsonResponse(found)


def craft(request, name):
    if name not in CRAFTS:
        raise Http404(name)
    members = [each for each in MEMBERS.values() if each["craft"] == name]
    return JsonResponse({"craft": name, "members": len(members), "first": members[:5]})


def health(request):
    return JsonResponse({"status": "up"})


urlpatterns = [
    path("health", health),
    path("members/<int:number>", member),
    path("crafts/<slug:name>", craft),
]

application = get_wsgi_application()
