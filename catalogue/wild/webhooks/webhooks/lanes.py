import asyncio
import zlib

from . import settings


class Lane:
    """Delivers one message after the other, so that a receiver sees them in order."""

    def __init__(self, number):
        self.number = number
        self.inbox = asyncio.Queue()
        self.task = asyncio.create_task(self.run())

    async def run(self):
        while True:
            message, done = await self.inbox.get()
            await self.deliver(message)
            done.set_result(self.number)

    async def deliver(self, message):
        await asyncio.sleep(settings.RECEIVER)  # POST to the customer's server

    async def send(self, message):
        done = asyncio.get_running_loop().create_future()
        await self.inbox.put((message, done))
        return await done


class Dispatcher:
    def __init__(self):
        self.lanes = [Lane(n) for n in range(settings.LANES)]

    def lane_for(self, message):
        if settings.SPREAD_BY == "message":
            return self.lanes[message.number % len(self.lanes)]
        return self.lanes[zlib.crc32(message.tenant.encode()) % len(self.lanes)]

    async def dispatch(self, message):
        return await self.lane_for(message).send(message)
