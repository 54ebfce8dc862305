"""`loadlens steer RUN`: another rate, or another number of users, for the load that runs in a record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from loadlens import units
from loadlens.cli.hit_load import quantity
from loadlens.cli.options import Example, argument, option, verb
from loadlens.errors import UsageError


@dataclass(frozen=True, slots=True)
class SteerOptions:
    """Options of `steer`."""

    run: Path = argument("RUN", "The record of the running load, a folder.")
    rate: str | None = option("-r --rate RATE", "Iterations per second from now on. Example: --rate 15k/min")
    users: int | None = option("-u --users N", "Users from now on. Example: --users 32", min=1)
    stream: str | None = option("--stream NAME", "The load to change, if there are several.")


@verb(
    SteerOptions,
    Example("loadlens steer runs/shop-2c90 --rate 500", "an open load, from now on"),
    Example("loadlens steer runs/shop-2c90 --users 32", "a closed load, from now on"),
)
def steer(given: SteerOptions) -> None:
    """Change the rate or the users of a load while it runs, from another terminal.

    The trial then counts as exploratory: no capacity, comparison or objective is judged from it.
    """
    from loadlens.load_control import WantedChange, change_load

    if (given.rate is None) == (given.users is None):
        raise UsageError("either a rate or a number of users", hint="--rate 500 or --users 32")
    rate = None if given.rate is None else quantity(units.rate_per_s, given.rate, "--rate")
    print(change_load(given.run, WantedChange(given.stream, rate, given.users)).words)
