"""The vault that keeps the pots, and the lock that every kiosk office takes on a pot there."""

import asyncio
import secrets
import time
from collections import defaultdict, deque
from contextlib import asynccontextmanager


class Vault:
    """One connection; commands are answered in order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, commands) -> None:
        self._reader = reader
        self._writer = writer
        self._commands = commands
        self._waiting: deque[asyncio.Future] = deque()
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, host: str, port: int, commands) -> "Vault":
        for _ in range(50):
            try:
                return cls(*await asyncio.open_connection(host, port), commands)
            except ConnectionRefusedError:
                await asyncio.sleep(0.1)
        raise ConnectionError(f"no vault on {host}:{port}")

    async def call(self, *words: str) -> str:
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        self._writer.write(("\t".join(words) + "\n").encode())
        self._commands.labels(words[0]).inc()
        return await answer

    async def _read(self) -> None:
        while line := await self._reader.readline():
            answer = self._waiting.popleft()
            if not answer.cancelled():
                answer.set_result(line.decode().rstrip("\n"))

    async def close(self) -> None:
        self._task.cancel()
        self._writer.close()


class PotLock:
    """A pot's lock in the vault, shared with the other offices."""

    def __init__(self, vault: Vault, variant: str, hold) -> None:
        self._vault = vault
        self._hold = hold
        self._local: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.of = self._shared if variant == "flawed" else self._queued

    @asynccontextmanager
    async def _shared(self, pot: str):
        key, token = f"lock:{pot}", secrets.token_hex(8)
        while await self._vault.call("SETNX", key, token) != "1":
            await asyncio.sleep(0.005)
        began = time.perf_counter()
        try:
            yield
        finally:
            await self._vault.call("DEL", key)
            self._hold.observe(time.perf_counter() - began)

    @asynccontextmanager
    async def _queued(self, pot: str):
        async with self._local[pot], self._shared(pot):
            yield
