"""Metrics that services export in the Prometheus text format, fetched at an interval.

Each target has a thread of its own, so that one that hangs delays neither the other monitors nor the others'
scrapes. Our own scrapes are requests too and are counted.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlsplit

from loadlens import http_client
from loadlens.model.readings import MonitorMetrics, ScrapeMetrics
from loadlens.model.workload import Tls
from loadlens.signals.collect.monitor import Monitor, Row, labels, reading
from loadlens.signals.collect.scene import Scene

_WITHIN_S = 5.0
_WAIT_S = _WITHIN_S + 1.0  # for an answer; one that comes in pieces may take longer, and is then missed
_LONGEST_WORDS = 200


@dataclass(frozen=True, slots=True)
class ScrapeTarget:
    """One endpoint of one replica."""

    service: str
    replica: int
    url: str
    every_s: float = 1.0
    tls: Tls | None = None  # of an https URL


@dataclass(frozen=True, slots=True)
class Scrapes:
    """Settings of the scrape monitor."""

    monitor: ClassVar[str] = "scrape"
    targets: tuple[ScrapeTarget, ...]

    @property
    def waits_s(self) -> float:
        """For scrapes that run, and for the last ones."""
        return 2 * _WAIT_S


def wanted(scene: Scene) -> Scrapes | None:
    """Return each replica of the services whose study says where their metrics are."""
    targets = []
    for replica in scene.replicas:
        if replica.defined is None or replica.defined.scrape is None or replica.ports is None:
            continue
        scrape = replica.defined.scrape
        port = replica.ports[scrape.port or replica.defined.ports[0]]
        scheme = "http" if scrape.tls is None else "https"
        url = f"{scheme}://{replica.host}:{port}{scrape.path}"
        targets.append(ScrapeTarget(replica.service, replica.replica, url, scrape.every_s, scrape.tls))
    return Scrapes(tuple(targets)) if targets else None


class _Scraper:
    """Fetches one target in a thread when asked; the results wait until they are taken."""

    def __init__(self, target: ScrapeTarget) -> None:
        self.target = target
        self.next_ns = 0
        self.count = 0
        self._own_labels = labels(service=target.service, replica=target.replica)
        self._rows: deque[Row] = deque()
        self._wanted = threading.Semaphore(0)
        self._idle = threading.Event()
        self._idle.set()
        self._ended = False
        threading.Thread(target=self._run, name=f"scrape {target.service}", daemon=True).start()

    def ask(self, now_ns: int) -> None:
        """Fetch once in the background; a scrape is missed if the last one still runs."""
        if self._idle.is_set():
            self._idle.clear()
            self._wanted.release()
        else:
            self._rows.append(self._missed("the last scrape still runs", now_ns))

    def wait(self, within_s: float = _WAIT_S) -> None:
        """Until the fetch that runs is done, or out of time."""
        self._idle.wait(within_s)

    def take(self) -> Iterable[Row]:
        """The rows that have come since the last call."""
        while self._rows:
            yield self._rows.popleft()

    def end(self) -> None:
        self._ended = True
        self._wanted.release()

    def _run(self) -> None:
        while True:
            self._wanted.acquire()
            if self._ended:
                return
            self._fetch()
            self._idle.set()

    def _fetch(self) -> None:
        began = time.monotonic_ns()
        self.count += 1
        took: float | None = None
        try:
            text = _get(self.target)
            took = (time.monotonic_ns() - began) / 1e9
            self._rows.extend(list(self._parse(text, began)))
        except (OSError, http.client.HTTPException) as error:
            self._rows.append(self._missed(http_client.words(error)[:_LONGEST_WORDS], began))
        except (
            Exception
        ) as error:  # what the parser makes of text that is not in the format is its own affair
            took = None
            self._rows.append(self._missed(f"not in the Prometheus text format: {_words(error)}", began))
        self._rows.append(reading(ScrapeMetrics.scrape_seconds, self._own_labels, took, began))
        self._rows.append(reading(ScrapeMetrics.scrapes, self._own_labels, self.count, began))

    def _missed(self, words: str, time_ns: int) -> Row:
        text = labels(service=self.target.service, replica=self.target.replica, why=words)
        return reading(MonitorMetrics.missed, text, None, time_ns)

    def _parse(self, text: str, time_ns: int) -> Iterable[Row]:
        from prometheus_client.parser import (
            text_string_to_metric_families,  # costly to import, and not always needed
        )

        own = {"service": self.target.service, "replica": str(self.target.replica)}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                text = labels(**_renamed(sample.labels, own), **own)
                yield Row(sample.name, text, "", sample.value, time_ns)


class ScrapeMonitor(Monitor):
    """The monitor."""

    name = "scrape"
    settings = Scrapes

    def __init__(self) -> None:
        self._scrapers: tuple[_Scraper, ...] = ()
        self._has_ticked = False

    def open(self, spec: Scrapes) -> None:
        """One thread a target."""
        for target in spec.targets:
            if urlsplit(target.url).scheme != ("http" if target.tls is None else "https"):
                raise ValueError(f"scrape needs an http URL, or an https one and its tls, got {target.url}")
        self._scrapers = tuple(_Scraper(target) for target in spec.targets)

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """Ask those that are due; hand out what has come.

        The first and the last tick wait for their answers: they are the idle reads of the books, and nothing
        may be asked of the service while they are under way.
        """
        is_bracket = last or not self._has_ticked
        self._has_ticked = True
        if last:
            self._wait()
        for scraper in self._scrapers:
            if last or now_ns >= scraper.next_ns:
                scraper.ask(now_ns)
                step = int(scraper.target.every_s * 1e9)
                # from the grid, not from now: ticks that are a little late must not add up
                scraper.next_ns = max(scraper.next_ns, now_ns - step // 2) + step
        if is_bracket:
            self._wait()
        for scraper in self._scrapers:
            yield from scraper.take()

    def _wait(self) -> None:
        """Wait for the fetches that run, all of them at one time."""
        until = time.monotonic() + _WAIT_S
        for scraper in self._scrapers:
            scraper.wait(max(0.0, until - time.monotonic()))

    def close(self) -> None:
        """End the threads."""
        for scraper in self._scrapers:
            scraper.end()


def _get(target: ScrapeTarget) -> str:
    parts = urlsplit(target.url)
    usual = 80 if target.tls is None else 443
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    page = http_client.metrics(
        parts.hostname or "", parts.port or usual, path, target.tls, within_s=_WITHIN_S
    )
    if page.status != 200:
        raise OSError(f"status {page.status}")
    return page.text


def _renamed(exported: Mapping[str, str], own: Iterable[str]) -> dict[str, str]:
    """Return the labels of a sample; clashing ones are renamed as Prometheus does."""
    renamed = dict(exported)
    for name in own:
        if name in exported:
            free = f"exported_{name}"
            while free in renamed:
                free = f"exported_{free}"
            renamed[free] = renamed.pop(name)
    return renamed


def _words(error: Exception) -> str:
    return str(error)[:_LONGEST_WORDS] or type(error).__name__
