"""Settings from the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, cast, get_args

HashMode = Literal["blocking", "threads"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Read once, when the process starts."""

    database_url: str
    hash_mode: HashMode  # blocking: on the event loop; threads: in a thread pool
    bcrypt_cost: int  # the work doubles with each step
    times_file: str | None  # none: response times are not written down

    @classmethod
    def from_environment(cls) -> Settings:
        """Raises ValueError when HASH is neither blocking nor threads."""
        mode = os.environ.get("HASH", "blocking")
        if mode not in get_args(HashMode):
            raise ValueError(f"HASH must be one of {', '.join(get_args(HashMode))}, got {mode!r}")
        return cls(
            database_url=os.environ.get("DATABASE_URL", "sqlite+aiosqlite:///users.db"),
            hash_mode=cast(HashMode, mode),
            bcrypt_cost=int(os.environ.get("BCRYPT_COST", "12")),
            times_file=os.environ.get("TIMES"),
        )


settings = Settings.from_environment()
