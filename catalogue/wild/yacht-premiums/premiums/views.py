import json
from decimal import ROUND_HALF_UP, Decimal

import urllib3
from django.conf import settings
from django.http import HttpRequest, JsonResponse

http = urllib3.PoolManager(num_pools=2, maxsize=160)

HULLS = {
    "sloop": {"length_m": 11, "value": 82_000},
    "ketch": {"length_m": 14, "value": 131_000},
    "trawler": {"length_m": 16, "value": 240_000},
}
CRUISING_AREA = {"coastal": Decimal("1.00"), "north-sea": Decimal("1.18"), "atlantic": Decimal("1.42")}


def premium(value: int, length_m: int, area: str, risk: Decimal) -> Decimal:
    base = Decimal(value) * Decimal("0.0075") + Decimal(length_m) * 9
    return (base * CRUISING_AREA[area] * risk).quantize(Decimal("0.01"), ROUND_HALF_UP)


def quotation(request: HttpRequest, hull: str) -> JsonResponse:
    yacht = HULLS.get(hull)
    if yacht is None:
        return JsonResponse({"error": "unknown hull"}, status=404)
    try:
        answer = http.request("GET", f"{settings.UNDERWRITER_URL}/risk/{hull}", timeout=20, retries=1)
    except urllib3.exceptions.HTTPError:
        answer = None
    if answer is None or answer.status != 200:
        return JsonResponse({"error": "underwriter unavailable"}, status=502)
    risk = Decimal(json.loads(answer.data)["factor"])
    prices = {area: str(premium(area=area, risk=risk, **yacht)) for area in CRUISING_AREA}
    return JsonResponse({"hull": hull, "currency": "EUR", "yearly": prices})


def alive(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})
