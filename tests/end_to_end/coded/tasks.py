"""Tasks that wait in every way; prints where each is as Python knows it: its name, functions and lines."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Generator, Iterator
from typing import Any

lock, few = asyncio.Lock(), asyncio.Semaphore(2)
queue: asyncio.Queue[int] = asyncio.Queue()


async def locks() -> None:
    async with lock:
        await asyncio.sleep(60)


async def takes_a_place() -> None:
    await few.acquire()
    await asyncio.sleep(60)


async def takes_work() -> int:
    return await queue.get()


async def numbers() -> AsyncIterator[int]:
    yield 1
    await asyncio.sleep(60)


async def iterates() -> None:
    async for number in numbers():
        assert number


class Waits:
    def __await__(self) -> Generator[Any, Any, None]:
        yield from asyncio.sleep(60).__await__()


async def awaits_an_object() -> None:
    await Waits()


async def is_deep(left: int = 30) -> None:
    if left:
        await is_deep(left - 1)
    await asyncio.sleep(60)


async def awaits(future: Awaitable[int]) -> None:
    await future


async def gathers() -> None:  # others are sampled themselves, from here on
    await asyncio.gather(takes_work(), takes_work())


async def calls_a_thread() -> None:
    await asyncio.to_thread(time.sleep, 60)


async def calls_an_executor() -> None:
    await asyncio.get_running_loop().run_in_executor(None, time.sleep, 60)


async def groups() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(takes_work())


def places(coroutine: Any) -> Iterator[tuple[str, int]]:
    """Yield function and line of a coroutine and of all it awaits, as far as Python shows them."""
    while coroutine is not None:
        kind = next((kind for kind in ("cr", "gi", "ag") if hasattr(coroutine, f"{kind}_frame")), None)
        if kind is None:
            return
        frame = getattr(coroutine, f"{kind}_frame")
        yield frame.f_code.co_name, frame.f_lineno
        coroutine = getattr(coroutine, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")


async def main() -> None:
    future = asyncio.get_running_loop().create_future()
    waiting: list[Any] = [
        locks(),
        locks(),
        locks(),
        takes_a_place(),
        takes_a_place(),
        takes_a_place(),
        takes_work(),
    ]
    waiting += [iterates(), awaits_an_object(), is_deep(), awaits(future), awaits(future)]
    waiting += [gathers(), calls_a_thread(), calls_an_executor(), groups()]
    tasks = [asyncio.create_task(each, name="näme" if each is waiting[-1] else None) for each in waiting]
    await asyncio.sleep(0.3)
    seen = [(task.get_name(), list(places(task.get_coro()))) for task in asyncio.all_tasks()]
    print(json.dumps(seen), flush=True)
    await asyncio.sleep(60)
    print(tasks)


asyncio.run(main())
