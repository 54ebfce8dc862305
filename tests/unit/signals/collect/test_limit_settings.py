"""Lines that may set a limit, of a real process, and of files that are written by hand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from loadlens.model.stacks import COMMAND_LINE, ENVIRONMENT, SourceLine
from loadlens.signals.collect.threads import limit_settings

OPTIONS = ("-Dpool.size=6", "-Dname=shop", "--verbose")
VARIABLES = {"WEB_WORKERS": "3", "DB_PASSWORD_MAX": "123", "POOL_NAME": "shop4", "YEAR": "2026"}
NOBODY = 1 << 23  # no process: beyond the most that Linux gives (PID_MAX_LIMIT)

Start = Callable[..., int]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a process that only sleeps, with its options and variables, and returns its number."""
    with ExitStack() as started:

        def begin(*options: str, cwd: Path = tmp_path, **variables: str) -> int:
            argv = (sys.executable, "-c", "import time; print(flush=True); time.sleep(60)", *options)
            process = started.enter_context(
                subprocess.Popen(argv, cwd=cwd, env=variables, stdout=subprocess.PIPE)
            )
            started.callback(process.kill)
            assert process.stdout is not None
            process.stdout.readline()  # now the kernel has its command line
            return process.pid

        yield begin


def written(folder: Path, **texts: str) -> Path:
    """Files in a folder, each named by its key, where `__` is a point."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def found_at(lines: Iterator[SourceLine]) -> set[tuple[str, int]]:
    """Name and number of each line of a file; those that are spoken have the number 0."""
    return {(Path(line.file).name, line.line) for line in lines if line.line}


def test_options_and_variables_with_a_number_are_read_next_to_lines_of_files(
    start: Start, tmp_path: Path
) -> None:
    written(tmp_path, settings__py="import os\n\nMAX_CONNECTIONS = 5\nNAME = 'pool'\n    LIMIT = 6\n")

    seen = list(limit_settings.lines([start(*OPTIONS, **VARIABLES)], []))

    path = str(tmp_path / "settings.py")
    assert [(line.file, line.line) for line in seen] == [
        (COMMAND_LINE, 0),
        (ENVIRONMENT, 0),
        (path, 3),
        (path, 5),
    ]
    assert seen[0].text.split()[0] == "-Dpool.size=6"
    assert [line.text for line in seen[1:]] == ["WEB_WORKERS=3", "MAX_CONNECTIONS = 5", "LIMIT = 6"]


def test_workers_that_are_started_alike_are_read_once(start: Start, tmp_path: Path) -> None:
    written(tmp_path, app__py="WORKERS = 2\n")
    pids = [start(*OPTIONS, **VARIABLES) for _ in range(2)]

    once, both = (list(limit_settings.lines(which, [])) for which in (pids[:1], pids))

    assert both == once
    assert len(once) == 3


def test_a_process_that_has_ended_has_no_lines() -> None:
    assert list(limit_settings.lines([NOBODY], [])) == []


def test_a_variable_counts_only_if_it_is_a_number(start: Start) -> None:
    variables = {
        "POOL_URL": "db://shop/4",
        "MAX_HEAP": "512m",
        "LIMIT": "0.5",
        "WORKERS": "four",
        "SLOTS": "3 or 4",
    }

    seen = list(limit_settings.lines([start(**variables)], []))

    assert {line.text for line in seen if line.file == ENVIRONMENT} == {"MAX_HEAP=512m", "LIMIT=0.5"}


@pytest.mark.parametrize(
    "line",
    [
        "# MAX = 5",
        "// max: 5",
        "/* max: 5",
        " * max: 5",
        "-- LIMIT 5",
        "%% max 5",
        "; max = 5",
        '"""At most 5 connections."""',
        "MAX = FIVE",  # no number
        "COUNT = 5",  # no word of a limit
        "max_v5 = x",  # the number is part of a name
    ],
)
def test_remarks_and_lines_without_a_number_or_a_word_are_left_out(line: str, tmp_path: Path) -> None:
    own = written(tmp_path, app__py=f"{line}\nMAX = 5\n") / "app.py"

    assert found_at(limit_settings.lines([], [own])) == {("app.py", 2)}


@pytest.mark.parametrize(
    "line",
    [
        "max_password = 5",
        "POOL_PASSWD: 5",
        "limit_secret = 5",
        "credentials_max = 5",
        "api_key_limit = 5",
        "max_apikey = 5",
        "pool_private_key = 5",
        'token = "limit5", 5',
        'API_TOKENS = ["limit5"], 5',
        "pool = from_url('redis://:hidden@cache:6379/5', max=5)",
        'passphrase_limit = "5 horses", 5',
        "pool = connect('postgres://shop:hidden@db/shop', 5)",
    ],
)
def test_what_may_be_a_secret_is_left_out(line: str, tmp_path: Path) -> None:
    own = written(tmp_path, app__py=f"{line}\nMAX = 5\n") / "app.py"

    assert found_at(limit_settings.lines([], [own])) == {("app.py", 2)}


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ('requests.get(url, auth=("admin", "letmein"), timeout=5)', None),
        ('smtp.login("bob", "letmein", timeout=5)', None),
        ('fetch("letmein", timeout=5)', 'fetch("...", timeout=5)'),
        ('headers = {"Connection": "close", "X-Own": "letmein"}', '"Connection": "close", "...": "..."'),
        ("timeout: '1500ms'", "timeout: '1500ms'"),
    ],
)
def test_of_lines_that_only_say_a_time_or_close_connections_no_text_is_kept(
    line: str, kept: str | None, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(f"{line}\n")

    texts = [each.text for each in limit_settings.lines([], [tmp_path / "app.py"])]

    assert len(texts) == (kept is not None)
    assert all(kept in text and "letmein" not in text for text in texts if kept)


def test_lines_that_hold_a_hidden_name_are_left_out(tmp_path: Path) -> None:
    own = written(tmp_path, app__py="CARD_LIMIT = 5\nMAX = 5\n") / "app.py"

    assert found_at(limit_settings.lines([], [own], ["card"])) == {("app.py", 2)}


def test_a_limit_of_tokens_and_an_address_without_a_password_are_no_secrets(tmp_path: Path) -> None:
    text = "max_tokens_per_s: 5\nurl: postgres://shop@db/shop?pool_max_conns=8\n"
    own = written(tmp_path, app__yaml=text) / "app.yaml"

    assert found_at(limit_settings.lines([], [own])) == {("app.yaml", 1), ("app.yaml", 2)}


def test_a_quoted_code_is_left_out_of_a_line(tmp_path: Path) -> None:
    own = written(tmp_path, app__py='users = {"8c1f00ab": 5}; pool("orders", 5)\n') / "app.py"

    (line,) = limit_settings.lines([], [own])

    assert line.text == 'users = {"...": 5}; pool("orders", 5)'


def test_folders_that_hold_no_code_of_the_service_are_left_out(start: Start, tmp_path: Path) -> None:
    line = "max: 5\n"
    written(tmp_path / "config", prod__yaml=line, Dockerfile=line, notes__txt=line, package_lock__json=line)
    (tmp_path / "config/package-lock.json").write_text(line)
    for name in (".git", ".venv", "node_modules", "site-packages", "dist-packages", "vendor", "target"):
        written(tmp_path / name / "below", lost__yaml=line)
    for name in ("tests", "build", "_build", "deps", "__pycache__"):
        written(tmp_path / "config" / name, lost__yaml=line)

    seen = found_at(limit_settings.lines([start()], []))

    assert seen == {("prod.yaml", 1), ("Dockerfile", 1), ("package_lock.json", 1)}


def test_folders_are_followed_to_a_depth(start: Start, tmp_path: Path) -> None:
    folder = tmp_path
    for depth in range(limit_settings.DEEPEST + 2):
        written(folder, **{f"depth{depth}__toml": "max = 5\n"})
        folder = folder / "next"

    seen = found_at(limit_settings.lines([start()], []))

    assert seen == {(f"depth{depth}.toml", 1) for depth in range(limit_settings.DEEPEST + 1)}


@pytest.mark.parametrize(("more", "is_read"), [(0, True), (1, False)])
def test_a_large_file_is_left_out(more: int, is_read: bool, tmp_path: Path) -> None:
    line = "max = 5\n"
    padding = "\n" * (limit_settings.LARGEST_FILE - len(line) + more)
    own = written(tmp_path, data__json=line + padding) / "data.json"

    assert bool(list(limit_settings.lines([], [own]))) is is_read


def test_a_long_line_is_cut_a_very_long_one_left_out_and_what_is_no_text_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"max = 5\n\xff\xfe\x00 max = 6\n")
    (tmp_path / "b.js").write_text(f"max = 5;{'x' * 900}\nmax = 5;{'x' * 1000}\n")

    seen = list(limit_settings.lines([], [tmp_path / "a.py"]))

    assert [(Path(line.file).name, line.line) for line in seen] == [("a.py", 1), ("a.py", 2), ("b.js", 1)]
    assert len(seen[-1].text) == limit_settings.LONGEST_LINE


def test_own_code_elsewhere_is_read_with_what_lies_next_to_it(start: Start, tmp_path: Path) -> None:
    """First the files of the code, then those next to them, then the folders of the processes."""
    written(tmp_path / "run", run__conf="max 5\n")
    elsewhere = written(tmp_path / "lib" / "shop", pool__py="MAX = 5\n", limits__yaml="max: 6\n")
    written(tmp_path / "other", other__py="MAX = 7\n")

    seen = limit_settings.lines([start(cwd=tmp_path / "run")], [elsewhere / "pool.py"])

    assert [Path(line.file).name for line in seen if line.line] == ["pool.py", "limits.yaml", "run.conf"]


def test_a_file_that_was_removed_since_is_passed_over(tmp_path: Path) -> None:
    written(tmp_path, there__py="MAX = 5\n")

    seen = limit_settings.lines([], [tmp_path / "gone.py"])

    assert found_at(seen) == {("there.py", 1)}


def test_a_file_is_named_as_its_process_names_it_and_read_once(start: Start, tmp_path: Path) -> None:
    """Frames of a container's code lead there through the process."""
    written(tmp_path, app__py="MAX = 5\n")
    pid = start(cwd=tmp_path)
    ways = [Path(f"/proc/{pid}/cwd/app.py"), Path(f"/proc/{pid}/root{tmp_path}/app.py")]

    seen = [line for line in limit_settings.lines([pid], ways) if line.line]

    assert seen == [SourceLine(str(tmp_path / "app.py"), 1, "MAX = 5")]


def test_no_more_lines_are_taken_than_the_cap(start: Start, tmp_path: Path) -> None:
    """Command lines and environments come first, and count as well."""
    for name in ("a", "b"):
        written(tmp_path, **{f"{name}__ini": "max = 5\n" * (limit_settings.MOST_LINES - 10)})

    seen = list(limit_settings.lines([start(**VARIABLES)], []))

    assert len(seen) == limit_settings.MOST_LINES
    assert seen[0] == SourceLine(ENVIRONMENT, 0, "WEB_WORKERS=3")
    # 990 of the first file, and 9 of the second
    assert (Path(seen[-1].file).name, seen[-1].line) == ("b.ini", 9)
