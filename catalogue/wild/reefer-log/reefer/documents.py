"""Document store: one file for each reading, there for good once `put` returns."""

from __future__ import annotations

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


class DocumentStore:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="documents")

    def _put(self, key: str, document: dict[str, Any]) -> None:
        target = self._folder / f"{key}.json"
        draft = target.with_suffix(".tmp")
        with open(draft, "w") as file:
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(draft, target)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _put_all(self, readings: list[dict[str, Any]]) -> int:
        for reading in readings:
            self._put(f"{reading['trailer']}-{reading['probe']:02d}", reading)
        return len(readings)

    async def save(self, readings: list[dict[str, Any]]) -> int:
        return await asyncio.get_running_loop().run_in_executor(self._writer, self._put_all, readings)

    async def latest(self, trailer: str) -> list[dict[str, Any]]:
        return [json.loads(file.read_text()) for file in sorted(self._folder.glob(f"{trailer}-*.json"))]

    def close(self) -> None:
        self._writer.shutdown(wait=False, cancel_futures=True)
