"""Files of a plan: found wherever they are named, and renamed to what a node calls them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from loadlens.errors import UsageError
from loadlens.fleet.files import files_of, placed, refuse_keys
from loadlens.model.workload import Body, Check, Feed, Open, PemFile, Plan, Replay, Tls
from tests import records


def plan_with_files() -> Plan:
    plan = records.plan()
    (stream,) = plan.streams
    (scenario,) = stream.scenarios
    step = replace(
        scenario.steps[0],
        body=Body("file", path="/data/body.bin", digest="b1"),
        checks=(Check("exists", path="items[0]"),),
    )
    ca, certificate, key = (
        PemFile(f"/pki/{name}", f"{name[0]}1") for name in ("ca.pem", "me.pem", "key.pem")
    )
    tls = Tls(ca=ca, certificate=certificate, key=key)
    stream = replace(
        stream,
        scenarios=(replace(scenario, steps=(step,)),),
        target=replace(stream.target, tls=tls),
        workload=Open(replay=Replay("/data/times.csv", "f1", 10, 5, 2.0)),
    )
    return replace(plan, streams=(stream,), feeds=(Feed("users", "/data/users.csv", "a1", "csv"),))


def test_every_file_of_a_plan_is_found_by_its_digest() -> None:
    assert files_of(plan_with_files()) == {
        "a1": "/data/users.csv",
        "b1": "/data/body.bin",
        "c1": "/pki/ca.pem",
        "k1": "/pki/key.pem",
        "m1": "/pki/me.pem",
        "f1": "/data/times.csv",
    }


def test_a_node_reads_files_from_its_own_folder_and_everything_else_stays() -> None:
    plan = plan_with_files()

    there = placed(plan, "/tmp/node/files")

    assert files_of(there) == {digest: f"/tmp/node/files/{digest}" for digest in files_of(plan)}
    text = plan.to_json()
    for digest, path in files_of(plan).items():
        text = text.replace(json.dumps(path), json.dumps(f"/tmp/node/files/{digest}"))
    assert json.loads(there.to_json()) == json.loads(text)


def test_a_private_key_is_not_sent_without_encryption() -> None:
    with pytest.raises(UsageError, match="private key") as refused:
        refuse_keys(plan_with_files())

    assert refused.value.where == "/pki/key.pem"
    refuse_keys(records.plan())
