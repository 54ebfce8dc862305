"""Hashing and verifying with bcrypt: on the event loop, or in a thread pool.

bcrypt releases the GIL while it works. On the event loop that does not help: nothing else of this process
runs until the hash is done. In the pool the loop goes on meanwhile.
"""

from __future__ import annotations

import asyncio

import bcrypt

from api.settings import settings


async def hash_password(password: str) -> str:
    """The salted hash of a password, about a quarter of a second of CPU at cost 12."""
    if settings.hash_mode == "threads":
        return await asyncio.to_thread(_hash, password)
    return _hash(password)


async def verify_password(password: str, password_hash: str) -> bool:
    """Return true if the password matches the hash; costs as much as hashing."""
    if settings.hash_mode == "threads":
        return await asyncio.to_thread(_verify, password, password_hash)
    return _verify(password, password_hash)


def _hash(password: str) -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(settings.bcrypt_cost)).decode()


def _verify(password: str, password_hash: str) -> bool:
    return bcrypt.checkpw(password.encode(), password_hash.encode())
