"""Numbers notarial acts in the register of an office and has each one time-stamped."""

import os
from contextlib import asynccontextmanager
from hashlib import sha256

import aiohttp
import asyncpg
from prometheus_client import Gauge, Histogram
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette_exporter import PrometheusMiddleware, handle_metrics

VARIANT = os.environ.get("VARIANT", "flawed")
PORT = int(os.environ.get("PORT", "8080"))
DSN = os.environ.get("DATABASE_URL", f"postgresql://postgres@127.0.0.1:{PORT + 2}/postgres")
AUTHORITY = f"http://127.0.0.1:{PORT + 1}"

SCHEMA = """
create table if not exists offices (
    code text primary key,
    town text not null,
    last_number bigint not null default 0
);
create sequence if not exists ly1_number;
create sequence if not exists na3_number;
create sequence if not exists dj2_number;
create table if not exists acts (
    office text not null references offices,
    number bigint not null,
    digest text not null,
    stamp text not null,
    entered timestamptz not null default now(),
    primary key (office, number)
);
insert into offices (code, town) values ('LY1', 'Lyon'), ('NA3', 'Nantes'), ('DJ2', 'Dijon')
    on conflict do nothing;
"""

NEXT_NUMBER = "update offices set last_number = last_number + 1 where code = $1 returning last_number"
if VARIANT != "flawed":
    NEXT_NUMBER = "select nextval(format('%s_number', lower(code))::regclass) from offices where code = $1"

query_seconds = Histogram(
    "db_query_duration_seconds",
    "Time of a statement, from its start to its answer",
    ["statement"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
stamp_seconds = Histogram("timestamp_authority_duration_seconds", "Time of a call to the time-stamp authority")
pool_in_use = Gauge("db_pool_connections_in_use", "Connections that are lent out")
pool_size = Gauge("db_pool_connections", "Connections that are open")
pool_max = Gauge("db_pool_connections_max", "Connections that may be open")


@asynccontextmanager
async def lifespan(app: Starlette):
    async with (
        asyncpg.create_pool(DSN, min_size=16, max_size=150) as pool,
        aiohttp.ClientSession(AUTHORITY, connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        await pool.execute(SCHEMA)
        pool_in_use.set_function(lambda: pool.get_size() - pool.get_idle_size())
        pool_size.set_function(pool.get_size)
        pool_max.set(pool.get_max_size())
        app.state.pool = pool
        app.state.session = session
        yield


async def time_stamp(session: aiohttp.ClientSession, digest: str) -> str:
    with stamp_seconds.time():
        async with session.post("/stamps", json={"digest": digest}) as answer:
            answer.raise_for_status()
            return (await answer.json())["token"]


async def next_number(db: asyncpg.Connection, office: str) -> int:
    with query_seconds.labels("next_number").time():
        number = await db.fetchval(NEXT_NUMBER, office)
    if number is None:
        raise HTTPException(404, f"no office {office}")
    return number


async def insert_act(db: asyncpg.Connection, office: str, number: int, digest: str, stamp: str) -> None:
    with query_seconds.labels("insert_act").time():
        await db.execute(
            "insert into acts (office, number, digest, stamp) values ($1, $2, $3, $4)", office, number, digest, stamp
        )


async def enter(request: Request) -> JSONResponse:
    office = request.path_params["office"]
    title = request.query_params.get("title", "deed")
    async with request.app.state.pool.acquire() as db, db.transaction():
        number = await next_number(db, office)
        digest = sha256(f"{office}/{number} {title}".encode()).hexdigest()
        stamp = await time_stamp(request.app.state.session, digest)
        await insert_act(db, office, number, digest, stamp)
    return JSONResponse({"act": f"{office}/{number}", "digest": digest, "stamp": stamp})


async def healthz(_request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


app = Starlette(
    routes=[
        Route("/healthz", healthz),
        Route("/metrics", handle_metrics),
        Route("/offices/{office}/enter", enter),
    ],
    lifespan=lifespan,
)
app.add_middleware(PrometheusMiddleware, app_name="notary_acts", group_paths=True, skip_paths=["/metrics", "/healthz"])
