import time

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter(
    "django_http_responses_total_by_status_view_method", "Responses", ["status", "view", "method"]
)
LATENCY = Histogram(
    "django_http_requests_latency_seconds_by_view_method",
    "Latency of requests",
    ["view", "method"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 10),
)
ACTIVE = Gauge("django_http_requests_active", "Requests being served")


class Measure:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        if request.path == "/metrics":
            return self.get_response(request)
        began = time.perf_counter()
        with ACTIVE.track_inprogress():
            response = self.get_response(request)
        match = request.resolver_match
        view = match.view_name if match else "none"
        LATENCY.labels(view, request.method).observe(time.perf_counter() - began)
        REQUESTS.labels(response.status_code, view, request.method).inc()
        return response
