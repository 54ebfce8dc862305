"""The system under test: building, starting, readiness, data resets and shutdown of its processes.

Nothing here depends on load or on measurement.
"""

from __future__ import annotations

from loadlens.testbed.build import (
    Environment,
    Missing,
    Prepared,
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
    "demand",
    "how_to_install",
    "in_words",
    "missing",
    "prepare",
]
