"""The page of `loadlens ui` in Debian's browsers, driven by Playwright, for the tests of this folder."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, Request, expect
from tools import page

from loadlens.errors import ExitCode
from tests.end_to_end.hitting import environment

AXE = page.WEB / "node_modules" / "axe-core" / "axe.min.js"
CHECKS = Path(__file__).with_name("page_checks.js")
WITHIN_S = 20.0
expect.set_options(timeout=WITHIN_S * 1000)
Engine = Literal["chromium", "firefox"]

# Runs before anything of the page: an attack that succeeded would set this.
_WATCH = "window.attacked = false; window.alert = () => { window.attacked = true; };"


def browser_of(playwright: Playwright, engine: Engine) -> Browser:
    """Start the system's browser; the test is skipped by name where there is none."""
    name = {"chromium": "chromium", "firefox": "firefox-esr"}[engine]
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    if engine == "firefox":  # a plain Firefox is driven by WebDriver BiDi
        return playwright.firefox.launch(channel="moz-firefox", executable_path=program)
    return playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])


@dataclass(slots=True)
class Looked:
    """A tab, with everything that it asked for and complained about."""

    page: Page
    origin: str
    foreign: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def on_request(self, request: Request) -> None:
        """Note a request that leaves the server, which no page may make."""
        if not request.url.startswith((f"{self.origin}/", "data:", "blob:")):
            self.foreign.append(request.url)


class Ui:
    """A running `loadlens ui` over a folder."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "loadlens", "ui", str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        self.origin, _, self.token = self.url.partition("/#")

    def close(self) -> None:
        """End it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(timeout=10) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()

    @contextmanager
    def tab(self, browser: Browser, place: str = "", **more: Any) -> Iterator[Looked]:
        """Open the page in a session of its own; nothing foreign may be asked for, and no fault may occur."""
        # Firefox's protocol cannot set these yet
        kept: dict[str, Any] = dict.fromkeys(("reduced_motion", "forced_colors", "contrast"), "null")
        context = browser.new_context(**{"color_scheme": "null", **kept, **more})
        try:
            looked = self.another(context, place)
            yield looked
            assert looked.foreign == []
            assert looked.faults == [], looked.faults
        finally:
            context.close()

    def another(self, context: BrowserContext, place: str = "", *, with_key: bool = True) -> Looked:
        """Open one more tab of a session."""
        looked = Looked(context.new_page(), self.origin)
        tab = looked.page
        tab.set_default_timeout(WITHIN_S * 1000)
        tab.add_init_script(_WATCH)
        tab.on("request", lambda request: looked.on_request(request))
        tab.on("pageerror", lambda error: looked.faults.append(str(error)))
        tab.on("console", lambda said: looked.faults.append(said.text) if said.type == "error" else None)
        tab.goto(self.url if with_key else f"{self.origin}/{place}")
        if with_key and place:
            tab.wait_for_selector("h1")
            tab.evaluate("place => { location.hash = place }", place)
        return looked


def begin(folder: Path, name: str, url: str, *options: str) -> subprocess.Popen[str]:
    """Begin `loadlens hit` with a record in the folder, and wait until the record is there."""
    return begin_verb(folder / name, "hit", *options, url)


def begin_verb(path: Path, verb: str, *words: str) -> subprocess.Popen[str]:
    """Begin a verb with a record at a path, and wait until the record is there."""
    command = [sys.executable, "-m", "loadlens", verb, *words, "--quiet", "-o", str(path)]
    process = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    wait_for(lambda: (path / "events.jsonl").exists() or process.poll() is not None)
    return process


def finish(process: subprocess.Popen[str], *statuses: int) -> None:
    """Wait for a command that succeeds or ends with one of these statuses.

    Its trial may be invalid, for want of a core: the page has to show that as well.
    """
    output, _ = process.communicate(timeout=60)
    assert process.returncode in (0, ExitCode.INVALID, *statuses), output


def wait_for(is_so: Callable[[], object], within_s: float = WITHIN_S) -> None:
    """Look again until something is so; fail after a bound that only a defect reaches."""
    until = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < until, "it did not come to be"
        time.sleep(0.05)


def figure(tab: Page, name: str) -> int:
    """Read a count of the first screen: due, sent, answered, failed ...; -1 before the first counts came."""
    text = tab.locator(".figures > div").filter(has=tab.get_by_text(name, exact=True)).locator("dd span")
    return int(re.sub(r"\D", "", text.first.inner_text()) or -1)


def sealed(record: Path) -> dict[str, Any]:
    """Return what the record's only trial counted."""
    (path,) = record.glob("trials/*/*/trial.json")
    written: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return written


def checked(tab: Page, call: str) -> Any:
    """Return what a function of `page_checks.js` answers in a tab."""
    return tab.evaluate(f"{CHECKS.read_text(encoding='utf-8').strip()}.{call}")


def violations(tab: Page) -> list[str]:
    """Return what axe-core objects to; it runs through the debugger, so the page's policy stays in force."""
    tab.evaluate(AXE.read_text(encoding="utf-8"))
    found = tab.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
    ]
