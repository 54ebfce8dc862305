"""Journal: uploads that wait are appended together."""

from __future__ import annotations

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


class Journal:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = os.open(folder / "journal.jsonl", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._latest: dict[str, list[dict[str, Any]]] = {}
        self._task: asyncio.Task[None] | None = None

    def _append(self, block: bytes) -> None:
        os.write(self._file, block)
        os.fdatasync(self._file)

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await loop.run_in_executor(self._writer, self._append, b"".join(block for block, _ in batch))
            except OSError as error:
                for _, done in batch:
                    done.set_exception(error)
                continue
            for _, done in batch:
                if not done.done():
                    done.set_result(None)

    async def save(self, readings: list[dict[str, Any]]) -> int:
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((json.dumps(readings).encode() + b"\n", done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())
        await done
        self._latest[readings[0]["trailer"]] = readings
        return len(readings)

    async def latest(self, trailer: str) -> list[dict[str, Any]]:
        return self._latest.get(trailer, [])

    def close(self) -> None:
        self._writer.shutdown(wait=True)
        os.close(self._file)


class Memory:
    """For trailers whose gateway keeps the log itself."""

    def __init__(self) -> None:
        self._latest: dict[str, list[dict[str, Any]]] = {}

    async def save(self, readings: list[dict[str, Any]]) -> int:
        self._latest[readings[0]["trailer"]] = readings
        return len(readings)

    async def latest(self, trailer: str) -> list[dict[str, Any]]:
        return self._latest.get(trailer, [])

    def close(self) -> None:
        self._latest.clear()
