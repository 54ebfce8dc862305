"""`loadlens explain` against services whose limit is known; the origin's books say what was really sent.

Only a few searches are real. The steps of a search, and the capacity of other services, are tested in
`tests/unit/search` with services made by formula.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from benches.measuring import Origin

from loadlens.machine.listening_sockets import listeners
from loadlens.measure import whole_run
from loadlens.model.finding import Estimate
from loadlens.model.trial import TrialStatus
from loadlens.present import words
from loadlens.record import open_run, run_id
from loadlens.search.provisional import Judge
from tests import secured, tiny
from tests.calm import calmly, where_calm
from tests.end_to_end.explaining import (
    LIMIT_S,
    SLOW_SERVICE,
    command,
    explained,
    free_port,
    naming,
    tried,
)
from tests.end_to_end.hitting import environment, settled_books, url_of
from tests.end_to_end.running import assert_sound
from tests.unit.ui.pages import asked, served

ALONE = ("--no-pid", "--no-metrics", "--no-probe")  # nothing but the URL
SHORT = ("--budget", "20s", "--seed", "5")


def users_of(answer: dict[str, object]) -> list[float]:
    return [rung["users"] for rung in answer["ladder"]]  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Search:
    """A search of one server of 10 ms, given its URL alone."""

    answer: dict[str, Any]
    record: Path
    received: int  # as the origin counted


class Searches:
    """Such searches, of which most tests look at the last."""

    def __init__(self, server: Origin, folder: Path) -> None:
        self._server, self._folder = server, folder
        self._made: list[Search] = []

    def another(self) -> Search:
        """Run one more search."""
        self._server.new_books()
        out = self._folder / f"record-{len(self._made)}"
        answer = explained(url_of(self._server, "/md1?ms=10"), "--budget", "30s", "-o", str(out))
        self._made.append(Search(answer, out, settled_books(self._server)["received"]))
        return self._made[-1]

    def last(self) -> Search:
        """Return the last search; run the first if there is none."""
        return self._made[-1] if self._made else self.another()


@pytest.fixture(scope="module")
def searches(server: Origin, tmp_path_factory: pytest.TempPathFactory) -> Searches:
    return Searches(server, tmp_path_factory.mktemp("search"))


@pytest.fixture
def search(searches: Searches) -> Search:
    return searches.last()


def test_one_server_of_ten_milliseconds_does_a_hundred_a_second(searches: Searches) -> None:
    calmly(lambda: check_a_hundred_a_second(searches.another().answer))


def check_a_hundred_a_second(answer: dict[str, Any]) -> None:
    # 1 / D = 100 /s, by the definition of the origin's station; its knee is at one user.
    capacity = answer["capacity"]
    assert capacity["point"] == pytest.approx(100.0, rel=0.05)
    assert capacity["low"] <= 100.0 * 1.02
    assert capacity["high"] >= 100.0 * 0.98
    # The station serves one at a time: a line, where few short trials show it, and a plateau in any case.
    # Other programs on the machine may be a limit, too.
    assert {"downstream.serialised", "saturation.plateau"} & {each["rule"] for each in answer["findings"]}
    assert answer["stopped_because"] == "saturated"
    *doubled, last = users_of(answer)
    assert doubled == [2**i for i in range(len(doubled))]
    assert last in (2 * doubled[-1], 64)  # 64 users wait 0.64 s: one level shows whether it collapses there
    assert answer["used_s"] <= answer["budget_s"] + 5
    # A path without a page takes no part in the station's queue.
    assert answer["others"].startswith("a missing page (404)")
    assert "hardly waits" in answer["others"]


def test_a_page_of_the_record_begins_with_the_answer_of_the_verb(search: Search) -> None:
    with served(search.record, is_run=True) as page:
        run = asked(page, f"/api/runs/{run_id(search.record)}").json()

    assert run["answer"] == [words.plain(search.answer["answer"])]


def test_the_process_behind_the_port_is_watched_and_goes_on(search: Search, server: Origin) -> None:
    assert search.answer["tier"] == "B"
    assert search.answer["found"][0].startswith(f"process {server.process.pid} (")
    assert all(rung["cpu_cores"] is not None for rung in search.answer["ladder"])
    assert any("no metrics" in text for text in search.answer["missing"])
    assert server.process.poll() is None


def test_not_a_request_is_sent_beyond_those_that_the_record_accounts_for(search: Search) -> None:
    record = open_run(search.record)

    assert_sound(record)
    assert record.is_complete
    results = [trial.result for trial in record.trials if trial.result is not None]
    sent = sum(stream.requests.issued for result in results for stream in result.streams)
    (end,) = [event for event in record.events() if event.get("event") == "explained"]
    assert search.received == sent + end["discovery_requests"]
    assert 0 < end["discovery_requests"] <= 14


def test_only_levels_of_load_are_a_curve_to_the_rules(search: Search) -> None:
    facts = whole_run.facts(open_run(search.record))

    assert [curve.label for curve in facts.curves] == ["ladder"]
    top = facts.curves[0].steps[-1]
    assert dict(top.statuses).keys() == {200}
    assert top.connections is not None
    assert top.connections.opened == top.trials * top.load
    assert top.kernel is not None
    assert top.kernel.listen_drops == 0
    assert all(step.probes and step.load == 1 for step in facts.dense)


def test_the_provisional_verdict_on_all_trials_is_that_of_the_answer(search: Search) -> None:
    judgement = Judge(search.record).judge(probe_is_load=False)

    weighty = [each for each in search.answer["findings"] if not each["is_note"]]
    assert judgement.claims == {each["rule"] for each in weighty if each["grade"] != "suspected"}
    suspected = {
        each["rule"] for each in weighty if each["grade"] == "suspected" and not each["explained_by"]
    }
    assert judgement.suspected == suspected - {"host.interference"}  # a little noise decides nothing
    assert isinstance(judgement.capacity, Estimate)
    assert judgement.capacity.point == search.answer["capacity"]["point"]


def test_the_record_can_be_explained_and_reported_like_any_other(search: Search) -> None:
    again = explained(str(search.record))
    page = subprocess.run(
        [*command()[:-1], "report", str(search.record)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=environment(),
    )

    assert page.returncode == 0, page.stderr
    assert (search.record / "report.html").exists()
    for name in ("limit", "capacity", "ladder", "findings", "stopped_because", "used_s", "unknown"):
        assert again[name] == search.answer[name], name
    assert again["record"] == str(search.record)


# --- safe --------------------------------------------------------------------------------------------------


@where_calm
def test_the_rate_cap_holds_by_the_origins_books(server: Origin) -> None:
    server.new_books()
    began = time.monotonic()

    answer = explained(url_of(server, "/json"), *ALONE, "--budget", "15s", "--rate-cap", "300")

    elapsed = time.monotonic() - began
    received = settled_books(server)["received"]
    assert answer["stopped_because"] == "rate_cap"
    assert (answer["tier"], answer["found"], answer["missing"]) == ("A", [], [])
    assert "undecided" in answer["capacity"]
    # Whatever the bursts, over the whole time it is below the cap; and no level was above it.
    assert 100 < received < 300 * elapsed
    rates = [rung["throughput_per_s"]["point"] for rung in answer["ladder"] if rung["trials"]]
    assert max(rates) <= 300


def test_a_service_that_fails_from_the_first_request_is_left_alone(server: Origin) -> None:
    server.new_books()

    done = tried(url_of(server, "/status/500"), *ALONE, *SHORT, "--json")
    answer = json.loads(done.stdout)

    assert done.returncode == 3
    assert answer["stopped_because"] == "fails_alone"
    assert [item["what"] for item in answer["unknown"]] == ["the capacity: no level of load was measured"]
    assert "status 500" in answer["answer"]
    assert answer["limit"] is None
    assert settled_books(server)["received"] <= 10


def test_a_service_that_ends_while_it_is_searched_is_named() -> None:
    port = free_port()
    code = (
        "import http.server, os\n"
        "class Work(http.server.BaseHTTPRequestHandler):\n"
        "    protocol_version = 'HTTP/1.1'\n"
        "    left = 500\n"
        "    def do_GET(self):\n"
        "        Work.left -= 1\n"
        "        Work.left > 0 or os._exit(0)\n"
        "        self.send_response(200); self.send_header('Content-Length', '0'); self.end_headers()\n"
        "    def log_message(self, *_): pass\n"
        f"http.server.ThreadingHTTPServer(('127.0.0.1', {port}), Work).serve_forever()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]):
        until = time.monotonic() + 10
        while port not in listeners().values():
            assert time.monotonic() < until, "it does not listen"
            time.sleep(0.05)

        done = tried(f"http://127.0.0.1:{port}/", "--budget", "20s", "--json")

    answer = json.loads(done.stdout)
    assert (done.returncode, answer["stopped_because"]) == (3, "service_ended")
    assert answer["answer"].startswith("The service ended under load, with ")
    assert answer["limit"] is None


def test_a_target_elsewhere_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    out = tmp_path / "record"

    done = tried("http://192.0.2.1/", "-o", str(out))

    assert done.returncode == 2
    assert "is not on this machine" in done.stderr
    assert not out.exists()


def test_a_port_where_nobody_listens_is_a_fault_and_no_answer() -> None:
    done = tried(f"http://127.0.0.1:{free_port()}/", "--json")

    assert done.returncode == 3
    assert "nothing is listening on 127.0.0.1:" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_certificate_that_is_not_trusted_is_named_with_what_would_help() -> None:
    with secured.serving() as port:
        done = tried(f"https://127.0.0.1:{port}/metrics", "--json")

    assert done.returncode == 3
    assert "the certificate's issuer is not trusted" in done.stderr
    assert "SSL_CERT_FILE=FILE" in done.stderr
    assert "start the service" not in done.stderr
    assert done.stdout == ""


# --- started -----------------------------------------------------------------------------------


def test_a_command_that_does_not_come_up_is_a_fault_of_the_testbed(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}/"

    done = tried(url, "--start", "python3 -c 'raise SystemExit(7)'", variables={"TMPDIR": str(tmp_path)})

    assert done.returncode == 3
    assert "ended before it was ready" in done.stderr
    assert list(tmp_path.iterdir()) == []


# --- ended early -------------------------------------------------------------------------------------------


def test_ctrl_c_gives_the_answer_so_far_and_leaves_nothing_of_what_was_started(tmp_path: Path) -> None:
    port = free_port()
    process = subprocess.Popen(
        command(
            f"http://127.0.0.1:{port}/",
            "--start",
            f"python3 {SLOW_SERVICE} {port}",
            "-o",
            str(tmp_path / "record"),
            "--budget",
            "40s",
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment() | {"TMPDIR": str(tmp_path)},
    )
    until = time.monotonic() + 60
    while len(list(tmp_path.glob("record/trials/ladder-users-*/*/trial.json"))) < 2:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.1)

    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert process.returncode == 130, err
    provisional = [line.partition("provisional: ")[2] for line in err.splitlines() if "provisional: " in line]
    assert provisional[0].startswith("one request alone takes")
    assert " with 1 user," in provisional[1], "a line for each level"
    assert not any("block=" in line for line in err.splitlines())
    shown = " ".join(out.split())
    assert "capacity undecided: not reached" in shown  # whatever else the machine did meanwhile
    assert "ended on request" in shown  # as the reason of no limit, or behind one that the machine had
    assert naming(f"{SLOW_SERVICE} {port}") == []
    record = open_run(tmp_path / "record")
    assert sum(trial.status is TrialStatus.COMPLETE for trial in record.trials) >= 3
    assert [path.name for path in tmp_path.iterdir()] == ["record"]
    answer = explained(str(record.path))
    # 20 ms of sleep for each request: 50 /s for one user at most; head and body leave in two pieces, so that
    # an acknowledgement which is held back for 40 ms may come between them, and more on a full machine.
    first = answer["ladder"][0]
    assert first["users"] == 1
    assert 3 < first["throughput_per_s"]["point"] < 51
    assert answer["tier"] == "B"
    assert first["cpu_cores"] is not None


# --- studies -----------------------------------------------------------------------------------------------


def test_a_study_is_run_and_answered_in_the_same_form(tmp_path: Path) -> None:
    study = tiny.write_study(tmp_path / "study", trials=1)

    answer = explained(str(study.parent), "-o", str(tmp_path / "run"), cwd=tmp_path)

    assert users_of(answer) == [1, 2]
    assert answer["budget_s"] is None
    assert answer["stopped_because"] == "record"
    assert json.dumps(answer["findings"]) is not None
