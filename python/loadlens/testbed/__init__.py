"""What is under test: its processes, when they are ready, how their data are put back, how they end.

Nothing here knows of load or of measuring.
"""

from __future__ import annotations

from loadlens.testbed.build import Environment, Prepared, default_cache, prepare
from loadlens.testbed.keeper import KeeperLost
from loadlens.testbed.testbed import AccessLogFile, ServerTimesFile, ServiceProcess, Testbed

__all__ = [
    "AccessLogFile",
    "Environment",
    "KeeperLost",
    "Prepared",
    "ServerTimesFile",
    "ServiceProcess",
    "Testbed",
    "default_cache",
    "prepare",
]
