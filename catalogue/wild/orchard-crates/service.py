"""Crates of a picking crew: reads the scale, books the crate, answers how the row does against its season."""

import os
import statistics
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

PORT = int(os.environ["PORT"])
VARIANT = os.environ.get("VARIANT", "mended")
SEASON_CRATES = 250
ROWS = range(1, 41)


@dataclass(frozen=True, slots=True)
class Crate:
    row: int
    picker: str
    grams: int
    at: float

    @property
    def pay_cents(self) -> int:
        return max(90, round(self.grams * 0.0115))


class Season:
    """Crates booked so far, and figures over them."""

    def __init__(self, keep: int | None) -> None:
        self.crates: deque[Crate] = deque(maxlen=keep)

    def book(self, crate: Crate) -> None:
        self.crates.append(crate)

    def standing(self, row: int, picker: str) -> dict[str, object]:
        weights = sorted(crate.grams for crate in self.crates if crate.row == row)
        pays = [crate.pay_cents for crate in self.crates if crate.picker == picker]
        best = max(self.crates, key=lambda crate: (crate.grams, crate.at))
        return {
            "row": row,
            "median_grams": statistics.median(weights),
            "heaviest_grams": weights[-1],
            "mean_pay_cents": round(sum(pays) / len(pays), 1),
            "record": {"row": best.row, "picker": best.picker, "grams": best.grams},
        }


def season_for(variant: str) -> Season:
    if variant == "flawed":
        return Season(keep=None)
    return Season(keep=SEASON_CRATES)


async def read_scale(app: web.Application, row: int) -> int:
    async with app["session"].get(f"http://127.0.0.1:{PORT + 1}/scales/{row}") as answer:
        answer.raise_for_status()
        return (await answer.json())["grams"]


async def weigh(request: web.Request) -> web.Response:
    try:
        row = int(request.query["row"])
        picker = request.query["picker"][:40]
    except (KeyError, ValueError):
        raise web.HTTPBadRequest(text="row and picker are needed") from None
    if row not in ROWS:
        raise web.HTTPNotFound(text=f"there is no row {row}")
    crate = Crate(row, picker, await read_scale(request.app, row), time.time())
    season = request.app["season"]
    season.book(crate)
    return web.json_response(
        {
            "grams": crate.grams,
            "pay_cents": crate.pay_cents,
            "at": datetime.fromtimestamp(crate.at, UTC).isoformat(timespec="milliseconds"),
            "standing": season.standing(row, picker),
        }
    )


async def rows(_: web.Request) -> web.Response:
    return web.json_response(list(ROWS))


async def scale_client(app: web.Application):
    app["session"] = ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=10))
    yield
    await app["session"].close()


def make_app() -> web.Application:
    app = web.Application()
    app["season"] = season_for(VARIANT)
    app.cleanup_ctx.append(scale_client)
    app.router.add_get("/rows", rows)
    app.router.add_get("/weigh", weigh)
    return app


if __name__ == "__main__":
    web.run_app(make_app(), host="127.0.0.1", port=PORT, access_log=None, backlog=512)
