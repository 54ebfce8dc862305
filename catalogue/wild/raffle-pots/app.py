"""Raffle pots of a county fair: the kiosks add stakes to a pot, and read it."""

import json
import os
import secrets

from aiohttp import ClientSession, TCPConnector, web
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

from pots import PotLock, Vault

VARIANT = os.environ.get("VARIANT", "mended")
PORT = int(os.environ.get("PORT", "8080"))

REQUESTS = Histogram(
    "http_request_duration_seconds",
    "Time to answer a request",
    ["method", "handler", "status"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
IN_PROGRESS = Gauge("http_requests_in_progress", "Requests being answered")
STAKES = Counter("raffle_stakes_total", "Stakes taken")
COMMANDS = Counter("vault_commands_total", "Commands sent to the vault", ["command"])
HOLD = Histogram(
    "pot_lock_hold_seconds", "Time that a pot's lock was held", buckets=(0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5)
)

routes = web.RouteTableDef()


@web.middleware
async def measured(request: web.Request, handler):
    IN_PROGRESS.inc()
    loop_time = request.app.loop.time
    began = loop_time()
    status = 500
    try:
        response = await handler(request)
        status = response.status
        return response
    except web.HTTPException as error:
        status = error.status
        raise
    finally:
        IN_PROGRESS.dec()
        resource = request.match_info.route.resource
        name = resource.canonical if resource else "unknown"
        REQUESTS.labels(request.method, name, status).observe(loop_time() - began)


@routes.get("/pots/{pot}/stake")
async def stake(request: web.Request) -> web.Response:
    pot = request.match_info["pot"]
    try:
        cents = int(request.query.get("cents", "200"))
    except ValueError:
        raise web.HTTPBadRequest(text="cents is a whole number") from None
    state = await (drawn if VARIANT == "healthy" else added)(request.app, pot, cents)
    STAKES.inc()
    return web.json_response({"pot": pot, "ticket": f"{state['tickets']:07d}-{state['last']}", "odds": odds(state)})


@routes.get("/pots/{pot}")
async def show(request: web.Request) -> web.Response:
    pot = request.match_info["pot"]
    text = await request.app["vault"].call("GET", f"pot:{pot}")
    if not text:
        raise web.HTTPNotFound()
    return web.json_response({"pot": pot, **json.loads(text)})


@routes.get("/metrics")
async def metrics(_: web.Request) -> web.Response:
    return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


@routes.get("/health")
async def health(_: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


async def added(app: web.Application, pot: str, cents: int) -> dict:
    vault: Vault = app["vault"]
    async with app["lock"].of(pot):
        state = json.loads(await vault.call("GET", f"pot:{pot}") or '{"cents": 0, "tickets": 0}')
        state["cents"] += cents
        state["tickets"] += 1
        state["last"] = secrets.token_hex(4)
        await vault.call("SET", f"pot:{pot}", json.dumps(state, separators=(",", ":")))
    return state


async def drawn(app: web.Application, pot: str, cents: int) -> dict:
    """Have the steward draw the ticket; the vault adds stakes of such pots by itself."""
    async with app["steward"].get(f"http://127.0.0.1:{PORT + 2}/draw/{pot}") as answer:
        ticket = await answer.json()
    return {"tickets": int(await app["vault"].call("ADD", f"tickets:{pot}", "1")), "last": ticket["ticket"]}


def odds(state: dict) -> float:
    return round(1 / max(1, state["tickets"]), 7)


async def opened(app: web.Application):
    app["vault"] = await Vault.connect("127.0.0.1", PORT + 1, COMMANDS)
    app["lock"] = PotLock(app["vault"], VARIANT, HOLD)
    async with ClientSession(connector=TCPConnector(limit=0)) as app["steward"]:
        yield
    await app["vault"].close()


def main() -> None:
    app = web.Application(middlewares=[measured])
    app.add_routes(routes)
    app.cleanup_ctx.append(opened)
    web.run_app(app, port=PORT, access_log=None, print=None)


if __name__ == "__main__":
    main()
