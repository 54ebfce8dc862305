"""The register of controlled drugs: each dose that a ward gives is booked here."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
from aiohttp import web

from register import GroupRegister, Register

REGISTER = web.AppKey("register", Register)
FORMULARY = web.AppKey("formulary", aiohttp.ClientSession)
routes = web.RouteTableDef()


@routes.get("/healthz")
async def healthz(request: web.Request) -> web.Response:
    return web.Response(text="ok\n")


@routes.get(r"/wards/{ward:\d+}/doses")  # GET: the ward's label printers can't do anything else
async def dose(request: web.Request) -> web.Response:
    ward = int(request.match_info["ward"])
    drug = request.query["drug"]
    mg = float(request.query["mg"])
    async with request.app[FORMULARY].get(f"/drugs/{drug}") as answer:
        limit = (await answer.json())["max_mg"]
    if mg > limit:
        raise web.HTTPUnprocessableEntity(text=f"more than {limit} mg of {drug}\n")
    number = await request.app[REGISTER].book(ward, drug, mg)
    return web.json_response({"ward": ward, "drug": drug, "mg": mg, "entry": number})


async def connect(app: web.Application) -> AsyncIterator[None]:
    is_flawed = os.environ.get("VARIANT", "flawed") == "flawed"
    app[REGISTER] = (Register if is_flawed else GroupRegister)(Path(os.environ["REGISTER_DIR"]))
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(os.environ["FORMULARY_URL"], connector=connector) as session:
        app[FORMULARY] = session
        yield
    await app[REGISTER].close()


app = web.Application()
app.add_routes(routes)
app.cleanup_ctx.append(connect)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, backlog=512)
