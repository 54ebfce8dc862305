"""A study file -> a Definition, or all of its faults. Lines are counted by hand in the texts below."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from loadlens.errors import DefinitionError, DefinitionErrors, ExitCode, nearest
from loadlens.study import lint, parse, plan
from loadlens.study.definition import Definition, Faults
from loadlens.study.parse import reference
from loadlens.study.parse import yaml_tree as study_yaml
from loadlens.study.parse.keys_study import STUDY
from loadlens.study.parse.placeholders import Name, split
from loadlens.study.parse.schema import Block, Many, Named
from loadlens.study.tree import Leaf, Node, Tree, at
from tests.unit.study.plain_tree import plain

ROOT = Path(__file__).parents[3]
EVERYTHING = ROOT / "tests" / "data" / "studies" / "everything"
REGISTER = ROOT / "studies" / "register"

SMALL = """\
schema: 1
study: small
question: does it read?
params: {users: 1}
services:
  web: {start: "serve --port $port"}
entry: web
scenarios:
  look: [{get: /}]
experiments:
  ladder:
    mix: look
    load: {users: $users, duration: 20s}
    factors: {users: [1, 2]}
"""  # 14 lines: tests refer to them by number


def read(tmp_path: Path, text: str | bytes) -> Definition:
    file = tmp_path / "study.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return parse.read(file)


def faults_of(tmp_path: Path, text: str | bytes) -> list[DefinitionError]:
    with pytest.raises(DefinitionErrors) as caught:
        read(tmp_path, text)
    return caught.value.faults


def only_fault(tmp_path: Path, text: str | bytes) -> DefinitionError:
    faults = faults_of(tmp_path, text)
    assert len(faults) == 1, [str(fault) for fault in faults]
    return faults[0]


def line_of(fault: DefinitionError) -> int:
    line = re.search(r":(\d+)", fault.where or "")
    assert line is not None, fault.where
    return int(line[1])


def changed(old: str, new: str) -> str:
    assert SMALL.count(old) == 1, f"{old!r} must stand once in the study"
    return SMALL.replace(old, new)


def with_service(line: str) -> str:
    """The small study with a service that has one key more, on line 8."""
    return SMALL.replace('  web: {start: "serve --port $port"}', f"  web:\n    start: serve\n    {line}")


# --------------------------------------------------------------------------------------------- what is read


def test_a_folder_stands_for_the_study_in_it(tmp_path: Path) -> None:
    read(tmp_path, SMALL)

    assert parse.read(tmp_path).study == "small"


def test_every_value_knows_its_line_and_key_path(tmp_path: Path) -> None:
    definition = read(tmp_path, SMALL)

    users = leaf(definition, "experiments", "ladder", "load", "users")
    assert users.line == 13
    assert split(users.written, definition.names.services) == [Name("users")]
    with pytest.raises(DefinitionErrors) as caught:
        plan.plan(definition, overrides={"users": "many"})
    assert caught.value.faults[0].where == f"{tmp_path}/study.yaml:13 experiments.ladder.load.users"


def test_the_text_is_kept_as_read(tmp_path: Path) -> None:
    definition = read(tmp_path, "\ufeff" + SMALL)  # a byte order mark is no part of it

    assert definition.text == SMALL
    assert definition.folder == str(tmp_path)


def test_merge_keys_carry_an_experiment_over_and_own_keys_win(tmp_path: Path) -> None:
    definition = read(
        tmp_path,
        SMALL.replace("  ladder:", "  ladder: &base")
        + "  again:\n    <<: *base\n    trials: 7\n    mix: {look: 2}\n",
    )

    again = definition.experiments["again"]
    assert [level.name for level in again.factors["users"]] == ["1", "2"]
    assert again.tree.items["load"].line == 13  # where it stands, in the experiment that it comes from
    assert plain(again.tree.items["mix"]) == {"look": 2}


def test_dollars_and_names_are_told_apart(tmp_path: Path) -> None:
    text = changed('"serve --port $port"', '"serve $users.db $port.http ${X} $1 $$users $web.url/x"')

    definition = read(tmp_path, text)

    start = leaf(definition, "services", "web", "start").written
    pieces = ["serve ", Name("users"), ".db ", Name("port.http"), " ${X} $1 $users ", Name("web.url"), "/x"]
    assert split(start, definition.names.services) == pieces


def test_texts_are_taken_as_written_and_not_as_numbers(tmp_path: Path) -> None:
    definition = read(tmp_path, with_service("env: {VERSION: 1.10, MODE: 0755, ON: yes}"))

    env = plan.plan(definition).cases[0].services[0].env
    assert env == (("VERSION", "1.10"), ("MODE", "0755"), ("ON", "yes"))


def test_every_key_of_the_format_is_read() -> None:
    definition = parse.read(EVERYTHING)

    tree = study_yaml.load((EVERYTHING / "study.yaml").read_bytes(), "study.yaml", Faults())
    assert isinstance(tree, Tree)
    unused = [key for key in keys_of_the_format() if key not in keys_in(plain(tree))]
    assert unused == []
    assert definition.published is not None
    assert definition.published.rows[1]["note"] == "two, by eye"


def leaf(definition: Definition, *keys: str) -> Leaf:
    node: Node | None = at(definition.tree, *keys)
    assert isinstance(node, Leaf)
    return node


def keys_of_the_format() -> Iterator[str]:
    for block in blocks(STUDY):
        yield from block.keys


def blocks(shape: Any) -> Iterator[Block]:
    if isinstance(shape, (Named, Many)):
        yield from blocks(shape.item)
    elif isinstance(shape, Block):
        yield shape
        for key in shape.keys.values():
            yield from blocks(key.shape)


def keys_in(content: Any) -> set[str]:
    if isinstance(content, list):
        return {key for item in content for key in keys_in(item)}
    if isinstance(content, dict):
        return set(content) | {key for item in content.values() for key in keys_in(item)}
    return set()


# -------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("before", "indent"),
    [("", ""), ("services:\n  db:\n", "    "), ("scenarios:\n  look:\n    - get: /\n", "      ")],
    ids=["study", "service", "step"],
)
def test_a_file_with_thousands_of_unknown_keys_is_judged_no_further(
    before: str, indent: str, tmp_path: Path
) -> None:
    kept = SMALL.splitlines()  # what `before` has is left out
    block = before.partition(":")[0]
    text = "\n".join(kept[:i] + kept[i + 2 :] if before and (i := kept.index(f"{block}:")) else kept)
    keys = "".join(f"{indent}key{number}: 1\n" for number in range(5000))

    faults = faults_of(tmp_path, f"{text}\n\n{before}{keys}")

    messages = [f"unknown key 'key{number}'" for number in range(10)]
    assert [fault.message for fault in faults] == [*messages, "4,990 more unknown keys"]


def test_all_faults_are_shown_together_with_line_key_and_hint(tmp_path: Path) -> None:
    text = (
        SMALL.replace("mix: look", "mixx: look")
        .replace("20s", "20 parsecs")
        .replace("entry: web", "entry: wob")
    )

    faults = faults_of(tmp_path, text)

    assert [line_of(fault) for fault in faults] == [7, 12, 13]
    assert all(fault.hint for fault in faults)
    _, unknown, duration = faults  # that there is no mix follows from the second
    assert unknown.message == "unknown key 'mixx'"
    assert unknown.where == f"{tmp_path}/study.yaml:12 experiments.ladder.mixx"
    assert unknown.hint == "did you mean mix?"
    assert duration.message == "'20 parsecs' is not a duration"
    assert duration.where == f"{tmp_path}/study.yaml:13 experiments.ladder.load.duration"


def test_faults_exit_with_2(tmp_path: Path) -> None:
    with pytest.raises(DefinitionErrors) as caught:
        read(tmp_path, "{}")

    assert caught.value.code is ExitCode.USAGE
    assert int(ExitCode.USAGE) == 2


def test_a_fault_in_a_merged_part_is_shown_once_where_it_stands(tmp_path: Path) -> None:
    text = SMALL.replace("  ladder:", "  ladder: &base").replace("20s", "0s") + "  again:\n    <<: *base\n"

    fault_lines = [line_of(fault) for fault in faults_of(tmp_path, text)]

    assert set(fault_lines) == {13}


@pytest.mark.parametrize(
    ("key", "supported"),
    [
        ("backend: x", "use, variants, needs, build"),
        ("counts: {from: /x}", "use, variants, needs, build"),
    ],
)
def test_what_cannot_be_run_yet_is_refused_by_name(tmp_path: Path, key: str, supported: str) -> None:
    fault = only_fault(tmp_path, with_service(key))

    name = key.partition(":")[0]
    assert fault.message.startswith(f"{name} is not supported yet; supported: {supported}")
    assert fault.where == f"{tmp_path}/study.yaml:8 services.web.{name}"


@pytest.mark.parametrize(
    ("text", "message", "key"),
    [
        (
            with_service("use: haproxy"),
            "haproxy is not supported yet; supported: process, postgres, nginx, fault-proxy",
            "services.web.use",
        ),
        (
            with_service("use: compose"),
            "compose is not supported yet; supported: process, postgres, nginx, fault-proxy",
            "services.web.use",
        ),
        (
            changed("entry: web", "entry: ftp://example.org"),
            "'ftp://example.org' is not an HTTP URL",
            "entry",
        ),
        (
            changed("[{get: /}]", "[{get: /, check: {latency: {above: 1s}}}]"),
            "a latency is checked from above",
            "scenarios.look[0].check.latency",
        ),
        (SMALL + "report: {failed_as: ab}\n", "failed_as is not supported yet", "report.failed_as"),
        (SMALL + "report: {promql: {a: rate(b)}}\n", "not PromQL: rate() wants a range", "report.promql.a"),
        (SMALL + "report: {promql: {a: {expr: b, take: sum}}}\n", "'sum'", "report.promql.a.take"),
        (SMALL + "report: {window: {}}\n", "a window without an edge", "report.window"),
        (
            SMALL + "report: {window: {from: 120%}}\n",
            "a percentage here is at most 100%",
            "report.window.from",
        ),
    ],
)
def test_later_parts_of_the_format_are_never_ignored(
    tmp_path: Path, text: str, message: str, key: str
) -> None:
    fault = faults_of(tmp_path, text)[0]

    assert fault.message.startswith(message)
    assert (fault.where or "").endswith(f" {key}")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (changed("schema: 1", "schema: 2"), 1, "schema 2 is unknown to this version"),
        (changed("mix: look", "mix: lok"), 12, "'lok' is no scenario"),
        (changed("$users, duration", "$usres, duration"), 13, "unknown name $usres"),
        (changed("$users, duration", "$port, duration"), 13, "$port is known to the testbed only"),
        (changed("serve --port $port", "serve $web.socket"), 6, "$web.socket is not a name of service web"),
        (changed("serve --port $port", "serve $port.admin"), 6, "$port.admin: service web has no such port"),
        (changed("serve --port $port", "serve 'x"), 6, '"serve \'x" is no command'),
        (changed("{users: 1}", "{users: 1, user: 2}"), 4, "param user is used nowhere"),
        (changed("{users: 1}", "{users: 1, port: 2}"), 4, "$port is a name of the testbed"),
        (changed("{users: 1}", "{users: $users}"), 4, "'$users': a name in here would not be filled"),
        (changed("{users: 1}", "{users: [1]}"), 4, "wanted a text, number or truth value, got a list"),
        (changed("[1, 2]", "[1, 1]"), 14, "level '1' stands twice"),
        (changed("[1, 2]", "[]"), 14, "a factor without levels"),
        (
            changed("duration: 20s", "rate: 5, duration: 20s"),
            13,
            "a load is closed (users) or open (rate), not both",
        ),
        (changed(", duration: 20s", ", bursts: [1s:5, 1s]"), 13, "a load needs an end"),
        (
            changed("duration: 20s", "stages: [9s:1], ramp: 1s"),
            13,
            "several shapes of one load: stages, ramp",
        ),
        (changed("duration: 20s", "stages: [9:1:1]"), 13, "'1:1' is not a rate"),
        (changed("duration: 20s", "stages: [{duration: 9s}]"), 13, "wanted stages, got a list"),
        (changed("duration: 20s", "stages: [9s]"), 13, "'9s' has no level behind its time"),
        (changed("duration: 20s", "steps: [0s:5]"), 13, "steps last longer than 0 s"),
        (changed("duration: 20s", "bursts: [1s:5]"), 13, "bursts have something between them"),
        (changed("duration: 20s", "duration: 20s, pace: 0.9ms"), 13, "a pace is 1 ms or more, got '0.9ms'"),
        (
            changed("duration: 20s", "duration: 20s, pace: 1s, think: 1s"),
            13,
            "a think time and a pace: each says when the next iteration begins",
        ),
        (
            changed("users: $users, duration: 20s", "replay: [a.txt, sped=2]"),
            13,
            "'sped=2' says nothing about a replay",
        ),
        (
            changed("users: $users, ", "overflow: drop, users: $users, "),
            13,
            "overflow means nothing to a load that is closed",
        ),
        (changed("[{get: /}]", "[{get: /, post: /}]"), 9, "one step, several requests: get, post"),
        (changed("[{get: /}]", "[{expect: 200}]"), 9, "a step without a request"),
        (changed("[{get: /}]", "[{get: index}]"), 9, "a path begins with /, got 'index'"),
        (changed("[{get: /}]", "[{get: /a b}]"), 9, "'/a b' holds a blank"),
        (changed("[{get: /}]", "[{get: /, expect: 20}]"), 9, "20 is no status"),
        (changed("[{get: /}]", "[{get: /, headers: {Host: x}}]"), 9, "Host is set by the engine"),
        (
            changed("[{get: /}]", '[{get: /, headers: {X: "a\\r\\nb"}}]'),
            9,
            "'a\\r\\nb' holds a control character",
        ),
        (changed("[{get: /}]", "[{get: /}, {get: /b}]"), 9, "a step without a name among several of look"),
        (changed("[{get: /}]", "[{get: /, json: 1, body: x}]"), 9, "one request, several bodies: json, body"),
        (
            changed("[{get: /}]", "[{get: /, think: {uniform: [2s, 1s]}}]"),
            9,
            "uniform think time from '2s' down",
        ),
        (changed("entry: web", "entry: web.admin"), 7, "service web has no port 'admin'"),
        (changed("entry: web", "entry: http://127.0.0.1:1"), 7, "with a URL as entry nothing is started"),
        (changed("entry: web", "entry: http://127.0.0.1:1/x"), 7, "an entry is a host and a port"),
        (with_service("after: [web]"), 6, "services wait for each other: web"),
        (with_service("ready: {get: /, port: admin}"), 8, "'admin' is no port"),
        (with_service("ports: [a, a]"), 8, "port 'a' stands twice, first on line 8"),
        (SMALL + "probes: {load: {get: /}}\n", 15, "a probe cannot be named load"),
        (
            SMALL + "    hold_out: {users: [4], where: {user: [1]}}\n",
            15,
            "`where` names user, which is no factor here",
        ),
        (
            SMALL + "    hold_out: {users: [4], where: {users: [9]}}\n",
            15,
            "`where` names users 9, which is no level here",
        ),
        (SMALL + "claims: [{rises: response_time.mean, over: user}]\n", 15, "'user' is no factor of ladder"),
        (
            SMALL + "claims: [{rises: response_time.meen, over: users}]\n",
            15,
            "'response_time.meen' is no metric; did you mean",
        ),
        (
            SMALL + "claims: [{ratio: throughput, of: {users: 1}, published: 2}]\n",
            15,
            "claim ratio without to",
        ),
        (
            SMALL + "claims: [{ratio: throughput, of: {users: 1}, to: {users: 2}}]\n",
            15,
            "claim ratio without the published number",
        ),
        (SMALL + "claims: [{rises: throughput, over: users, step: lok}]\n", 15, "'lok' is no step"),
        (
            SMALL + "claims: [{rises: throughput, same: throughput, over: users}]\n",
            15,
            "a claim is one of ratio, rises, order, same",
        ),
        (
            SMALL + "objectives: [{metric: failed.share, below: 5}]\n",
            15,
            "below for failed.share: 5 is not a share",
        ),
        (SMALL + "objectives: [{metric: failed.share}]\n", 15, "an objective without a bound"),
        (SMALL + "objectives: [p99<200ms, failed<20ms]\n", 15, "'20ms' is not a percentage"),
        (SMALL + "objectives: [[p99<200ms]]\n", 15, "wanted a text such as `p99<200ms`, got a list"),
        (SMALL + "published: {file: none.csv}\n", 15, "there is no file 'none.csv'"),
        (SMALL + "quick: {skip: [lader]}\n", 15, "'lader' is no experiment"),
        (SMALL + "quick: {skip: [ladder]}\n", 15, "quick skips every experiment"),
        (SMALL + "quick: {experiments: {laddr: {}}}\n", 15, "'laddr' is no experiment"),
        (SMALL + "quick: {params: {user: 3}}\n", 15, "'user' is no param of the study"),
        (SMALL + "trials: 0\n", 15, "a count here is at least 1, got 0"),
        (SMALL + "reset: {before: trial}\n", 15, "a reset that does nothing"),
        (SMALL + "fresh: never\n", 15, "'never' is none of trial, block, run"),
    ],
)
def test_a_fault_is_named_with_the_value_and_its_line(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    faults = faults_of(tmp_path, text)

    assert [fault for fault in faults if fault.message.startswith(message) and line_of(fault) == line], [
        str(fault) for fault in faults
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("study: a\nstudy: b\n", 2, "key 'study' stands twice, first on line 1"),
        ("a: !!python/object:os.system x\n", 1, "tags are not used in a study file"),
        ("a: &a [*a]\n", 1, "an alias stands inside what it names"),
        ("a: *b\n", 1, "not YAML: an alias names no anchor above it"),
        ("a: {{uuid}}\n", 1, "a key is text, this one is a mapping"),
        ("a: b: c\n", 1, "not YAML: mapping values are not allowed in this context"),
        ("a: 1\n\tb: 2\n", 2, "not YAML:"),
        ("a: 1\n---\nb: 2\n", 2, "a second document begins here"),
        ("", 1, "the file is empty"),
        ("- a\n", 1, "a study is a mapping of keys"),
        (b"a: \xff\n", 1, "byte 3 is not UTF-8"),
        (b"a: 1\nb: \x07\n", 2, "not YAML: character U+0007"),
        ('a: "\\0"\n', 1, "text with a NUL"),
        ('a: "\\ud800"\n', 1, ""),
        ("a: 1e999\n", 1, "'1e999' is out of the range of a number"),
        ("[1", 1, "not YAML: expected ',' or ']'"),
        ("[" * 41, 1, "nested more than 40 deep"),
        ("[" * 100_000, 1, "not YAML: nested more than 250 deep"),
        ("a: " + "x" * (1 << 18), 1, "the file has more than 262,144 bytes"),
    ],
)
def test_text_that_is_no_plain_yaml_is_refused_with_its_line(
    tmp_path: Path, text: str | bytes, line: int, message: str
) -> None:
    faults = faults_of(tmp_path, text)

    assert any(fault.message.startswith(message) and line_of(fault) == line for fault in faults)


def test_aliases_that_expand_without_bound_are_refused_at_once(tmp_path: Path) -> None:
    # Ten levels of ten aliases: 10^10 values from 600 bytes.
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 11)]

    fault = only_fault(tmp_path, "\n".join(["a0: &a0 [x]", *levels]))

    assert fault.message == "aliases expand to more than 100,000 values"


def test_merge_keys_that_multiply_are_refused_at_once(tmp_path: Path) -> None:
    keys = "".join(f"  k{n}: 1\n" for n in range(1000))

    fault = only_fault(tmp_path, f"a: &a\n{keys}b: {{<<: [{', '.join(['*a'] * 101)}]}}\n")

    assert fault.message == "merge keys take over more than 100,000 keys"


def test_a_file_that_is_not_there_is_a_fault_and_no_traceback(tmp_path: Path) -> None:
    with pytest.raises(DefinitionErrors, match="the study cannot be read: no such file"):
        parse.read(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("step", "key", "message", "hint"),
    [
        (
            "get: /, check: {json: {data.id: 18446744073709551616}}",  # 2^64
            "check.json.data.id",
            "18446744073709551616 does not fit 64 bits and would be compared as 1.8446744073709552e+19",
            r"regex: '\b18446744073709551616\b', which compares text",
        ),
        (
            "get: /, check: {json: {a: {ids: [1, -9223372036854775809]}}}",  # -2^63 - 1
            "check.json.a",
            "-9223372036854775809 does not fit 64 bits and would be compared as -9.223372036854776e+18",
            r"regex: '\b-9223372036854775809\b', which compares text",
        ),
        (
            "post: /, json: {id: 0x10000000000000000}",  # 2^64
            "json",
            "18446744073709551616 does not fit 64 bits and would be sent as 1.8446744073709552e+19",
            "body: '{\"id\": 18446744073709551616}'",
        ),
        (
            "get: /, check: {number: {price: {below: 9007199254740993}}}",  # 2^53 + 1
            "check.number.price",
            "9007199254740993 is no number that a bound can keep: it would be 9007199254740992",
            "9007199254740992; or json: {PATH: 9007199254740993}",
        ),
    ],
)
def test_a_whole_number_that_would_be_rounded_is_refused_where_it_stands(
    tmp_path: Path, step: str, key: str, message: str, hint: str
) -> None:
    fault = only_fault(tmp_path, SMALL.replace("{get: /}", f"{{{step}}}"))

    assert fault.where is not None
    assert fault.where.endswith(f"study.yaml:9 scenarios.look[0].{key}")
    assert message in fault.message
    assert hint in (fault.hint or "")


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 2**53 + 1])
def test_whole_numbers_of_64_bits_are_compared_as_they_are_written(tmp_path: Path, number: int) -> None:
    text = SMALL.replace("{get: /}", f"{{get: /, check: {{json: {{id: {number}}}}}}}")

    study = plan.plan(read(tmp_path, text))

    assert study.cases[0].scenarios[0].steps[0].checks[0].equals == number


def test_a_param_of_more_than_64_bits_is_refused_as_a_number(tmp_path: Path) -> None:
    fault = only_fault(tmp_path, SMALL.replace("{users: 1}", "{users: 1, id: 18446744073709551616}"))

    assert "study.yaml:4 params.id" in (fault.where or "")
    assert "18446744073709551616 does not fit 64 bits" in fault.message


@pytest.mark.parametrize(
    ("table", "where", "message"),
    [
        ("experiment,step\n", "published.csv:1", "no column metric"),
        ("experiment,user,step,metric,side,value,unit\n", "published.csv:1", "unknown column 'user'"),
        (
            "experiment,step,metric,side,value,unit\nlader,look,throughput,client,1,1/s\n",
            "published.csv:2",
            "'lader' is no experiment",
        ),
        (
            "experiment,step,metric,side,value,unit\nladder,look,throughput,client,fast,1/s\n",
            "published.csv:2",
            "value 'fast' is not a number",
        ),
        (
            "experiment,step,metric,side,value,unit\nladder,look,throughput,middle,1,1/s\n",
            "published.csv:2",
            "side 'middle'",
        ),
        (
            "experiment,step,metric,side,value,unit\nladder,look\n",
            "published.csv:2",
            "the row has not the 6 cells of the header",
        ),
    ],
)
def test_published_figures_are_checked_row_by_row(
    tmp_path: Path, table: str, where: str, message: str
) -> None:
    (tmp_path / "published.csv").write_text(table)

    faults = faults_of(tmp_path, SMALL + "published: {file: published.csv}\n")

    places = [(fault.message, fault.where) for fault in faults]
    assert (message, f"{tmp_path}/{where}") in places


# ------------------------------------------------------------------------------------------- did you mean


@pytest.mark.parametrize("key", sorted(set(keys_of_the_format())))
def test_every_key_within_two_edits_gets_a_suggestion(key: str) -> None:
    # Hand-made slips: a letter lost, doubled, swapped with its neighbour, two letters added.
    slips = {key[1:], key[:-1], key + key[-1], key[1] + key[0] + key[2:], f"x{key}y"} - {key}
    for slip in (slip for slip in slips if len(slip) > 1 and len(key) > 2):
        assert nearest(slip, [key]) == key


@pytest.mark.parametrize(
    ("written", "edits_away"),
    [("kitten", "sitting"), ("", "ab"), ("abcd", "abcdefg")],  # 3, 2 from nothing, 3
)
def test_words_further_away_get_none(written: str, edits_away: str) -> None:
    assert nearest(written, [edits_away]) is None


def test_the_nearest_of_several_is_suggested() -> None:
    assert nearest("iteration", ["duration", "iterations"]) == "iterations"


def test_the_hint_of_a_misspelt_key_reaches_the_fault(tmp_path: Path) -> None:
    fault = only_fault(tmp_path, changed("duration: 20s", "duration: 20s, warmpu: 5s"))

    assert fault.hint == "did you mean warmup?"


# ------------------------------------------------------------------------------------- schema and reference


def test_the_published_reference_is_what_the_code_says() -> None:
    folder = ROOT / "docs" / "reference"
    advice = "run: python -m loadlens.study.parse.reference docs/reference"
    assert (folder / "study.md").read_text() == reference.page(), advice
    assert json.loads((folder / "study.schema.json").read_text()) == reference.schema(), advice


def test_the_examples_of_the_reference_are_studies_without_faults(tmp_path: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", reference.page(), re.DOTALL)

    studies = [plan.plan(read(tmp_path, example)) for example in examples]

    assert [len(study.cases) for study in studies] == [3, 6]
    assert [fault for study in studies for fault in lint.faults(study, cores=2) if not fault.is_note] == []


@pytest.mark.parametrize("folder", [EVERYTHING, REGISTER])
def test_the_json_schema_accepts_what_the_lab_accepts(folder: Path) -> None:
    schema = reference.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    tree = study_yaml.load((folder / "study.yaml").read_bytes(), "study.yaml", Faults())
    assert tree is not None

    faults = list(jsonschema.Draft202012Validator(schema).iter_errors(plain(tree)))

    assert faults == []


@pytest.mark.parametrize(
    "text",
    [
        changed("study: small", "studdy: small"),
        changed("20s", "20 parsecs"),
        changed("users: [1, 2]", "users: []"),
        changed("[{get: /}]", "[{get: x}]"),
        SMALL + "fresh: never\n",
    ],
)
def test_the_json_schema_refuses_what_the_lab_refuses(tmp_path: Path, text: str) -> None:
    faults_of(tmp_path, text)
    tree = study_yaml.load(text.encode(), "study.yaml", Faults())
    assert tree is not None

    assert list(jsonschema.Draft202012Validator(reference.schema()).iter_errors(plain(tree)))


@pytest.mark.parametrize(
    ("calibrate", "start", "message"),
    [
        ("{run: spin, gives: users}", "serve $users", "$users is a param or a factor already"),
        ("{run: spin, gives: port}", "serve $port", "$port has a meaning already"),
        ("{run: spin, gives: work}", "serve --port $port", "calibrated $work is used nowhere"),
        ("{run: spin $port, gives: work}", "serve $work", "$port means nothing to a calibration"),
        ("{run: spin, gives: a-b}", "serve --port $port", "'a-b' cannot be a name"),
        ("{run: spin}", "serve --port $port", "calibration without gives"),
    ],
)
def test_a_calibration_that_makes_no_sense_is_named(
    tmp_path: Path, calibrate: str, start: str, message: str
) -> None:
    text = SMALL.replace(
        'web: {start: "serve --port $port"}', f"web: {{start: {start}, calibrate: {calibrate}}}"
    )

    assert any(fault.message.startswith(message) for fault in faults_of(tmp_path, text))


def test_a_calibrated_name_is_known_to_what_the_testbed_runs_only(tmp_path: Path) -> None:
    good = SMALL.replace(
        'web: {start: "serve --port $port"}',
        "web: {start: serve $work, calibrate: {run: spin $users, gives: work}}",
    )

    assert plan.plan(read(tmp_path, good)).cases[0].services[0].calibrate is not None
    (fault,) = faults_of(tmp_path, good.replace("[{get: /}]", "[{get: /$work}]"))
    assert fault.message == "$work is calibrated when the study runs: only what the testbed runs knows it"
    (fault,) = faults_of(tmp_path, good.replace("serve $work", "serve $wrok $work"))
    assert (fault.message, fault.hint) == ("unknown name $wrok", "did you mean $work?")
