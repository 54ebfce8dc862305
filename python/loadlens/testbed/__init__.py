"""What is under test: its processes, when they are ready, how their data are put back, how they end.

Nothing here knows of load or of measuring.
"""

from __future__ import annotations

from loadlens.testbed.build import (
    Environment,
    Missing,
    Prepared,
    default_cache,
    demand,
    how_to_install,
    in_words,
    missing,
    prepare,
)
from loadlens.testbed.keeper import KeeperLost
from loadlens.testbed.measured_values import Calibrated, calibrate
from loadlens.testbed.testbed import AccessLogFile, ServerTimesFile, ServiceProcess, Testbed

__all__ = [
    "AccessLogFile",
    "Calibrated",
    "Environment",
    "KeeperLost",
    "Missing",
    "Prepared",
    "ServerTimesFile",
    "ServiceProcess",
    "Testbed",
    "calibrate",
    "default_cache",
    "demand",
    "how_to_install",
    "in_words",
    "missing",
    "prepare",
]
