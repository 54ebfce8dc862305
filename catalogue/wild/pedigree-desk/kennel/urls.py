from django.http import HttpResponse, JsonResponse
from django.urls import path
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from .registry import RegistryError
from .studbook import book

BREEDS = ("stabyhoun", "kooikerhondje", "hovawart", "lagotto", "barbet")


def health(request):
    return JsonResponse({"entries": book.size()})


def enter(request, chip):
    breed = request.GET.get("breed", BREEDS[chip % len(BREEDS)])
    if breed not in BREEDS:
        return JsonResponse({"error": "unknown breed"}, status=400)
    try:
        return JsonResponse(book.enter(chip, breed))
    except RegistryError as error:
        return JsonResponse({"error": str(error)}, status=502)


def metrics(request):
    return HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)


urlpatterns = [
    path("health", health, name="health"),
    path("entries/<int:chip>", enter, name="enter"),
    path("metrics", metrics, name="metrics"),
]
