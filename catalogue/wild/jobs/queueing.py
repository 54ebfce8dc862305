import asyncio
from collections.abc import Awaitable, Callable


class Full(Exception):
    """No room for another job."""


class WorkerPool:
    """A bounded queue and the workers behind it."""

    def __init__(self, work: Callable[[dict], Awaitable[dict]], workers: int, room: int):
        self.work = work
        self.queue: asyncio.Queue = asyncio.Queue(room)
        self.workers = [asyncio.create_task(self._run()) for _ in range(workers)]
        self.dropped = 0

    async def _run(self):
        while True:
            job, future = await self.queue.get()
            try:
                future.set_result(await self.work(job))
            except Exception as error:
                future.set_exception(error)

    async def submit(self, job: dict) -> dict:
        future = asyncio.get_running_loop().create_future()
        try:
            self.queue.put_nowait((job, future))
        except asyncio.QueueFull:
            self.dropped += 1
            raise Full from None
        return await future
