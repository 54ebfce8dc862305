"""Cover for allotment gardens: a quote for hail, frost and flood, from the reinsurer's rating nodes."""

import json
import os
import time

import urllib3
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import Http404, HttpResponse, JsonResponse
from django.urls import path
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

VARIANT = os.environ.get("VARIANT", "flawed")
PORT = int(os.environ["PORT"])
NODES = (f"http://127.0.0.1:{PORT + 1}", f"http://127.0.0.1:{PORT + 2}")
PERILS = ("hail", "frost", "flood")
CONNECT_S = 0.25
READ_S = {
    "flawed": 3.0,
    "mended": 0.2,
    "healthy": 2.0,
}

settings.configure(
    DEBUG=False,
    SECRET_KEY="allotment-cover",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=[f"{__name__}.observe"],
    INSTALLED_APPS=[],
    USE_TZ=True,
)

REQUESTS = Counter("django_http_responses_total_by_status", "Answers", ["status"])
LATENCY = Histogram(
    "django_http_requests_latency_seconds", "Time to answer", ["view"], buckets=(0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8)
)
RATING = Histogram(
    "rating_call_seconds", "Time of a call to a rating node", ["outcome"], buckets=(0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8)
)
OPEN_CALLS = Gauge("rating_calls_open", "Calls to rating nodes under way")

pool = urllib3.PoolManager(
    num_pools=4,
    maxsize=64,
    retries=False,
    timeout=urllib3.Timeout(connect=CONNECT_S, read=READ_S[VARIANT]),
)


def observe(get_response):
    def middleware(request):
        started = time.perf_counter()
        response = get_response(request)
        view = request.resolver_match.view_name if request.resolver_match else "unknown"
        LATENCY.labels(view).observe(time.perf_counter() - started)
        REQUESTS.labels(response.status_code).inc()
        return response

    return middleware


@OPEN_CALLS.track_inprogress()
def call(node, plot, peril):
    started = time.perf_counter()
    outcome = "error"
    try:
        answer = pool.request("GET", f"{node}/rates/{plot}/{peril}")
        outcome = "ok" if answer.status == 200 else "refused"
        return json.loads(answer.data)
    except urllib3.exceptions.ReadTimeoutError:
        outcome = "timeout"
        raise
    finally:
        RATING.labels(outcome).observe(time.perf_counter() - started)


def rate(plot, peril):
    """Ask the plot's node first, and the other one if that does not answer."""
    first = plot % 2
    try:
        return call(NODES[first], plot, peril)
    except urllib3.exceptions.HTTPError:
        return call(NODES[1 - first], plot, peril)


def quote(request, plot, peril):
    if peril not in PERILS:
        raise Http404(peril)
    try:
        rated = rate(plot, peril)
    except urllib3.exceptions.HTTPError:
        return JsonResponse({"error": "no rating node answered"}, status=504)
    premium = round(18 + rated["area"] * rated["rate"], 2)
    return JsonResponse({"plot": plot, "peril": peril, "premium": premium, "excess": round(premium * 0.2, 2)})


def health(request):
    return JsonResponse({"status": "up"})


def metrics(request):
    return HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)


urlpatterns = [
    path("health", health, name="health"),
    path("metrics", metrics, name="metrics"),
    path("plots/<int:plot>/cover/<slug:peril>", quote, name="quote"),
]

application = get_wsgi_application()
