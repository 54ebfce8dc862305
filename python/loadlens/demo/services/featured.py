"""A featured product, drawn at random, from a cache in front of the catalogue."""

from __future__ import annotations

import asyncio
import json
import random
from collections import OrderedDict

from prometheus_client import Counter

from loadlens.demo.services.web import serve_async

PRODUCTS = 1000
CACHED = 900
CACHE_S, CATALOGUE_S = 0.020, 0.120

HITS = Counter("cache_gets", "Look-ups in the cache.", ["result"])

cache: OrderedDict[int, str] = OrderedDict((n, f"product {n}") for n in range(CACHED))


async def product(number: int) -> str:
    await asyncio.sleep(CACHE_S)  # stands for a round trip to the cache
    if number in cache:
        HITS.labels("hit").inc()
        cache.move_to_end(number)
        return cache[number]
    HITS.labels("miss").inc()
    # stands for a query of the catalogue
    await asyncio.sleep(CATALOGUE_S)
    cache[number] = f"product {number}"
    if len(cache) > CACHED:
        cache.popitem(last=False)
    return cache[number]


async def featured() -> str:
    return json.dumps({"featured": await product(random.randrange(PRODUCTS))})


async def healthz() -> str:
    return "ok\n"


if __name__ == "__main__":
    serve_async({"/featured": featured, "/healthz": healthz})
