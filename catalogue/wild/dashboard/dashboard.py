"""Machines report here and get back the board for their display."""
import asyncio
import os
import random
import time
from collections import deque

from prometheus_client import Gauge
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from starlette_exporter import PrometheusMiddleware, handle_metrics

VARIANT = os.environ.get("VARIANT", "flawed")
SENSOR_SECONDS = 0.35 if VARIANT == "healthy" else 0.2
SHOWN = 40

events = [] if VARIANT == "flawed" else deque(maxlen=SHOWN)
Gauge("dashboard_events", "Events on the board").set_function(lambda: len(events))


async def read_sensor(machine: str) -> dict:
    await asyncio.sleep(SENSOR_SECONDS)
    return {
        "machine": machine,
        "at": time.time(),
        "temperature": round(random.gauss(61, 4), 2),
        "vibration": [round(random.random(), 4) for _ in range(8)],
        "note": "within limits, next inspection in 14 days",
    }


def summary() -> dict:
    temperatures = [event["temperature"] for event in events]
    return {"mean": sum(temperatures) / len(temperatures), "highest": max(temperatures)}


async def report(request):
    event = await read_sensor(request.path_params["machine"])
    events.append(event)
    return JSONResponse({"summary": summary(), "events": list(events)})


async def alive(request):
    return PlainTextResponse("alive")


app = Starlette(
    routes=[Route("/machines/{machine}/report", report), Route("/alive", alive), Route("/metrics", handle_metrics)]
)
app.add_middleware(PrometheusMiddleware, app_name="dashboard", filter_unhandled_paths=True)
