"""Sends text messages through the carrier."""
import asyncio
import os
import uuid

from aiolimiter import AsyncLimiter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Route

VARIANT = os.environ.get("VARIANT", "flawed")

# what the contract with the carrier allows
PER_SECOND = {"flawed": 40, "mended": 4000, "healthy": 4000}[VARIANT]
CARRIER_SECONDS = {"flawed": 0.25, "mended": 0.25, "healthy": 0.4}[VARIANT]
SPELLINGS = {"de": "49", "at": "43", "ch": "41"}

pace = AsyncLimiter(PER_SECOND / 10, 0.1)



def number(raw: str, country: str) -> str:
    digits = "".join(c for c in raw if c.isdigit())
    if not 6 <= len(digits) <= 15:
        raise HTTPException(422, "not a telephone number")
    return SPELLINGS.get(country, "49") + digits.lstrip("0")


async def carrier(to: str, text: str) -> str:
    await asyncio.sleep(CARRIER_SECONDS)
    return str(uuid.uuid5(uuid.NAMESPACE_URL, to + text))


async def send(request):
    query = request.query_params
    to = number(query.get("to", ""), query.get("country", "de"))
    async with pace:
        receipt = await carrier(to, query.get("text", ""))
    return JSONResponse({"to": to, "receipt": receipt}, status_code=202)


async def about(request):
    return JSONResponse({"service": "texts", "version": 4})


app = Starlette(routes=[Route("/send", send), Route("/about", about)])
