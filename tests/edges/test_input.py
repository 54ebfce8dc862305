"""Input at an edge: refused before anything is started or written, with the place and one thing to try."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.edges.commands import Done, assert_is_clean, possible, run


@dataclass(frozen=True)
class Edge:
    """A command, how it must end, and files that it finds: a name and what stands in it."""

    command: str
    code: int
    stderr: tuple[str, ...] = ()
    files: tuple[tuple[str, bytes], ...] = ()


HEAD = b"entry: http://127.0.0.1:1\nscenarios: {look: [{get: /}]}\nload: {users: 2, duration: 1s}\n"
LEVEL = b"""entry: http://127.0.0.1:1
scenarios: {look: [{get: /items/$kind}]}
load: {users: 2, duration: 1s}
factors: {kind: [plain, LEVEL]}
"""
FEED = '$L hit "$U?{{f.name}}" -n 2 --feed f=f.csv'
STUDY_FEED = b"""entry: http://127.0.0.1:1
scenarios: {look: [{get: "/{{f.name}}"}]}
load: {users: 2, duration: 1s}
feeds: {f: {file: f.csv}}
"""
OPEN_QUOTE = (("f.csv", b'id,name\n1,Ann\n2,"Bo\n3,Cy\n'),)

FEEDS = (
    Edge(FEED, 2, ("f.csv:3 to line", "a quote is not closed"), OPEN_QUOTE),
    Edge(FEED, 2, ("f.csv:2", "a quote is not closed"), (("f.csv", b'id,name\n1,"Ann\n2,"Bo"\n'),)),
    Edge(FEED, 2, ("f.csv:2", "a quote is not closed"), (("f.csv", b'id,name\n"Ann,1\n2,Bo\n'),)),
    Edge("$L check s.yaml", 2, ("s.yaml:4", "a quote is not closed"), (*OPEN_QUOTE, ("s.yaml", STUDY_FEED))),
    Edge(
        "$L hit $U -H 'X-Name: {{f.name}}' -n 2 --feed f=f.csv -q",
        0,
        (),
        (("f.csv", b'\xef\xbb\xbfid,name\n1,"a ""b"", c"\n'),),
    ),
    Edge(FEED, 2, ("f.csv:1", "UTF-8"), (("f.csv", "id,name\n1,a\n".encode("utf-16")),)),
    Edge(f"truncate -s 300M f.csv; {FEED}", 2, ("f.csv", "bytes")),
    Edge(f"ln -s /dev/zero f.csv; {FEED}", 2, ("not a regular file",)),
)
STUDIES = (
    Edge(
        "$L check s.yaml",
        2,
        ("unknown key 'key0'", "unknown key 'key9'", "4,990 more unknown keys"),
        (("s.yaml", HEAD + b"".join(b"key%d: 1\n" % n for n in range(5000))),),
    ),
    Edge("$L check s.yaml", 2, ("key 'load' stands twice",), (("s.yaml", HEAD + b"load: {users: 1}\n"),)),
    Edge("$L check s.yaml", 0, (), (("s.yaml", b"\xef\xbb\xbf" + HEAD),)),
    Edge("$L check s.yaml", 2, ("UTF-16",), (("s.yaml", HEAD.decode().encode("utf-16")),)),
    Edge("$L check s.yaml", 2, ("s.yaml:4", "U+0000"), (("s.yaml", HEAD + b"notes: [a\0b]\n"),)),
    Edge("$L check s.yaml", 2, ("nested more than",), (("s.yaml", HEAD + b"notes: " + b"[" * 5000),)),
    Edge(
        "$L check s.yaml",
        2,
        ("aliases expand to more than",),
        (
            (
                "s.yaml",
                HEAD
                + b"a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
                + b"".join(
                    b"%c: &%c [%s]\n" % (n + 1, n + 1, b", ".join([b"*%c" % n] * 9)) for n in range(97, 106)
                ),
            ),
        ),
    ),
    Edge("$L check s.yaml", 2, ("more than 262,144 bytes",), (("s.yaml", HEAD + b"#" * 300_000),)),
    Edge("$L check /dev/zero", 2, ("more than 262,144 bytes",)),
)
# Each is a level that the path cannot hold; the line is that of the path.
LEVELS = tuple(
    Edge(f"$L {verb} s.yaml", 2, ("s.yaml:2", part), (("s.yaml", LEVEL.replace(b"LEVEL", level)),))
    for level, part in (
        (b"a b", "a blank"),
        (b'"a#b"', "holds #"),
        (b'"50%"', "holds '%'"),
        (b'"<"', "holds '<'"),
    )
    for verb in ("check", "run")
)
LIMITS = (
    Edge("$L hit $U -d 0s", 2, ("above 0", "--duration")),
    Edge("$L hit $U -c 1000000 -o r", 2, ("1000000 connections", "at most")),
    Edge(
        "$L run s.yaml -o r",
        2,
        ("1000000 connections", "at most"),
        (("s.yaml", HEAD.replace(b"users: 2", b"users: 1000000")),),
    ),
    Edge("$L hit http://nohost.invalid/", 3, ("unknown host 'nohost.invalid'",)),
    Edge("$L explain http://nohost.invalid/", 3, ("unknown host 'nohost.invalid'",)),
)
URLS = tuple(
    Edge(command.replace("PATH", path), 2, ("loadlens: ", part))
    for path, part in ((r"\xff", "not UTF-8"), (r"a\nb", "control character"), (r"\u00e9", "%C3%A9"))
    for command in (
        "$L hit $U$'PATH' -n 1",
        "$L ab -n 1 $U$'PATH'",
        "$L hey -n 1 -c 1 $U$'PATH'",
        "$L wrk -t1 -c1 -d1s $U$'PATH'",
        "$L explain $U$'PATH'",
        "$L init $U$'PATH' --start 'app $port' -o r",
    )
)
NAMES = (
    Edge("$L init http://127.0.0.1:99999/ --start 'app $port' -o r", 2, ("port out of range",)),
    # a comment of the study names the file
    Edge(
        "cp c.txt $'a\nb'; $L init --from curl $'a\nb' -o -",
        0,
        (),
        (("c.txt", b"curl http://127.0.0.1:1/\n"),),
    ),
    Edge("cp -r $R 'r[1]'; $L show 'r[1]'", 0),
    Edge("$L run $S -o $'r\\x1b[31m' && rm -r r*", 0, (r"r\x1b[31m",)),
    Edge("PYTHONWARNINGS=error $L show $R", 0),
    Edge("PYTHONIOENCODING=utf-16 $L hit $U -n 2 2>of-it && iconv -f utf-16 of-it >&2", 0),
)
ENDLESS = (
    Edge("$L hit --targets /dev/zero", 2, ("longer than 1 MiB", "--targets")),
    Edge("$L hit --targets - < /dev/zero", 2, ("longer than 1 MiB", "--targets")),
    Edge("$L hit $U -n 1 --cacert /dev/zero", 2, ("not a regular file", "--cacert")),
    Edge("$L init --from har /dev/zero -o -", 2, ("longer than 1 MiB", "--from")),
    Edge("$L init --from curl - -o - < /dev/zero", 2, ("longer than 1 MiB", "--from")),
    Edge("$L hey -n 1 -c 1 -D /dev/zero $U", 2, ("longer than 1 MiB",)),
    Edge("$L ab -n 1 -p /dev/zero $U", 2, ("longer than 1 MiB",)),
    Edge("truncate -s 10G body; $L hit $U -n 1 -f body", 2, ("longer than 256 MiB",)),
)

NO_WRITER, NO_READER = "nothing writes to this pipe", "nothing reads this pipe"
# Each is given named pipes without another end.
PIPES = (
    Edge("$L check p", 2, (NO_WRITER,)),
    Edge("$L capacity p.yaml", 2, (NO_WRITER,)),
    Edge("$L hit --targets p", 2, (NO_WRITER, "--targets")),
    Edge("$L hit $U -n 2 -b @p", 2, (NO_WRITER, "--body")),
    Edge("$L hit $U -n 2 -f p", 2, (NO_WRITER, "--body-file")),
    Edge("$L hit $U -n 2 --fleet p.json", 2, (NO_WRITER,)),
    Edge("$L init --from curl - -o - <<< 'curl -d @p http://127.0.0.1:1/'", 2, (NO_WRITER, "-d")),
    Edge("$L init $U --from wrk.lua p -o -", 2, (NO_WRITER,)),
    Edge("$L wrk -s p $U", 2, (NO_WRITER, "-s")),
    Edge("$L ab -p p $U", 2, (NO_WRITER, "-p")),
    Edge("$L hey -D p $U", 2, (NO_WRITER, "-D")),
    Edge("$L hit $U -n 2 -q -o json=p", 5, (NO_READER, "--out")),
    Edge("$L hit $U -n 2 -q -o influx=p", 5, (NO_READER, "--out")),
    Edge("$L hit $U -n 2 -q -o parquet=p", 5, (NO_READER, "--out")),
    Edge("$L history $F --page p", 5, (NO_READER, "--page")),
    Edge("$L init $U -o p --force", 2, (NO_READER, "--out")),
    Edge("$L ab -n 1 -g p $U", 2, (NO_READER, "-g")),
    # and with one, however late
    Edge("cat $S > p & $L check p", 0),
    Edge("(exec > p; sleep 3; cat $S) & $L check p", 0),
    Edge("$L check <(sleep 3; cat $S)", 0),
    Edge("echo 'wrk.method = \"HEAD\"' > p & $L wrk -t 2 -c 2 -d 1s -s p ${U}delay/50", 0),
    Edge("cat p > of-it & $L hit $U -n 2 -q -o json=p && wait && grep -q requests of-it", 0),
)


def test_a_named_pipe_without_another_end_is_not_waited_for(
    forking_settings: dict[str, str], tmp_path: Path
) -> None:
    def of_one(numbered: tuple[int, Edge]) -> Done:
        folder = tmp_path / str(numbered[0])
        folder.mkdir()
        command = f"mkfifo p p.yaml p.json; {numbered[1].command}"
        return run(command, folder, {**forking_settings, "F": str(Path(forking_settings["R"]).parent)})

    with ThreadPoolExecutor(len(PIPES)) as pool:  # each waits
        ends = list(pool.map(of_one, enumerate(PIPES)))

    for edge, done in zip(PIPES, ends, strict=True):
        assert_is_clean(done)
        assert done.code in possible(edge.code, edge.command), edge.command + done.shown
        assert all(part in done.stderr for part in edge.stderr), edge.command + done.shown


@pytest.mark.parametrize(
    "edge", [*FEEDS, *STUDIES, *LEVELS, *LIMITS, *URLS, *NAMES, *ENDLESS], ids=lambda edge: edge.command[:60]
)
def test_input_at_an_edge_is_refused_before_anything_is_written(
    edge: Edge, settings: dict[str, str], forking_settings: dict[str, str], tmp_path: Path
) -> None:
    for name, content in edge.files:
        (tmp_path / name).write_bytes(content)

    done = run(edge.command, tmp_path, settings if "PYTHON" in edge.command else forking_settings)

    assert_is_clean(done)
    assert done.code in possible(edge.code, edge.command), done.shown
    assert all(part in done.stderr for part in edge.stderr), done.shown
    assert len(done.stderr.splitlines()) <= 60, done.shown
    assert not (tmp_path / "r").exists()
    assert not (tmp_path / "runs").exists()
