import asyncio
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request

from . import outbox, settings
from .lanes import Dispatcher


@asynccontextmanager
async def lifespan(app: FastAPI):
    app.state.dispatcher = Dispatcher()
    yield


app = FastAPI(lifespan=lifespan)


async def signature(message) -> str:
    await asyncio.sleep(settings.SIGNING)  # key service
    return f"v1={message.number:x}"


@app.get("/outbox/next")
async def deliver_next(request: Request):
    message = outbox.take()
    signed = await signature(message)
    lane = await request.app.state.dispatcher.dispatch(message)
    return {"message": message.number, "tenant": message.tenant, "lane": lane, "signature": signed}


@app.get("/status")
async def status(request: Request):
    return {"waiting": [lane.inbox.qsize() for lane in request.app.state.dispatcher.lanes]}
