"""Personal news feed; all articles are kept in memory."""
import asyncio
import gc
import random
from collections import defaultdict
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import config
from fastapi import FastAPI
from prometheus_client import Histogram, make_asgi_app

SECONDS = Histogram("feed_seconds", "Time to build a feed")


@dataclass
class Article:
    id: int
    title: str
    topics: list[str] = field(default_factory=list)


TOPICS = ["politics", "sport", "science", "local", "economy", "weather", "culture"]
by_topic: dict[str, list[Article]] = defaultdict(list)


def load():
    rnd = random.Random(7)
    for n in range(config.articles):
        article = Article(n, f"Article {n}", rnd.sample(TOPICS, 2))
        for topic in article.topics:
            by_topic[topic].append(article)


@asynccontextmanager
async def lifespan(_: FastAPI):
    load()
    gc.collect()
    if not config.tidy_up:
        gc.freeze()
    yield


app = FastAPI(lifespan=lifespan)
app.mount("/metrics", make_asgi_app())


async def interests(user: int) -> list[str]:
    await asyncio.sleep(config.profile_latency)  # profile service
    return random.Random(user).sample(TOPICS, 3)


@app.get("/feed/{user}")
async def feed(user: int):
    with SECONDS.time():
        topics = await interests(user)
        picked = []
        for topic in topics:
            newest = by_topic[topic][-40:]
            picked += [{"id": a.id, "title": a.title, "why": topic} for a in newest]
        picked.sort(key=lambda entry: -entry["id"])
        if config.tidy_up:
            # keeps the memory flat, see the incident in January
            gc.collect(generation=2)
        return {"user": user, "articles": picked[:30]}


@app.get("/")
async def root():
    return "feed"
