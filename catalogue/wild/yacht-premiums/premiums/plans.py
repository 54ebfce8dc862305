"""Each partner may ask for so many quotations a day, depending on its plan."""

from datetime import datetime, timedelta

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone

COUNTED = "/quotations/"


def seconds_to_midnight(now: datetime) -> int:
    midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return int((midnight - now).total_seconds()) + 1


class PlanMiddleware:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path.startswith(COUNTED):
            return self.get_response(request)
        partner = request.headers.get("X-Partner", "default")
        allowed = settings.PLANS[settings.DEFAULT_PLAN]["calls_per_day"]
        now = timezone.now()
        key = f"calls:{partner}:{now:%Y-%m-%d}"
        cache.add(key, 0, timeout=2 * 86_400)
        used = cache.incr(key)
        if used > allowed:
            response = JsonResponse({"error": f"{allowed} quotations a day are included in your plan"}, status=429)
            response["Retry-After"] = str(seconds_to_midnight(now))
            return response
        response = self.get_response(request)
        response["X-Plan-Remaining"] = str(allowed - used)
        return response
