"""Journal of doses and the stock that follows from it, both safe on disk before a dose is confirmed."""

import asyncio
import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


class Register:
    """Writes each entry on its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._journal = os.open(folder / "journal.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
        self._stock = {"morphine": 5_000_000.0, "fentanyl": 800_000.0, "ketamine": 2_000_000.0}
        self._number = 0
        self._lock = asyncio.Lock()

    async def book(self, ward: int, drug: str, mg: float) -> int:
        """Book a dose and return the number of its entry, once it is on disk."""
        entry = self._entry(ward, drug, mg)
        async with self._lock:
            await asyncio.to_thread(self._commit, [entry])
        return entry["number"]

    def _entry(self, ward: int, drug: str, mg: float) -> Entry:
        self._number += 1
        return {"number": self._number, "at": time.time(), "ward": ward, "drug": drug, "mg": mg}

    def _commit(self, entries: list[Entry]) -> None:
        os.write(self._journal, "".join(json.dumps(entry) + "\n" for entry in entries).encode())
        os.fsync(self._journal)
        for entry in entries:
            self._stock[entry["drug"]] -= entry["mg"]
        self._replace("stock.json", {"entry": entries[-1]["number"], "mg": self._stock})

    def _replace(self, name: str, content: object) -> None:
        """Write a file so that after a power failure it is the old or the new one."""
        draft = self._folder / f"{name}.new"
        with draft.open("w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._folder / name)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    async def close(self) -> None:
        os.close(self._journal)


class GroupRegister(Register):
    """Writes all entries that are waiting at once."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._waiting: asyncio.Queue[tuple[Entry, asyncio.Future[None]]] = asyncio.Queue()
        self._writer = asyncio.create_task(self._write())

    async def book(self, ward: int, drug: str, mg: float) -> int:
        entry = self._entry(ward, drug, mg)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((entry, done))
        await done
        return entry["number"]

    async def _write(self) -> None:
        while True:
            group = [await self._waiting.get()]
            while not self._waiting.empty():
                group.append(self._waiting.get_nowait())
            try:
                await asyncio.to_thread(self._commit, [entry for entry, _ in group])
            except OSError as error:
                for _, done in group:
                    if not done.done():
                        done.set_exception(error)
                continue
            for _, done in group:
                if not done.done():
                    done.set_result(None)

    async def close(self) -> None:
        self._writer.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._writer
        await super().close()
