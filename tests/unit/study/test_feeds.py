"""Feeds of a study, read by the real engine: what a case gets, and faults with their lines."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from loadlens import engine
from loadlens.errors import DefinitionErrors
from loadlens.model.workload import Feed, Plan
from loadlens.study import parse
from loadlens.study import plan as design

STUDY = """\
schema: 1
study: fed
question: who logs in?
params: {file: users.csv}
entry: http://127.0.0.1:1
feeds:
  users: {file: $file, pick: unique}
  items: {file: items.jsonl}
scenarios:
  login:
    - {name: login, post: "/login?u={{users.id}}", json: {name: "{{users.full name}}"}}
    - {name: item, get: "/items/{{items.at.id}}", headers: {X-Name: "{{users.full name}}"}}
experiments:
  e: {mix: login, load: {users: 2, duration: 9s}}
"""
USERS = "id,full name\n1,Ann\n2,Bo\n"
ITEMS = '{"at": {"id": 7}}\n{"at": {"id": 8}}\n'


def planned(folder: Path, old: str = "", new: str = "", users: str = USERS, items: str = ITEMS) -> Plan:
    assert old in STUDY
    (folder / "study.yaml").write_text(STUDY.replace(old, new) if old else STUDY)
    (folder / "users.csv").write_text(users)
    (folder / "items.jsonl").write_text(items)
    study = design.plan(parse.read(folder), templates=engine)
    case = study.cases[0]
    assert case.scenarios
    return Plan(seed=1, streams=(), feeds=case.feeds)


def test_a_case_has_the_feeds_that_its_requests_use(tmp_path: Path) -> None:
    plan = planned(tmp_path)

    def feed(name: str, file: str, content: str, format: str, pick: str, end: str) -> Feed:
        digest = hashlib.sha256(content.encode()).hexdigest()
        return Feed(name, str(tmp_path / file), digest, format, pick, end)  # type: ignore[arg-type]

    assert plan.feeds == (
        feed("users", "users.csv", USERS, "csv", "unique", "stop"),
        feed("items", "items.jsonl", ITEMS, "jsonl", "shared", "loop"),
    )
    assert '"feeds":[{"digest":' in plan.to_json()


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        (
            "{{users.id}}",
            "{{users.ids}}",
            "11 scenarios.login[0].post",
            "no column `ids`; there is id, full",
        ),
        ("{{users.id}}", "{{usres.id}}", "11 scenarios.login[0].post", "did you mean `users`?"),
        ("{{items.at.id}}", "{{items.id}}", "12 scenarios.login[1].get", "no column `id`; there is at"),
        ("file: users.csv", "file: missing.csv", "7 feeds.users.file", "there is no file 'missing.csv'"),
        ("file: users.csv", "file: users.txt", "7 feeds.users.file", "does not say how it is written"),
        ("pick: unique", "pick: unique, end: loop", "7 feeds.users.end", "contradict each other"),
        ("pick: unique", "pick: once", "7 feeds.users.pick", "is none of shared, unique, random, user"),
        ("pick: unique", "pick: user, end: stop", "7 feeds.users.end", "contradict each other"),
        ("users: {file: $file", "uuid: {file: $file", "11 scenarios.login[0].post", "`users.id` is unknown"),
        ("{{items.at.id}}", "7", "8 feeds.items", "feed items is used by no request"),
        ("load: {users: 2,", "load: {rate: 2/s,", "", ""),
        (
            "experiments:",
            "probes: {p: {get: '/{{users.id}}'}}\nexperiments:",
            "13 probes.p.get",
            "is unique and used by",
        ),
    ],
)
def test_a_fault_has_its_line_and_key(tmp_path: Path, old: str, new: str, where: str, what: str) -> None:
    if not what:
        assert planned(tmp_path, old, new).feeds
        return

    with pytest.raises(DefinitionErrors) as refused:
        planned(tmp_path, old, new)

    faults = [f"{fault.where}: {fault.message}" for fault in refused.value.faults]
    assert any(f"study.yaml:{where}" in fault and what in fault for fault in faults), faults


@pytest.mark.parametrize(
    ("users", "items", "what"),
    [
        ("id,full name\n1,Ann\n2\n", ITEMS, "users.csv:3: 1 field where the header has 2"),
        ("id,full name\n", ITEMS, "users.csv has no record"),
        ("", ITEMS, "users.csv is empty"),
        ('id,full name\n1,"a\nb"\n', ITEMS, "users.csv:2: `full name` has a control byte"),
        (USERS, '{"at": {"id": 7}}\n\n{"at": 3}\n', "items.jsonl:3: no `at.id` in this record"),
        (USERS, '{"at": {"id": 7}}\n{"at"\n', "items.jsonl:2: no JSON object"),
    ],
)
def test_a_bad_file_is_refused_with_its_own_line(tmp_path: Path, users: str, items: str, what: str) -> None:
    with pytest.raises(DefinitionErrors) as refused:
        planned(tmp_path, users=users, items=items)

    assert any(what in fault.message for fault in refused.value.faults), refused.value


def test_one_record_for_each_user_needs_users_that_stay(tmp_path: Path) -> None:
    text = STUDY.replace("pick: unique", "pick: user").replace("users: 2,", "rate: 2/s,")
    (tmp_path / "study.yaml").write_text(text)
    (tmp_path / "users.csv").write_text(USERS)
    (tmp_path / "items.jsonl").write_text(ITEMS)

    with pytest.raises(DefinitionErrors, match="open load has no users that stay"):
        design.plan(parse.read(tmp_path), templates=engine)
