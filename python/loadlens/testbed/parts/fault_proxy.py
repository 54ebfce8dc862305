"""The lab's own fault proxy in front of the replicas of a service: delays, faults and admission limits."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Any

from loadlens import units
from loadlens.model.topology import METRICS_PORT, ProxyFaults, Ready
from loadlens.testbed.parts.part import Layout, Site, backends
from loadlens.testbed.ports import HOST
from loadlens.testbed.readiness import HttpStatus

PROCESS = "loadlens.testbed.proxy_process"


class FaultProxy:
    """Runs the engine's proxy in a process of its own; its counts are served on the port `metrics`."""

    program = None

    def url(self, host: str, port: int) -> str:
        """Return an HTTP URL."""
        return f"http://{host}:{port}"

    def lay_out(self, site: Site) -> Layout:
        """Plan the proxy with one settings file."""
        file = site.folder / "settings.json"
        return Layout(
            argv=(sys.executable, "-m", PROCESS, str(file)),
            cwd=site.folder,
            # lets the process import this package from the same place
            environment={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            files={file: json.dumps(_settings(site), indent=1) + "\n"},
            ready=HttpStatus(site.ports[METRICS_PORT], Ready("/ready")),
        )


def _settings(site: Site) -> dict[str, Any]:
    """Return the settings that crates/proxy reads (settings.rs)."""
    setting = site.service.setting
    return {
        "listen": f"{HOST}:{site.port}",
        "control": f"{HOST}:{site.ports[METRICS_PORT]}",
        "upstreams": [f"{HOST}:{port}" for port in backends(site)],
        "keepalive": int(setting("keepalive")),
        "timeout_ns": units.duration_ns(setting("timeout")),
        "failures": setting("failures"),
        "faults": _faults(site.service.faults or ProxyFaults()),
    }


def _faults(faults: ProxyFaults) -> dict[str, Any]:
    plain: dict[str, Any] = _without_nothing(asdict(faults))
    return plain


def _without_nothing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nothing(item) for key, item in value.items() if item is not None}
    return value
