"""Lease drafts: fills the clause book of the housing association for a tenant, and tells what it came to."""

import asyncio
import contextlib
import hashlib
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

VARIANT = os.environ.get("VARIANT", "mended")
TENANTS = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}"
CLAUSES = 40
WORDS = "the landlord shall keep the premises of {tenant} in good repair and {tenant} shall give notice of defects "

DRAFTS = Counter("lease_drafts_total", "Drafts that were made", ["form"])
SECONDS = Histogram("http_request_duration_seconds", "Time of a request", ["handler"])


@dataclass
class Clause:
    number: int
    edition: int
    text: str


class ClauseBook:
    """The clauses in force, and who wants to hear of a new edition."""

    def __init__(self) -> None:
        self.clauses = [Clause(n, 1, WORDS * 12) for n in range(CLAUSES)]
        self.readers: list[Callable[[Clause], None]] = []

    def subscribe(self, reader: Callable[[Clause], None]) -> None:
        self.readers.append(reader)

    def unsubscribe(self, reader: Callable[[Clause], None]) -> None:
        self.readers.remove(reader)

    def revise(self, number: int) -> None:
        clause = self.clauses[number]
        clause.edition += 1
        for reader in self.readers:
            reader(clause)


@dataclass
class Draft:
    number: int
    tenant: str
    digest: str = ""
    texts: dict[int, str] = field(default_factory=dict)
    editions: dict[int, int] = field(default_factory=dict)

    def fill(self, clause: Clause) -> None:
        self.texts[clause.number] = clause.text.replace("{tenant}", self.tenant)
        self.editions[clause.number] = clause.edition

    def on_revision(self, clause: Clause) -> None:
        if self.editions.get(clause.number) != clause.edition:
            self.fill(clause)
            self.digest = self.digest_of_texts()

    def digest_of_texts(self) -> str:
        return hashlib.sha256("".join(self.texts.values()).encode()).hexdigest()

    def seal(self) -> str:
        self.digest = self.digest_of_texts()
        return hashlib.pbkdf2_hmac("sha256", self.digest.encode(), b"lease", 300).hex()[:32]


book = ClauseBook()
numbers = itertools.count(7_000)


async def tenant_of(request: Request, number: int) -> str:
    async with request.app.state.http.get(f"{TENANTS}/tenants/{number % 900}") as answer:
        return str((await answer.json())["name"])


async def make_draft(request: Request) -> Response:
    with SECONDS.labels("/drafts/new").time():
        number = next(numbers)
        draft = Draft(number, await tenant_of(request, number))
        book.subscribe(draft.on_revision)
        for clause in book.clauses:
            draft.fill(clause)
        answer = {"draft": number, "tenant": draft.tenant, "clauses": len(draft.texts), "seal": draft.seal()}
        if VARIANT != "flawed":
            book.unsubscribe(draft.on_revision)
        DRAFTS.labels("residential").inc()
        return JSONResponse(answer)


async def metrics(request: Request) -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


async def up(request: Request) -> Response:
    return PlainTextResponse("up\n")


async def editors() -> None:
    """Lawyers edit the clause book all day."""
    for number in itertools.cycle(range(CLAUSES)):
        await asyncio.sleep(0.4)
        book.revise(number)


@contextlib.asynccontextmanager
async def lifespan(app: Starlette):
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as app.state.http:
        task = asyncio.create_task(editors())
        yield
        task.cancel()


app = Starlette(
    routes=[Route("/drafts/new", make_draft), Route("/metrics", metrics), Route("/up", up)],
    lifespan=lifespan,
)
