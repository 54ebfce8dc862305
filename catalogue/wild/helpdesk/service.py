import asyncio
import os
from contextlib import asynccontextmanager

import asyncpg
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from starlette_exporter import PrometheusMiddleware, handle_metrics

CRM_SECONDS = float(os.environ.get("CRM_SECONDS", "0.2"))

RECENT = """
    SELECT id, subject, state, opened_at
    FROM tickets
    WHERE customer = $1
    ORDER BY opened_at DESC
    LIMIT 10
"""


async def customer_name(number: int) -> str:
    await asyncio.sleep(CRM_SECONDS)  # the CRM lives in another data centre
    return f"Customer {number:05d}"


async def tickets(request):
    customer = int(request.path_params["customer"])
    name = await customer_name(customer)
    rows = await request.app.state.pool.fetch(RECENT, customer)
    return JSONResponse(
        {
            "customer": name,
            "tickets": [
                {"id": r["id"], "subject": r["subject"], "state": r["state"], "opened": r["opened_at"].isoformat()}
                for r in rows
            ],
        }
    )


async def ping(request):
    return PlainTextResponse("pong")


@asynccontextmanager
async def lifespan(app):
    async with asyncpg.create_pool(user="postgres", database="postgres", min_size=10, max_size=20) as pool:
        app.state.pool = pool
        yield


app = Starlette(
    routes=[
        Route("/customers/{customer:int}/tickets", tickets),
        Route("/ping", ping),
        Route("/metrics", handle_metrics),
    ],
    lifespan=lifespan,
)
app.add_middleware(PrometheusMiddleware, app_name="helpdesk", prefix="helpdesk", group_paths=True)
