import time

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

from .provider import Provider, ProviderError

REQUESTS = Counter("http_requests", "Requests by route and status", ["route", "status"])
DURATION = Histogram("http_request_duration_seconds", "Time in the handler", ["route"])
IN_PROGRESS = Gauge("http_requests_in_progress", "Requests being handled")
PROVIDER = web.AppKey("provider", Provider)

routes = web.RouteTableDef()


@web.middleware
async def measure(request, handler):
    resource = request.match_info.route.resource
    route = resource.canonical if resource else "unknown"
    if route == "/metrics":
        return await handler(request)
    status = 500
    start = time.perf_counter()
    with IN_PROGRESS.track_inprogress():
        try:
            response = await handler(request)
            status = response.status
            return response
        except web.HTTPException as error:
            status = error.status
            raise
        finally:
            DURATION.labels(route).observe(time.perf_counter() - start)
            REQUESTS.labels(route, status).inc()


@routes.get("/v1/geocode")
async def geocode(request):
    query = request.query.get("q", "").strip()
    if not query:
        return web.json_response({"error": "q is missing"}, status=400)
    try:
        features = await request.app[PROVIDER].search(query)
    except ProviderError as error:
        return web.json_response({"error": f"map provider: {error}"}, status=502)
    if not features:
        return web.json_response({"error": "no such address"}, status=404)
    best = max(features, key=lambda each: each["confidence"])
    return web.json_response({"query": query, **best["point"], "confidence": best["confidence"]})


@routes.get("/health")
async def health(request):
    return web.json_response({"status": "ok"})


@routes.get("/metrics")
async def metrics(request):
    return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


async def provider(app):
    app[PROVIDER] = Provider()
    yield
    await app[PROVIDER].close()


def make_app():
    app = web.Application(middlewares=[measure])
    app.add_routes(routes)
    app.cleanup_ctx.append(provider)
    return app
