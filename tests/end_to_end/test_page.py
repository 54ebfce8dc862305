"""The page of `loadlens ui` in Chromium and Firefox, with real runs: what it shows and never does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from benches.measuring import ROOT, Origin
from benches.tab import Handler
from playwright.sync_api import Browser, Page, Playwright, Request, Route, expect, sync_playwright

from loadlens.errors import ExitCode
from loadlens.record import open_run as open_record
from loadlens.report import build
from tests import tiny
from tests.end_to_end.browsing import (
    AXE,
    Looked,
    Ui,
    begin,
    begin_verb,
    browser_of,
    checked,
    figure,
    finish,
    sealed,
    violations,
    wait_for,
)
from tests.end_to_end.hitting import url_of
from tests.end_to_end.running import wait_for_samples

LAYOUT = ROOT / "tests/data/page/layout.json"
WIDTHS = (360, 768, 1440, 2560)
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="module")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    browser = browser_of(playwright, "chromium")
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def firefox(playwright: Playwright) -> Iterator[Browser]:
    browser = browser_of(playwright, "firefox")
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, server: Origin) -> Path:
    """A folder with a study that was killed, and two sealed runs, one of them with failures."""
    folder = tmp_path_factory.mktemp("page") / "runs"
    shutil.copytree(ROOT / "tests/data/records/version-1", folder / "killed study")
    first = begin(folder, "good", url_of(server, "/delay/5"), "-d", "3s", "--rate", "100")
    second = begin(folder, "bad", url_of(server, "/status/503"), "-d", "2s", "--rate", "50")
    finish(first)
    finish(second, ExitCode.TESTBED)
    (folder / "bad").rename(folder / HOSTILE)
    return folder


@pytest.fixture(scope="module")
def ui(runs: Path) -> Iterator[Ui]:
    serving = Ui(runs)
    yield serving
    serving.close()


def shows(tab: Page, name: str, count: int) -> bool:
    return figure(tab, name) == count


def open_run(tab: Page, name: str) -> None:
    tab.get_by_role("link", name=name, exact=True).click()
    expect(tab.locator(".figures").first).to_be_visible()


def test_the_key_leaves_the_address_bar_and_a_second_tab_needs_none(ui: Ui, chromium: Browser) -> None:
    with ui.tab(chromium) as first:
        expect(first.page.locator("h1")).to_have_text("3 runs, none running")

        assert ui.token not in first.page.url
        assert ui.token not in first.page.evaluate("JSON.stringify([localStorage, document.cookie])")
        second = ui.another(first.page.context, with_key=False)
        expect(second.page.locator("h1")).to_have_text("3 runs, none running")
        assert second.foreign == second.faults == []


def test_without_the_key_the_page_says_what_to_open(ui: Ui, chromium: Browser) -> None:
    context = chromium.new_context()
    looked = ui.another(context, with_key=False)

    expect(looked.page.locator("h1")).to_have_text("This page needs its key")
    context.close()


def test_a_run_is_followed_through_a_reload_in_two_tabs_and_its_sums_are_the_accounting(
    ui: Ui, runs: Path, server: Origin, chromium: Browser
) -> None:
    process = begin(runs, "live", url_of(server, "/delay/5"), "-d", "5s", "--rate", "100")
    with ui.tab(chromium) as first:
        tab = first.page
        open_run(tab, "live")
        wait_for(lambda: figure(tab, "answered") > 100)
        seen = figure(tab, "answered")
        wait_for(lambda: figure(tab, "answered") > seen)

        tab.reload()
        expect(tab.locator(".figures").first).to_be_visible()
        wait_for(lambda: figure(tab, "answered") >= seen)
        wait_for(lambda: has_line(tab, "requests", until=0.5))  # the first seconds are there again
        second = ui.another(tab.context, tab.url.removeprefix(f"{ui.origin}/"), with_key=False)
        finish(process)

        counts = sealed(runs / "live")["engine"]["streams"][0]["requests"]
        for page in (tab, second.page):
            expect(page.locator("#bar .state")).to_contain_text("finished")
            answered = counts["ok"] + counts["unexpected_status"] + counts["check_failed"]
            for name, count in {"due": counts["due"], "sent": counts["issued"], "answered": answered}.items():
                wait_for(partial(shows, page, name, count))
            expect(page.locator(".sums").first).to_contain_text("books balance")
        assert second.foreign == second.faults == []


def test_a_fleet_is_followed_with_a_row_per_node_and_its_sums_are_the_accounting(
    ui: Ui, runs: Path, server: Origin, chromium: Browser
) -> None:
    options = ("--fleet", "local:2", "-d", "6s", "--rate", "200")
    process = begin(runs, "fleet", url_of(server, "/delay/5"), *options)
    with ui.tab(chromium) as looked:
        tab = looked.page
        open_run(tab, "fleet")
        wait_for(lambda: figure(tab, "answered") > 100)
        assert process.poll() is None, "the counts came at the end"
        seen = figure(tab, "answered")
        wait_for(lambda: figure(tab, "answered") > seen)
        nodes = tab.get_by_role("region", name="Nodes").locator("tbody tr")
        expect(nodes).to_have_count(2)
        expect(nodes.first).to_contain_text("/s")
        wait_for(lambda: has_line(tab, "response", until=2))
        finish(process)

        counts = sealed(runs / "fleet")["engine"]["streams"][0]["requests"]
        assert counts["due"] == 1200
        for name, count in {"due": counts["due"], "sent": counts["issued"]}.items():
            wait_for(partial(shows, tab, name, count))
        expect(nodes.first.locator("td").first).to_have_text("600")
        if AXE.exists():
            assert violations(tab) == []


def test_firefox_shows_a_run_live_and_after_a_reload(
    ui: Ui, runs: Path, server: Origin, firefox: Browser
) -> None:
    process = begin(runs, "in firefox", url_of(server, "/delay/5"), "-d", "4s", "--rate", "100")
    with ui.tab(firefox) as looked:
        tab = looked.page
        open_run(tab, "in firefox")
        wait_for(lambda: figure(tab, "answered") > 50)
        tab.reload()
        expect(tab.locator(".figures").first).to_be_visible()
        finish(process)

        expect(tab.locator("#bar .state")).to_contain_text("finished")
        wait_for(lambda: figure(tab, "due") == 400)


def test_a_killed_run_is_shown_as_interrupted_with_what_was_recorded(
    ui: Ui, runs: Path, server: Origin, chromium: Browser
) -> None:
    process = begin(runs, "killed", url_of(server, "/delay/5"), "-d", "60s", "--rate", "100")
    with ui.tab(chromium) as looked:
        tab = looked.page
        open_run(tab, "killed")
        wait_for(lambda: figure(tab, "answered") > 100)

        process.send_signal(signal.SIGKILL)
        process.wait()

        expect(tab.locator("#bar .state")).to_contain_text("interrupted")
        assert figure(tab, "answered") > 100
        assert process.stdout is not None
        process.stdout.close()


def test_names_from_a_record_are_text_and_never_markup(ui: Ui, chromium: Browser) -> None:
    with ui.tab(chromium) as looked:
        tab = looked.page
        open_run(tab, HOSTILE)

        expect(tab.locator("#bar .where")).to_have_text(HOSTILE)
        expect(tab.get_by_role("region", name="Failures")).to_contain_text("503")
        assert tab.locator("img").count() == 0
        assert not tab.evaluate("window.attacked")


def test_everything_can_be_done_with_the_keyboard(ui: Ui, chromium: Browser) -> None:
    with ui.tab(chromium, viewport={"width": 1440, "height": 900}) as looked:
        tab = looked.page
        expect(tab.get_by_role("link", name="good", exact=True)).to_be_visible()
        tab.keyboard.press("Tab")
        expect(tab.get_by_role("link", name="Skip to the content")).to_be_focused()
        tab_to(tab, "good")
        tab.keyboard.press("Enter")
        expect(tab.locator(".chart").first).to_be_visible()
        expect(tab.locator("main")).to_be_focused()

        tab_to(tab, "Moment that the figures are read at")
        moment = tab.locator(".moment span")
        expect(moment).to_contain_text("latest values")
        tab.keyboard.press("PageDown")
        expect(moment).to_contain_text("at ")

        tab_to(tab, "values as a table")
        tab.keyboard.press("Enter")
        expect(tab.locator(".chart table").first).to_be_visible()

        tab_to(tab, "open the sample", whole=False)
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("dialog")).to_contain_text("response time, from due")
        tab.keyboard.press("Escape")
        expect(tab.get_by_role("dialog")).to_have_count(0)
        assert "open the sample" in focused(tab)


def test_the_content_is_skipped_to_and_the_screen_stays(ui: Ui, chromium: Browser) -> None:
    with ui.tab(chromium) as looked:
        tab = looked.page
        open_run(tab, "good")
        address = tab.url
        tab.get_by_role("link", name="Skip to the content").focus()
        tab.keyboard.press("Enter")

        expect(tab.locator("main")).to_be_focused()
        assert tab.url == address
        tab.evaluate("location.hash = 'main'")
        expect(tab.locator("#bar .where")).to_have_text("good")
        tab.reload()
        expect(tab.locator("h1")).to_contain_text("runs, none running")  # the session is still open


def test_a_list_that_lost_its_server_is_shown_again(ui: Ui, chromium: Browser) -> None:
    with ui.tab(chromium) as looked:
        tab = looked.page
        tab.clock.install()
        tab.reload()
        expect(tab.locator("h1")).to_contain_text("runs, none running")
        box = tab.get_by_label("Compare good")
        box.focus()
        tab.route("**/api/runs", lambda route: route.abort())
        tab.clock.run_for(5000)
        expect(tab.get_by_text("the server does not answer")).to_be_visible()
        tab.unroute("**/api/runs")
        tab.clock.run_for(5000)

        expect(tab.locator("h1")).to_contain_text("runs, none running")
        expect(box).to_be_focused()
        looked.faults.clear()  # the browser's own words about the request


def test_a_chosen_trial_is_followed_and_what_is_open_stays_so(
    ui: Ui, runs: Path, server: Origin, chromium: Browser
) -> None:
    process = begin(runs, "chosen", url_of(server, "/status/503"), "-d", "6s", "--rate", "50")
    with ui.tab(chromium) as looked:
        tab = looked.page
        open_run(tab, "chosen")
        wait_for(lambda: figure(tab, "answered") > 0)
        run = tab.url.partition("#/run/")[2]
        now = tab.evaluate("run => fetch(`/api/runs/${run}`).then(r => r.json()).then(r => r.running)", run)
        tab.evaluate("hash => { location.hash = hash }", f"/run/{run}/{now['case']}/{now['trial']}")
        expect(tab.get_by_role("link", name="follow the running trial")).to_be_visible()
        sample = tab.get_by_role("region", name="Failures").locator("summary").first
        sample.click()
        seen = figure(tab, "answered")
        wait_for(lambda: figure(tab, "answered") > seen)
        assert process.poll() is None, "the counts came at the end"

        expect(sample).to_be_focused()
        assert sample.locator("..").get_attribute("open") is not None
        finish(process, ExitCode.TESTBED)
        expect(tab.get_by_role("heading", name="Slowest requests")).to_be_visible()
        wait_for(lambda: figure(tab, "due") == 300)


def test_a_run_that_was_left_before_its_answer_is_not_followed(
    ui: Ui, runs: Path, server: Origin, chromium: Browser
) -> None:
    process = begin(runs, "left", url_of(server, "/delay/5"), "-d", "60s", "--rate", "10")
    with ui.tab(chromium) as looked:
        tab = looked.page
        held: list[Route] = []
        streams: list[Request] = []
        tab.route("**/api/runs/*", lambda route: held.append(route))
        tab.on("request", lambda request: streams.append(request) if "/stream" in request.url else None)
        tab.get_by_role("link", name="left", exact=True).click()
        wait_for(lambda: tab.evaluate("true") and held)  # a call lets the driver hand the request over
        tab.get_by_role("link", name="all runs").click()
        expect(tab.locator("h1")).to_contain_text("1 running now")
        with tab.expect_response("**/api/runs/*"):
            held[0].continue_()
        tab.wait_for_timeout(500)

        assert streams == []
        assert not tab.title().startswith("●")
        process.send_signal(signal.SIGINT)
        finish(process, ExitCode.INTERRUPTED, ExitCode.TERMINATED)


def test_charts_zoom_together_and_back(ui: Ui, chromium: Browser) -> None:
    with ui.tab(chromium, viewport={"width": 1440, "height": 900}) as looked:
        tab = looked.page
        open_run(tab, "good")
        wait_for(lambda: checked(tab, "isDrawn('.plot')"))
        box = tab.locator("#chart-requests .u-over").bounding_box()
        assert box is not None
        whole = tab.locator(".moment span").inner_text()

        tab.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 30)
        tab.mouse.down()
        tab.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 30)
        tab.mouse.up()
        tab.mouse.move(5, 5)

        expect(tab.locator(".moment span")).not_to_have_text(whole)
        tab.get_by_role("button", name="Show all of the time").click()
        expect(tab.locator(".moment span")).to_have_text(whole)


def test_two_runs_are_compared_the_older_one_first(ui: Ui, chromium: Browser) -> None:
    with ui.tab(chromium) as looked:
        tab = looked.page
        tab.get_by_label(f"Compare {HOSTILE}").check()
        expect(tab.get_by_role("button", name="Compare the two")).to_be_disabled()
        tab.get_by_label("Compare good").check()
        tab.get_by_role("button", name="Compare the two").click()

        expect(tab.locator(".question")).to_contain_text(f"A is good, B is {HOSTILE}")
        expect(tab.locator("h1")).to_contain_text(f"good and {HOSTILE}")
        wait_for(lambda: checked(tab, "isDrawn('.plot')"))
        if AXE.exists():
            assert violations(tab) == []


@pytest.fixture
def of_study(tmp_path: Path) -> Iterator[tuple[Ui, Path]]:
    """A page over a folder with a study of two trials, which was killed in the first of them."""
    study = tiny.write_study(tmp_path / "study", trials=1, duration="2s")
    record = tmp_path / "runs" / "tiny-1"
    process = begin_verb(record, "run", str(study))
    wait_for_samples(record)
    process.kill()
    process.communicate()
    serving = Ui(record.parent)
    yield serving, record
    serving.close()


def test_a_study_that_was_killed_is_resumed_and_begun_again_from_the_page(
    of_study: tuple[Ui, Path], chromium: Browser
) -> None:
    serving, record = of_study
    with serving.tab(chromium) as looked:
        tab = looked.page
        open_run(tab, record.name)
        state = tab.locator("#bar .state")
        expect(state).to_contain_text("interrupted")
        confirmed(tab, "Resume the run")
        expect(state).to_contain_text("running")
        expect(state).to_contain_text("finished", timeout=60_000)
        expect(tab.get_by_text("2 of 2 trials complete").first).to_be_visible()
        assert open_record(record).is_complete
        answer = build.report(open_record(record)).answer[0]
        expect(tab.locator("h1")).to_contain_text(answer[1:].rstrip("."))

        confirmed(tab, "Start it again")
        tab.get_by_role("link", name="Open it").click()
        expect(tab.locator("#bar .where")).not_to_have_text(record.name)
        expect(state).to_contain_text("running")
        confirmed(tab, "Stop the run")
        expect(state).to_contain_text("stopped")
        # A run that was begun a moment ago has no record: the page asks again, the browser notes each 404.
        looked.faults[:] = [fault for fault in looked.faults if "status of 404" not in fault]
    assert len(list(record.parent.iterdir())) == 2


def test_a_load_is_changed_and_stopped_after_questions_and_has_marks_and_no_figures(
    ui: Ui, runs: Path, server: Origin, chromium: Browser
) -> None:
    process = begin(runs, "changed", url_of(server, "/delay/5"), "-d", "60s", "-c", "2")
    with ui.tab(chromium) as looked:
        tab = looked.page
        open_run(tab, "changed")
        number = tab.get_by_label("New load, users")
        number.fill("0")
        tab.get_by_role("button", name="Change the users").click()
        expect(tab.get_by_role("dialog")).to_have_count(0)  # the browser asks for another number
        number.fill("5")
        confirmed(tab, "Change the users", "Change it")

        marks = tab.get_by_role("list", name="Dotted lines in the charts")
        expect(marks).to_contain_text("load changed from 2 to 5 users")
        expect(tab.get_by_role("list", name="Events, newest first")).to_contain_text("from 2 to 5 users")
        if AXE.exists():
            assert violations(tab) == []
        tab.get_by_role("button", name="Stop the run").click()
        tab.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        expect(tab.get_by_role("dialog")).to_have_count(0)
        assert process.poll() is None
        confirmed(tab, "Stop the run")
        finish(process, ExitCode.INTERRUPTED, ExitCode.TERMINATED)
        expect(tab.locator("#bar .state")).to_contain_text("stopped")
        if sealed(runs / "changed")["status"] == "exploratory":  # not if the generator had no core
            expect(tab.locator("h1")).to_contain_text("The load was changed while it ran")
    (change,) = sealed(runs / "changed")["engine"]["load_changes"]
    assert (change["old"], change["new"]) == (2, 5)


def confirmed(tab: Page, button: str, verb: str = "") -> None:
    """Press a button, and say yes to its question."""
    tab.get_by_role("button", name=button).click()
    tab.get_by_role("dialog").get_by_role("button", name=verb or button).click()
    expect(tab.get_by_role("dialog")).to_have_count(0)


def test_colours_follow_the_system_until_the_reader_chooses(ui: Ui, chromium: Browser) -> None:
    with ui.tab(chromium, color_scheme="dark") as looked:
        tab = looked.page
        dark = background(tab)
        tab.get_by_role("button", name="light colours").click()
        assert background(tab) == "rgb(255, 255, 255)" != dark
        tab.reload()
        expect(tab.get_by_role("button", name="dark colours")).to_be_visible()
        assert background(tab) == "rgb(255, 255, 255)"


SCREENS = {"list": "", "hit": "good", "failures": HOSTILE, "study": "killed study"}


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_has_its_reviewed_layout_and_no_barrier_in_both_themes(
    ui: Ui, chromium: Browser, screen: str
) -> None:
    """Compare where things are; how wide a text is depends on the fonts of the machine."""
    with ui.tab(chromium, color_scheme="light") as looked:
        tab = looked.page
        if SCREENS[screen]:
            open_run(tab, SCREENS[screen])
        shown = ".plot" if SCREENS[screen] else "table"
        wait_for(lambda: checked(tab, f"isDrawn('{shown}')"))
        layouts = {}
        for theme in ("light", "dark"):
            tab.emulate_media(color_scheme=theme)
            for width in WIDTHS:
                shoot(looked, screen, width, theme)
                layouts[f"{screen} {width}"] = layout = checked(tab, "layout()")
                assert layout.pop("faults") == [], f"{screen} at {width} px, {theme}"
            assert background(tab) == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 29)"}[theme]
            if AXE.exists():
                assert violations(tab) == []
    reviewed = json.loads(LAYOUT.read_text(encoding="utf-8")) if LAYOUT.exists() else {}
    if os.environ.get("LOADLENS_REVIEWED"):
        LAYOUT.write_text(json.dumps({**reviewed, **layouts}, indent=1, sort_keys=True) + "\n")
    else:
        assert layouts == {name: reviewed.get(name) for name in layouts}


def shoot(looked: Looked, screen: str, width: int, theme: str) -> None:
    """Resize the tab to its whole height, so that every chart is drawn; keep a picture if it is wanted."""
    tab = looked.page
    tab.set_viewport_size({"width": width, "height": 900})
    height = tab.evaluate("document.documentElement.scrollHeight")
    tab.set_viewport_size({"width": width, "height": min(height, 8000)})
    wait_for(lambda: checked(tab, "isDrawn('h1')"))
    if folder := os.environ.get("LOADLENS_SHOTS"):
        tab.screenshot(path=Path(folder) / f"{screen}-{width}-{theme}.png")


def background(tab: Page) -> str:
    return str(tab.evaluate("getComputedStyle(document.body).backgroundColor"))


def focused(tab: Page) -> str:
    return str(
        tab.evaluate(
            "(document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent).trim()"
        )
    )


def tab_to(tab: Page, name: str, *, whole: bool = True) -> None:
    """Press Tab until what has this name has the focus."""
    for _ in range(120):
        tab.keyboard.press("Tab")
        if focused(tab) == name or (not whole and name in focused(tab)):
            return
    raise AssertionError(f"Tab does not reach {name}")


def has_line(tab: Page, chart: str, *, until: float) -> bool:
    """Return whether a chart draws something coloured in the left part of its plot."""
    tab.locator(f"#chart-{chart}").scroll_into_view_if_needed()
    expect(tab.locator(f"#chart-{chart} canvas")).to_be_visible()
    return int(checked(tab, f"coloured('{chart}', {until})")) > 20


def test_the_page_draws_what_the_benchmark_of_a_tab_makes_up(
    chromium: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that stops at an error stays small, and the benchmark looks at no more than its memory."""
    monkeypatch.setattr(Handler, "seconds", 60, raising=False)
    monkeypatch.setattr(Handler, "speed", 60.0, raising=False)
    faults: list[str] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = chromium.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"http://127.0.0.1:{server.server_port}/#key")
        expect(page.locator("canvas").first).to_be_visible()
        page.close()
        server.shutdown()
    assert faults == []
