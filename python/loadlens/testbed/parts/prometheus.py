"""Prometheus, scraping the services; its configuration is rendered from the topology."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loadlens import http_client
from loadlens.errors import TestbedError
from loadlens.model.topology import Scrape
from loadlens.testbed.parts.part import Layout, Site
from loadlens.testbed.ports import HOST
from loadlens.testbed.programs import Program
from loadlens.testbed.readiness import ATTEMPT_WITHIN_S

LONGEST_SCRAPE_S = 10.0
_NEVER = "0001-01-01"  # Go's zero time


class Prometheus:
    """Runs `prometheus` on an empty store; one job for each service in `over`."""

    program = Program(
        "prometheus",
        "prometheus",
        folders=("/opt/prometheus*", "/usr/local/prometheus*"),
        debian="prometheus",
        unpacked="usr/bin",
        is_optional=True,  # the report's expressions are then evaluated on the lab's own scrapes
    )

    def url(self, host: str, port: int) -> str:
        """Return an HTTP URL."""
        return f"http://{host}:{port}"

    def lay_out(self, site: Site) -> Layout:
        """Plan the server with one configuration file and an empty folder for its samples."""
        configuration = site.folder / "prometheus.yml"
        targets = tuple(_targets(site))
        return Layout(
            argv=(
                "prometheus",
                f"--config.file={configuration}",
                f"--storage.tsdb.path={site.folder / 'data'}",
                "--storage.tsdb.retention.time=30d",
                f"--web.listen-address={HOST}:{site.port}",
                "--log.level=warn",
            ),
            cwd=site.folder,
            files={
                configuration: json.dumps({"scrape_configs": _jobs(targets, site.folder)}, indent=1) + "\n",
                **_trusted(targets, site.folder),
            },
            ready=_HasScraped(site.port, len(targets)),
            is_unprivileged=True,
        )


class _Target:
    """One replica's endpoint."""

    def __init__(self, service: str, number: int, of: int, port: int, scrape: Scrape) -> None:
        self.service, self.number, self.port, self.scrape = service, number, port, scrape
        self.instance = service if of == 1 else f"{service}.{number}"


def _targets(site: Site) -> Iterator[_Target]:
    for name in site.service.over:
        service, replicas = site.services.get(name), site.others.get(name, ())
        if service is None or service.scrape is None:
            raise TestbedError(
                f"{name} has no metrics to scrape", where=f"{site.where}.over", hint="give it scrape: {}"
            )
        for number, ports in enumerate(replicas, 1):
            port = ports[service.scrape.port or service.ports[0]]
            yield _Target(name, number, len(replicas), port, service.scrape)


def _jobs(targets: tuple[_Target, ...], folder: Path) -> list[dict[str, Any]]:
    """Return one job per service, as JSON, which YAML 1.2 includes."""
    jobs: dict[str, dict[str, Any]] = {}
    for target in targets:
        every_ms = max(1, round(target.scrape.every_s * 1000))
        job = jobs.setdefault(
            target.service,
            {
                "job_name": target.service,
                "metrics_path": target.scrape.path.partition("?")[0],
                "params": _parameters(target.scrape.path),
                "scrape_interval": f"{every_ms}ms",
                "scrape_timeout": f"{min(every_ms, round(LONGEST_SCRAPE_S * 1000))}ms",
                "static_configs": [],
                **_secured(target, folder),
            },
        )
        job["static_configs"].append(
            {
                "targets": [f"{HOST}:{target.port}"],
                "labels": {
                    "instance": target.instance,
                    "service": target.service,
                    "replica": str(target.number),
                },
            }
        )
    return list(jobs.values())


def _secured(target: _Target, folder: Path) -> dict[str, Any]:
    """Return the TLS settings of a job: the same trust as the load."""
    tls = target.scrape.tls
    if tls is None:
        return {}
    settings: dict[str, Any] = {"insecure_skip_verify": tls.insecure}
    if tls.ca is not None:
        settings["ca_file"] = str(_ca_of(target.service, folder))
    if tls.server_name is not None:
        settings["server_name"] = tls.server_name
    return {"scheme": "https", "tls_config": settings}


def _trusted(targets: tuple[_Target, ...], folder: Path) -> dict[Path, str]:
    """Return copies of the CA files by path, readable for the server under any account.

    Raises:
        TestbedError: A file cannot be read, or has changed.
    """
    copies: dict[Path, str] = {}
    for target in targets:
        tls = target.scrape.tls
        if tls is not None and tls.ca is not None:
            try:
                copies[_ca_of(target.service, folder)] = http_client.content(tls.ca).decode("ascii", "ignore")
            except http_client.FileFault as fault:
                raise TestbedError(str(fault), where="tls", hint=fault.hint) from None
    return copies


def _ca_of(service: str, folder: Path) -> Path:
    return folder / f"ca-{service}.pem"


def _parameters(path: str) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for pair in filter(None, path.partition("?")[2].split("&")):
        name, _, value = pair.partition("=")
        values.setdefault(name, []).append(value)
    return values


class _HasScraped:
    """Ready once every target was scraped: the server waits about 5 s before its first scrape."""

    def __init__(self, port: int, targets: int) -> None:
        self._port, self._targets = port, targets
        self.requests = 0

    @property
    def wanted(self) -> str:
        """Description of the expected state."""
        return f"a first scrape of each of {self._targets} targets"

    def ask(self) -> str | None:
        """Request the state of the targets once."""
        connection = http.client.HTTPConnection(HOST, self._port, timeout=ATTEMPT_WITHIN_S)
        try:
            self.requests += 1
            connection.request("GET", "/api/v1/targets?state=active")
            response = connection.getresponse()
            if response.status != 200:
                return f"status {response.status}"
            targets = json.loads(response.read())["data"]["activeTargets"]
        except (http.client.HTTPException, ValueError, KeyError, TypeError) as error:
            return f"an answer that is not Prometheus's ({type(error).__name__})"
        finally:
            connection.close()
        return self._missing(targets)

    def _missing(self, targets: list[Mapping[str, Any]]) -> str | None:
        for target in targets:
            if target["health"] == "down":
                name = target.get("labels", {}).get("instance", "a target")
                return f"the scrape of {name} failed: {target.get('lastError', '')}"
        scraped = sum(not str(target["lastScrape"]).startswith(_NEVER) for target in targets)
        return None if scraped >= self._targets else f"{scraped} scraped so far"
