"""Small services, each with one limit or none: `python services.py NAME PORT`. A sleep is a remote call."""

# mypy: ignore-errors

import asyncio
import hashlib
import socket
import sqlite3
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

LOCK = threading.Lock()
PLACES = threading.Semaphore(3)


def call(seconds):
    time.sleep(seconds)


def few_threads():
    call(0.05)


def locked():
    with LOCK:
        call(0.02)


def few_places():
    with PLACES:
        call(0.05)


def pooled():
    with ENGINE.connect():
        call(0.05)


def computing():
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 20_000)


def answer(connection, work):
    with connection:
        connection.recv(100)
        work()
        connection.sendall(b"done")


def serve(work, threads, port):
    pool = ThreadPoolExecutor(threads)
    together = threading.Barrier(threads)
    list(pool.map(lambda _: together.wait(), range(threads)))
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        connection, _ = listener.accept()
        pool.submit(answer, connection, work)


async def serve_from_a_loop(port):
    pool = ThreadPoolExecutor(4)

    async def answer_later(reader, writer):
        await reader.read(100)
        await asyncio.get_running_loop().run_in_executor(pool, few_threads)
        writer.write(b"done")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer_later, "127.0.0.1", port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    name, port = sys.argv[1], int(sys.argv[2])
    if name == "pooled":
        from sqlalchemy import create_engine
        from sqlalchemy.pool import QueuePool

        ENGINE = create_engine(
            "sqlite://",
            creator=lambda: sqlite3.connect(":memory:", check_same_thread=False),
            poolclass=QueuePool,
            pool_size=3,
            max_overflow=0,
        )
    if name == "in_executor":
        asyncio.run(serve_from_a_loop(port))
    works = {
        "few_threads": (few_threads, 4),
        "locked": (locked, 16),
        "few_places": (few_places, 16),
        "pooled": (pooled, 16),
        "idle_threads": (few_threads, 16),
        "enough_threads": (few_threads, 32),
        "computing": (computing, 16),
    }
    serve(*works[name], port)
