"""Typical mistakes of a command line: the exit code and the message, which says what to type instead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click
import pytest
import typer

from loadlens.cli import app, main, run_verb
from loadlens.cli.grammar import foreign

URL = "http://127.0.0.1:1/"


class Mistake(NamedTuple):
    words: str  # as typed after `loadlens`; URL is an address where nothing listens
    message: str


UNREAD = [
    Mistake("hti URL", "no verb 'hti'\n  did you mean hit?"),
    Mistake("attack URL", "no verb 'attack'\n  vegeta calls it attack; here: loadlens hit URL"),
    Mistake("frobnicate", "no verb 'frobnicate'\n  try loadlens --help, which lists the verbs"),
    Mistake(
        "study.yaml", "no verb 'study.yaml'\n  try loadlens run study.yaml, or loadlens check study.yaml"
    ),
    Mistake("--hepl", "loadlens has no option --hepl\n  did you mean --help?"),
    Mistake("hit", "hit needs a URL\n  try loadlens hit http://127.0.0.1:8080/"),
    Mistake("show", "show needs a RUN\n  try loadlens show runs/register-2c90"),
    Mistake("hit URL -d", "-d needs a value\n  at hit\n  try -d 30s"),
    Mistake("hit URL --json=3", "--json takes no value\n  at hit\n  try --json"),
    Mistake("hit URL --conections 5", "hit has no option --conections\n  did you mean --connections?"),
    Mistake("hit URL -z 5s", "hit has no option -z\n  hey and oha call it -z; here: -d 5s"),
    Mistake("hit -z5s URL", "hit has no option -z\n  hey and oha call it -z; here: -d 5s"),
    Mistake("-z 5s URL", "hit has no option -z\n  hey and oha call it -z; here: -d 5s"),
    Mistake("hit -z URL", "hit has no option -z\n  hey and oha call it -z; here: -d 10s"),
    Mistake("hit URL --vus=5", "hit has no option --vus\n  k6 calls it --vus; here: -c 5"),
    Mistake(
        "hit URL -u me:secret",
        "hit has no option -u\n  k6 and Locust set users with -u, curl "
        "credentials; here: -c 50, or --auth basic:USER:NAME",
    ),
    Mistake("hit URL -rate 50", "-rate with one dash\n  at hit\n  try --rate"),
    Mistake("hit URL -t two", "'two' is not a whole number\n  at --threads\n  try --threads N"),
    Mistake("hit URL --frobnicate", "hit has no option --frobnicate\n  try loadlens hit --help"),
    Mistake("explain URL -d 5s", "`explain` chooses the load itself; here: --budget 60s"),
    Mistake("explain URL -u 5", "`explain` chooses the load itself; here: --max-users 50"),
    Mistake("explain URL --pid 0", "at least 1, got 0\n  at --pid\n  try --pid 4711"),
    Mistake("show one two", "show takes no further word, got 'two'\n  try loadlens show --help"),
    Mistake(
        "check x --json",
        "check has no option --json\n  try loadlens hit or explain or capacity, which has it",
    ),
    Mistake("show x --json", "show has no option --json\n  try loadlens report, which has it"),
    Mistake("check x --out md=x", "check has no option --out\n  try loadlens run, which has it"),
    Mistake("run small.yaml --json", "run has no option --json\n  try --out json=FILE"),
    Mistake("run small.yaml --vus 5", "a study holds its load; here: `users: 5` below `load` of the study"),
    Mistake("k6 run x.js", "no verb 'k6'\n  try loadlens hit URL, or loadlens hit URL --driver k6"),
]


# Values that cannot be used as given.
UNUSABLE = [
    Mistake("hit htp://foo", "not an http or https URL: 'htp://foo'\n  try http://127.0.0.1:8080/path"),
    Mistake("hit /health", "not an http or https URL: '/health'\n  try http://127.0.0.1:8080/path"),
    Mistake("hit http://h:99999/", "(port out of range 0-65535)\n  try http://127.0.0.1:8080/path"),
    Mistake("hit user:pw@h:80", "credentials in a URL would end up in records\n  try --auth basic:USER:NAME"),
    Mistake("hit URL{{uid}}", "`uid` is unknown\n  at the path of the URL\n  did you mean `uuid`?"),
    Mistake("hit URL -d 5x", "'5x' is not a duration\n  at --duration\n  try 500ms, 30s, 2m or 1h30m"),
    Mistake("hit URL -d 0", "a duration here is above 0, got '0'\n  at --duration"),
    Mistake('hit URL -d {"a":1}', "  curl and hey call a body -d; here: -b TEXT"),
    Mistake("hit URL -c 0", "needs at least 1 connection, got 0\n  at --connections\n  try --connections 1"),
    Mistake("hit URL -n 1.5", "a count is a whole number, got '1.5'\n  at --requests\n  try 100, 1k or 2.5M"),
    Mistake("hit URL -r 0", "a rate is above 0 and at most 1e9 per second, got '0'\n  at --rate\n  try 50"),
    Mistake("hit URL -t 0", "0 is not from 1 to 1024\n  at --threads"),
    Mistake("hit URL --timeout 0", "at --timeout"),
    Mistake("hit URL -H Accept", "not a header: 'Accept'\n  at --header\n  try -H 'Name: value'"),
    Mistake(
        "hit URL -H Host:x", "the Host header is that of the URL\n  at --header\n  try the host in the URL"
    ),
    Mistake(
        "hit URL http://127.0.0.1:2/", "one load goes to one service, not to http://127.0.0.1:1 and http://"
    ),
    Mistake("hit URL failed<1%", "not a URL: 'failed<1%'\n  try --objective 'failed<1%'"),
    Mistake("hit URL{{who.id}}", "`who.id` is unknown\n  at the path of the URL\n  try --feed who=FILE.csv"),
    Mistake("hit -q 100 URL", "not a URL: '100'\n  hey and oha call the rate -q; here: -r 100"),
    Mistake('hit --json {"a":1} URL', "curl calls a JSON body --json; here: -b '{\"a\":1}'"),
    Mistake(
        "hit --targets stray.txt", "not a request: 'X: 1'\n  at stray.txt:2\n  try lines such as GET http"
    ),
    Mistake("hit URL --driver wrk --out md=a", "results of other tools are written as JSON only\n  at --out"),
    Mistake("hit URL URL --driver wrk", "other tools take one URL\n  at --driver"),
    Mistake("hit URL -f body.jsn", "no such file or directory\n  at --body-file\n  did you mean body.json?"),
    Mistake(
        "hit URL -b @nope", "cannot read 'nope': no such file or directory\n  at --body\n  try a path seen"
    ),
    Mistake("hit URL --out jsn=a", "not a format and its file: 'jsn=a'\n  at --out\n  try json=FILE"),
    Mistake(
        "hit URL -o a.json", "-o takes the folder of the record, not a file: a.json\n  try --out json=a.json"
    ),
    Mistake(
        "hit URL --out xml=a", "not a format and its file: 'xml=a'\n  at --out\n  try json=FILE, csv=FILE"
    ),
    Mistake("hit URL --out junit", "not a format and its file: 'junit'\n  at --out\n  try junit=FILE"),
    Mistake(
        "run small.yaml --out jnit=a", "not a format and its file: 'jnit=a'\n  at --out\n  try junit=FILE"
    ),
    Mistake("explain URL --out md", "not a format and its file: 'md'\n  at --out\n  try md=FILE"),
    Mistake(
        "report nope -o new", "a report is written into its record\n  at --out\n  try json=FILE, csv=FILE"
    ),
    Mistake("demo --out json=a", "a demo is written as its record only\n  at --out\n  try -o DIR, or --json"),
    Mistake("hit -d 30 sec URL", "not a URL: 'sec'\n  try quotes around a value with blanks"),
    Mistake("hit http:/127.0.0.1:1/x", "not a URL: 'http:/127.0.0.1:1/x'\n  try http://127.0.0.1:1/x"),
    Mistake("hit URL --check status==200", "not a check: 'status==200'\n  at --check\n  try --expect 200"),
    Mistake(
        "run small.yaml -o .", ". already holds something\n  at --out\n  try --resume to continue it, or"
    ),
    Mistake("run .", "there is no study.yaml in .\n  try small.yaml or tab.yaml"),
    Mistake("show small.yaml", "small.yaml is a study\n  try loadlens run small.yaml, which makes a record"),
    Mistake("report load.js", "load.js is a file, and a record is a folder\n  try ls runs"),
    Mistake("show URL", "a URL is no record\n  try loadlens hit URL, or loadlens explain URL"),
    Mistake("init load.js", "load.js is a script\n  try loadlens init URL, which writes a study"),
    Mistake(
        "init --from openapi URL",
        "--from takes a file, got 'http://127.0.0.1:1/'\n  at --from\n  try curl -so FILE",
    ),
    Mistake(
        "hit load.js", "load.js is a script\n  try loadlens init URL, which writes a study: scripts of k6"
    ),
    Mistake(
        "run load.js", "load.js is a script\n  try loadlens init URL, which writes a study: scripts of k6"
    ),
    Mistake("load.js", "load.js is a script\n  try loadlens init URL, which writes a study: scripts of k6"),
    Mistake(
        "explain load.js",
        "load.js is neither a study nor a record\n  try loadlens explain URL --start COMMAND",
    ),
    Mistake("hit URL -o .", ". already holds something\n  at --out\n  try another folder, -o NEW"),
    Mistake("completion fihs", "no shell 'fihs'\n  at SHELL\n  did you mean fish?"),
    Mistake("hit URL --expect 20x", "'20x' is no status\n  at --expect\n  try 200, 2xx or 200-299"),
    Mistake("hit URL --check status:200", "a status is no check\n  at --check\n  try --expect 200"),
    Mistake(
        "hit URL --check contians:OK", "no kind of check 'contians'\n  at --check\n  did you mean contains?"
    ),
    Mistake("hit URL --objective p99", "try 'p99<200ms', 'failed<1%' or 'rate>500/s'"),
    Mistake(
        "hit URL --objective p99<200", "'200' has no unit\n  at --objective\n  try p99<200ms or p99<200s"
    ),
    Mistake("hit URL --objective p42<1s", "'p42' is not a metric\n  at --objective\n  try one of mean, p50"),
    Mistake("hit URL --driver wkr", "no driver 'wkr'\n  at --driver\n  did you mean wrk?"),
    Mistake(
        "hit URL --connection kep", "no connection policy 'kep'\n  at --connection\n  did you mean keep?"
    ),
    Mistake("hit URL -r 9 --arrivals poison", "no law 'poison'\n  at --arrivals\n  did you mean poisson?"),
    Mistake("hit URL -r 9 --think 1s", "--think needs users: --rate sends each request as a new user"),
    Mistake("hit URL --ramp 5s --stages 10s:5", "more than one shape for a load\n  at --ramp and --stages"),
    Mistake("hit URL --stages 10s", "'10s' has no level behind its time\n  at --stages\n  try 10s:100"),
    Mistake("hit URL --feed users", "not a feed: 'users'\n  at --feed\n  try --feed users=users.csv"),
    Mistake(
        "hit URL{{u.id}} --feed u=body.csv", "cannot read 'body.csv': no such file or directory\n  at --feed"
    ),
    Mistake(
        "hit URL{{u.id}} --feed u=open.csv",
        'is not closed, or stands within a cell: "a, ""b"""\n  at --feed\n  try close it',
    ),
    Mistake(
        "hit URL{{u.id}} --feed u=empty.csv",
        "its first line names the columns\n  at --feed\n  try a first line",
    ),
    Mistake("hit --targets header.txt", "not a header name: 'Bad Name'\n  at header.txt:2\n  try letters"),
    Mistake("demo lock --list", "--list shows every flaw\n  at demo\n  try loadlens demo --list"),
    Mistake("ui --origin http://a\x1b", "\n  at --origin\n  try "),
    Mistake("check wide.yaml", "the file is UTF-16\n  at wide.yaml:1\n  try save the file as UTF-8"),
    Mistake("hit URL --auth me:secret", "not a form of credentials\n  at --auth\n  try basic:USER:NAME"),
    Mistake(
        "hit URL --follow 3", "redirects are not followed\n  at --follow\n  try the URL that it leads to"
    ),
    Mistake("check nope", "there is no study nope\n  try loadlens init URL, which writes one"),
    Mistake("check small.yml", "there is no study small.yml\n  did you mean small.yaml?"),
    Mistake("run URL", "a URL is no study: http://127.0.0.1:1\n  try loadlens hit http://127.0.0.1:1"),
    Mistake("check tab.yaml", "at tab.yaml:2\n  try indent with spaces"),
    Mistake("check small.yaml --set usres=5", "no such param or factor\n  did you mean users?"),
    Mistake("init --from hra x.har", "no kind 'hra'\n  at --from\n  did you mean har?"),
    Mistake(
        "init --from har x.hra", "cannot read 'x.hra': no such file or directory\n  at --from\n  try a path"
    ),
    Mistake(
        "explain URL --budget 5s", "a budget of 5 s is too short for a search\n  at --budget\n  try at least"
    ),
    Mistake("wrk -z URL", "wrk has no flag -z\n  try loadlens wrk -h"),
]
SMALL = """\
entry: http://127.0.0.1:1
params: {users: 3}
load: {users: $users, duration: 20s}
"""


def said(words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run the command line; return its exit code and what it wrote on stderr."""
    typed = words.replace("URL", URL).split(" ") if words else []
    monkeypatch.setattr("sys.argv", ["loadlens", *typed])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize("mistake", [*UNREAD, *UNUSABLE], ids=lambda mistake: mistake.words)
def test_a_mistake_is_named_with_what_to_type(
    mistake: Mistake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "body.json").write_text("{}")
    (tmp_path / "load.js").write_text("")
    (tmp_path / "stray.txt").write_text("# where to\nX: 1\n")
    (tmp_path / "small.yaml").write_text(SMALL)
    (tmp_path / "wide.yaml").write_text(SMALL, encoding="utf-16-le")
    (tmp_path / "open.csv").write_text('id,name\n1,"a\n')
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.txt").write_text("GET http://127.0.0.1:1/\nBad Name: x\n")
    (tmp_path / "tab.yaml").write_text("schema: 1\n\tstudy: x\n")

    code, message = said(mistake.words, monkeypatch, capsys)

    assert (code, mistake.message in message) == (2, True), message
    assert message.startswith("loadlens: ")


def options_of(verb: str) -> list[str]:
    group = typer.main.get_command(app)
    assert isinstance(group, click.Group)
    return [name for param in group.commands[verb].params for name in param.opts]


def test_hints_on_foreign_flags_name_options_that_exist() -> None:
    own = options_of("hit")
    strays = {flag: hint for flag, hint in foreign.HINTS.items() if not set(foreign.named(hint)) <= set(own)}

    assert strays == {}


@pytest.mark.parametrize("verb", ["hit", "explain"])
def test_no_flag_is_both_foreign_and_own(verb: str) -> None:
    own = set(options_of(verb))
    shown = {flag for flag in foreign.HINTS | foreign.SEARCHING if foreign.hint_of(flag, list(own))}

    assert shown & own == set()


def test_nothing_typed_prints_the_list_of_verbs_and_exits_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["loadlens"])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("Usage: loadlens [OPTIONS] VERB ...")


@pytest.mark.parametrize("words", ["URL", "-c 3 URL", "127.0.0.1:1", "localhost:1/path"])
def test_a_url_alone_means_hit(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, message = said(words, monkeypatch, capsys)

    assert code == 3, message
    assert "nothing is listening on " in message


# What analysis, reports and pictures need; each costs tenths of a second to load.
HEAVY = (
    "numpy",
    "scipy",
    "polars",
    "pandas",
    "jinja2",
    "vl_convert",
    "prometheus_client",
    "pg8000",
    "rich",
    "loadlens.report.write",
    "loadlens.search",
    "loadlens.diagnose",
)
REFUSALS = (
    "hti",
    "hit",
    "hit -z 3",
    "hit URL",
    "hit URL --objective p99<200",
    "hit URL --driver wkr",
    "hit URL --feed users",
    "hit URL -o .",
    "explain",
    "explain URL",
    "explain URL -c 5",
    "explain URL --budget 5s",
    "explain URL --pid 1 --no-pid",
    "explain URL --metrics URL",
    "explain http://192.0.2.1/",
    "explain URL --start true --pid 1",
    "explain nope.yaml",
    "explain load.js",
    "explain faulty.yaml",
    "run nope",
    "run URL",
    "run faulty.yaml",
    "run small.yaml --set usres=5",
    "run small.yaml --resume",
    "run small.yaml -o taken",
    "run small.yaml --out jsn=a",
    "check nope",
    "check faulty.yaml",
    "show nope",
    "show taken",
    "report nope",
    "report taken",
    "report nope -o new",
    "demo nope",
    "demo --out json=a",
    "init",
    "init URL",
    "init --from har nope.har",
    "init URL -o nowhere/study.yaml",
    "doctor nope",
    "doctor --mesure",
    "completion fihs",
    "wrk -z URL",
    "ab -n 10 URL",
    "hey -n 10 URL",
)


# Types each line of standard input in a process of its own, so that Python and click are loaded only once.
TYPE_EACH = f"""
import os, sys
from loadlens.cli import main
for words in sys.stdin.read().splitlines():
    if os.fork() == 0:
        sys.argv = ["loadlens", *words.split()]
        sys.stderr = open(os.devnull, "w")
        try:
            main()
        except SystemExit as ended:
            loaded = [name for name in {HEAVY!r} if name in sys.modules]
            os.write(1, f"{{words}}: exit {{ended.code}}, loads {{loaded}}\\n".encode())
        os._exit(0)
    os.wait()
"""


def test_a_refusal_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    (tmp_path / "load.js").write_text("")
    (tmp_path / "small.yaml").write_text(SMALL)
    (tmp_path / "faulty.yaml").write_text(SMALL.replace("duration", "duratoin"))
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("")
    typed = [words.replace("URL", URL) for words in REFUSALS]

    done = subprocess.run(
        [sys.executable, "-c", TYPE_EACH],
        input="\n".join(typed),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )

    refused = [f"{words}: exit {code}, loads []" for words in typed for code in (2, 3, 5)]
    assert [line for line in done.stdout.splitlines() if line not in refused] == []
    assert len(done.stdout.splitlines()) == len(typed)


def test_the_command_line_itself_loads_no_engine(tmp_path: Path) -> None:
    begins = ("loadlens._engine", "loadlens.yaml")
    code = f"import sys\nimport loadlens.cli\nprint([n for n in sys.modules if n.startswith({begins})])"

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )

    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        (EOFError("marshal data too short"), 1, "loadlens: internal error: EOFError: marshal data too short"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_only_an_interrupt_ends_as_one(
    fault: BaseException,
    code: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def version() -> str:
        raise fault

    monkeypatch.setattr("loadlens.engine.version", version)
    monkeypatch.setattr("sys.argv", ["loadlens", "version"])
    monkeypatch.delenv("LOADLENS_DEBUG", raising=False)

    assert run_verb() == code
    assert words in capsys.readouterr().err
