"""Verbs that need the extra `lab`, and the lines that say so: where it is not installed, or cannot be loaded.

Libraries of the lab reserve address space that they never use, and end the program where they get none.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import Any, Final

from loadlens.errors import TooLargeError, UsageError
from loadlens.machine import threads

# Packages of the extra `lab` of pyproject.toml, as they are imported.
PACKAGES: Final = ("jinja2", "numpy", "pg8000", "polars", "prometheus_client", "scipy", "vl_convert")
INSTALL: Final = "pip install 'loadlens[lab]'"
FILES: Final = 64  # of the lab itself; the engine says what connections need
THREADS: Final = 24  # and processes: those of a testbed, and of libraries besides those of each core
PRIVATE: Final = 512 << 20  # bytes that may be written to: Polars and its threads; 0.3 GiB were enough
PRIVATE_OF_CHARTS: Final = 1 << 30  # 0.7 GiB were too few
OF_CHARTS: Final = 72 << 30  # V8 reserves 64 GiB for the sandbox of its scripts


def needing_lab(command: Callable[..., None], *, draws: bool) -> Callable[..., None]:
    """Return the command of a verb with a check that its packages are installed and can be loaded.

    Args:
        command: The verb.
        draws: It draws charts for a page.
    """

    @wraps(command)
    def checked(**given: Any) -> None:
        demand(command.__name__, draws=draws)
        command(**given)

    return checked


def is_installed() -> bool:
    """True if every package of the extra is there."""
    return all(find_spec(name) is not None for name in PACKAGES)


def demand(verb: str, *, draws: bool) -> None:
    """Refuse a verb whose packages are not installed, or cannot be loaded within the limits of this process.

    Raises:
        UsageError: Packages are missing; the command that installs them is named.
        TooLargeError: A limit is too low; both numbers are named.
    """
    if not is_installed():
        raise UsageError(f"{verb} needs more packages: {INSTALL}")
    cores = len(os.sched_getaffinity(0))
    private, _ = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = PRIVATE + draws * PRIVATE_OF_CHARTS
    if private != resource.RLIM_INFINITY and private < wanted:
        raise TooLargeError(
            f"{verb} needs {wanted / 2**30:.1f} GiB of data, most of it never used, "
            f"and the limit is {private / 2**30:.1f} GiB (ulimit -d)",
            hint="ulimit -d unlimited",
        )
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        from loadlens.record.sample_rows import addresses_of_tables

        addresses = addresses_of_tables() + draws * OF_CHARTS
        if limit < addresses:
            raise TooLargeError(
                f"{verb} needs {addresses / 2**30:.1f} GiB of address space, most of it never used, "
                f"and the limit is {limit / 2**30:.1f} GiB (ulimit -v)",
                hint="ulimit -v unlimited",
            )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FILES:
        raise TooLargeError(
            f"{verb} needs {FILES} open files, and the limit is {hard} (ulimit -Hn)",
            hint="a higher limit: ulimit -n 1024",
        )
    if soft != resource.RLIM_INFINITY and soft < FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))
    # numpy starts threads that the lab's small arrays need not, and interrupts the program where it gets none
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    wanted = THREADS + threads.OF_A_CORE * cores
    if (most := threads.can_start(wanted)) < wanted:
        raise TooLargeError(
            f"{verb} needs {wanted} more processes and threads, and {most} can be started",
            hint="a higher limit: ulimit -u, or pids.max of the control group",
        )
