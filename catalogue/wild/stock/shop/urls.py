from django.conf import settings
from django.http import HttpResponse, JsonResponse
from django.urls import path
from django.utils.module_loading import import_string
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Histogram, generate_latest

from . import carrier
from .models import Item
from .reserve import SoldOut

reserve = import_string(settings.RESERVE)
LATENCY = Histogram("shop_view_latency_seconds", "Time in a view", ["view"])
SOLD_OUT = Counter("shop_sold_out", "Reservations refused")


def reservation(request, sku):
    with LATENCY.labels("reservation").time():
        postcode = carrier.check_address(request.GET.get("to", "10115"))
        try:
            label = reserve(sku, postcode)
        except Item.DoesNotExist:
            return JsonResponse({"error": "no such item"}, status=404)
        except SoldOut:
            SOLD_OUT.inc()
            return JsonResponse({"error": "sold out"}, status=409)
        return JsonResponse({"sku": sku, "label": label})


def metrics(request):
    return HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)


urlpatterns = [
    path("items/<str:sku>/reserve", reservation),
    path("metrics", metrics),
    path("up", lambda request: HttpResponse("up")),
]
