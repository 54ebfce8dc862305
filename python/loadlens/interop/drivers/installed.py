"""Which drivers a study needs and this machine lacks, and what installs them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping

from loadlens.interop.drivers.base import Driver
from loadlens.model.study import Study

APT = "apt-get install "


def lacking(study: Study, drivers: Mapping[str, Driver]) -> tuple[Driver, ...]:
    """The drivers that some case of a study names and this machine lacks."""
    names = dict.fromkeys(case.driver for case in study.cases if case.driver is not None)
    return tuple(drivers[name] for name in names if shutil.which(drivers[name].program) is None)


def how_to_install(drivers: Iterable[Driver]) -> str:
    """The commands that install them, packages of the system in one."""
    commands = dict.fromkeys(driver.install for driver in drivers)
    packages = " ".join(command.removeprefix(APT) for command in commands if command.startswith(APT))
    others = [command for command in commands if not command.startswith(APT)]
    return "; ".join([*([APT + packages] if packages else []), *others])
