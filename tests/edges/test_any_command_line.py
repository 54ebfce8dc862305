"""Any words on the command line end with a documented code, few lines and nothing left behind.

`LOADLENS_EXAMPLES=n` tries more of them.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import shutil
import signal
import time
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import click
import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadlens.cli import app
from tests.edges.commands import MARK, marked
from tests.edges.forking import FOLDER, asking, end, request

EXAMPLES = int(os.environ.get("LOADLENS_EXAMPLES", "150"))
CODES = {0, 2, 3, 4, 5, 6, 99}
ENDED = {130, 143}  # by a signal
SERVES = {0, *ENDED}  # `ui` runs until then, which is no failure
MOST_LINES = 60
MOST_CPU_S = 10.0
LIMITS = {resource.RLIMIT_CPU: (20, 20), resource.RLIMIT_FSIZE: (1 << 26, 1 << 26)}
SIGNALS = ((signal.SIGTERM, 20.0), (signal.SIGKILL, 10.0))  # and seconds before each

PROGRAM = typer.main.get_command(app)
assert isinstance(PROGRAM, click.Group)
OPTIONS = {
    name: sorted({flag for each in verb.params if isinstance(each, click.Option) for flag in each.opts})
    for name, verb in PROGRAM.commands.items()
}
# What takes long by itself is kept short.
SHORTLY = {"demo": b"--list", "doctor": b"--no-measure"}
VALUES = [
    b"0", b"1", b"3", b"-1", b"1e3", b"1.5", b"0s", b"10ms", b"1s", b"5x", b"nan", b"inf", b"1k", b"9" * 30,
    b"", b"-", b"--", b"@", b"@/dev/zero", b"/dev/null", b"/dev/zero", b"/", b".", b"..", b"study.yaml",
    b"record", b"feed.csv", b"body", b"f=feed.csv", b"f=feed.csv,unique", b"1s:5", b"1s:5,0s:1",
    b"uniform:1ms,2ms", b"keep", b"new", b"2xx", b"200,404", b"contains:a", b"regex:(", b"json:a=1",
    b"header:A", b"p99<1s", b"rate>1/s", b"failed<1%", b"p99", b"bearer:HOME", b"basic:a:HOME", b"X: y",
    b"X", b"Host: a", b"{{uuid}}", b"{{f.id}}", b"{{", b"{{int 1}}", b"json=o.json", b"md=o", b"a=b", b"a=",
    b"=b", b"GET", b"curl", b"har", b"wrk.lua", b"bash", b"lock", b"poisson", b"drop", b"\xff", b"\xc3\x28",
    b"\x1b[31m", b"a\nb", b"\r", b"\t", "é".encode(), "\u202e".encode(), b"a" * 300, b"%", b"%s", b"$HOME",
    b"~", b"*",
]  # fmt: skip
STUDY = (
    b"entry: http://127.0.0.1:1\nscenarios: {look: [{get: /}]}\nload: {users: 1, requests: 3}\ntrials: 1\n"
)
# No dot, colon, slash or digit: none of them is the address of another machine.
BYTES = st.binary(min_size=1, max_size=12).map(
    lambda raw: bytes(b for b in raw if b not in b"\0.:/0123456789")
)


def words(url: bytes) -> st.SearchStrategy[list[bytes]]:
    def of_verb(name: str) -> st.SearchStrategy[list[bytes]]:
        flags = st.sampled_from([*OPTIONS[name], "-h"]).map(str.encode)
        urls = [url, url + b"{{uuid}}", url + b"\xff", url + b"\xed\xa0\x80", b"http://127.0.0.1:1/"]
        value = st.one_of(st.sampled_from([*VALUES, *urls]), BYTES)
        with_value = st.tuples(flags, value).map(lambda pair: [pair[0], pair[1]])
        joined = st.tuples(flags, value).map(lambda pair: [pair[0] + b"=" + pair[1]])
        part = st.one_of(with_value, joined, value.map(lambda each: [each]), flags.map(lambda each: [each]))
        begin = [name.encode()] if name else []
        end = [SHORTLY[name]] if name in SHORTLY else [b"-n", b"3"] if name in ("hit", "ab", "hey") else []
        subject = [url] if name in ("hit", "init", "ab", "hey") else [b"http://127.0.0.1:1/"]
        return st.tuples(st.lists(part, max_size=5), st.booleans()).map(
            lambda drawn: [*begin, *(subject if drawn[1] else []), *chain.from_iterable(drawn[0]), *end]
        )

    return st.one_of(
        st.sampled_from(sorted(OPTIONS)).flatmap(of_verb),
        st.lists(st.one_of(BYTES, st.sampled_from(VALUES)), max_size=4),
    )


@dataclass(frozen=True)
class Ended:
    """The end of a command."""

    code: int
    cpu_s: float
    was_ended: bool  # for it took too long
    stderr: str


@dataclass
class Typed:
    """Runs words as a command, in a folder of its own."""

    forks: Path
    folder: Path
    temporary: Path
    count: int = 0

    def run(self, given_words: list[bytes]) -> Ended:
        self.count += 1
        folder = self.folder / str(self.count)
        folder.mkdir()
        (folder / "study.yaml").write_bytes(STUDY)
        (folder / "feed.csv").write_bytes(b"id,name\n1,a\n2,b\n")
        (folder / "body").write_bytes(b"{}")
        ours = {MARK: folder.parent, "TMPDIR": self.temporary, "XDG_CACHE_HOME": folder.parent / "cache"}
        variables = os.environb | {os.fsencode(name): os.fsencode(value) for name, value in ours.items()}
        shown = folder.with_suffix(".stderr")
        was_ended = False
        with contextlib.ExitStack() as closes:
            asked = closes.enter_context(contextlib.closing(asking(str(self.forks))))
            null = closes.enter_context(open(os.devnull, "r+b")).fileno()
            stderr = closes.enter_context(shown.open("wb")).fileno()
            place = os.open(folder, os.O_RDONLY)
            closes.callback(os.close, place)
            request(asked, given_words, {0: null, 1: null, 2: stderr, FOLDER: place}, variables, LIMITS)
            for number, within_s in SIGNALS:
                if select.select([asked], [], [], within_s)[0]:
                    break
                asked.send(bytes([number]))
                was_ended = True
            code, cpu_s = end(asked)
        shutil.rmtree(folder)
        return Ended(code, cpu_s, was_ended, shown.read_bytes().decode(errors="replace"))

    def left(self) -> list[str]:
        """Return processes and temporary files; waits for what is ending."""
        until = time.monotonic() + 5
        while True:
            remains = [*marked(str(self.folder)), *map(str, self.temporary.iterdir())]
            if not remains or time.monotonic() > until:
                return remains
            time.sleep(0.02)


@pytest.fixture
def typed(forks: Path, tmp_path: Path) -> Typed:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    return Typed(forks, tmp_path, temporary)


def test_any_words_end_with_a_documented_code_and_leave_nothing(typed: Typed, url: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(drawn=words(url.encode()))
    def judge(drawn: list[bytes]) -> None:
        line = [word for word in drawn if b"\0" not in word]
        ended = typed.run(line)
        report = f"{line}\n{ended.code} {ended.cpu_s}\n{ended.stderr[-3000:]}"
        codes = (SERVES if b"ui" in line else ENDED) if ended.was_ended else CODES
        assert ended.code in codes, report
        assert "Traceback" not in ended.stderr, report
        assert "internal error" not in ended.stderr, report
        assert len(ended.stderr.splitlines()) <= MOST_LINES, report
        assert "\x1b" not in ended.stderr, report
        assert ended.cpu_s < MOST_CPU_S, report
        assert typed.left() == [], report

    judge()
