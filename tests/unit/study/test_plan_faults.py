"""The settings of a fault proxy case by case, and what is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadlens.errors import DefinitionErrors
from loadlens.model.topology import (
    Admission,
    BandwidthFault,
    ConnectionsFault,
    DelayFault,
    DelayLaw,
    DropFault,
    ErrorFault,
    ProxyFaults,
    ResetFault,
    Scrape,
    Service,
)
from loadlens.study import parse, plan

HEAD = """\
schema: 1
study: guarded
question: what do the admitted get?
params: {limit: 12, share: 1%}
entry: front
scenarios:
  look: [{get: /}]
experiments:
  only:
    mix: look
    load: {users: 1, duration: 9s}
    factors: {limit: [12, 'off'], share: [1%]}
services:
  api: {start: "serve --port $port"}
  front:
    use: fault-proxy
    over: api
"""  # 17 lines; the faults begin on line 18

MS = 1_000_000


def fronts(tmp_path: Path, faults: str) -> dict[str, Service]:
    (tmp_path / "study.yaml").write_text(HEAD + faults)
    study = plan.plan(parse.read(tmp_path))
    return {
        case.name: next(service for service in case.services if service.name == "front")
        for case in study.cases
    }


def refused(tmp_path: Path, faults: str) -> list[tuple[str, str]]:
    with pytest.raises(DefinitionErrors) as raised:
        fronts(tmp_path, faults + "    settings: {keepalive: $limit}\n    after: [$share]\n")
    file = f"{tmp_path}/study.yaml:"
    return [(str(error.where).removeprefix(file), error.message) for error in raised.value.faults]


def test_every_fault_arrives_as_the_study_says(tmp_path: Path) -> None:
    made = fronts(
        tmp_path,
        """\
    faults:
      delay: {request: 20ms, response: {normal: [5ms, 1ms]}, seed: 7}
      reset: {share: $share, at: body}
      drop: {share: 0.001, seed: 9}
      errors: {share: 5%, status: 503}
      bandwidth: {rate: 128KiB/s, shared: true, of: both}
      connections: {most: 100, above: hold}
      admit: {in_flight: $limit, queue: 24, wait: 100ms, status: 429, retry_after: 1500ms}
""",
    )

    with_limit, without = made.values()
    assert with_limit.faults == ProxyFaults(
        delay=DelayFault(DelayLaw("fixed", ns=20 * MS), DelayLaw("normal", mean_ns=5 * MS, sd_ns=MS), seed=7),
        reset=ResetFault(0.01, "body"),
        drop=DropFault(0.001, seed=9),
        errors=ErrorFault(0.05, 503),
        bandwidth=BandwidthFault(131_072, shared=True, of="both"),
        connections=ConnectionsFault(100, "hold"),
        admit=Admission(12, queue=24, wait_ns=100 * MS, status=429, retry_after_s=2),
    )
    assert without.faults is not None
    assert without.faults.admit is None
    assert without.faults.reset == ResetFault(0.01, "body")


def test_its_books_have_a_port_of_their_own_and_are_scraped(tmp_path: Path) -> None:
    front = fronts(tmp_path, "    faults: {admit: {in_flight: $limit}, drop: {share: $share}}\n")

    assert front["only limit=12 share=1%"].ports == ("http", "metrics")
    assert front["only limit=12 share=1%"].scrape == Scrape("/metrics", "metrics", 1.0)


def test_a_share_of_nothing_and_off_switch_a_fault_off(tmp_path: Path) -> None:
    made = fronts(
        tmp_path,
        "    faults: {admit: {in_flight: $limit}, drop: {share: 0}, reset: {share: 0%},"
        " delay: {request: 'off'}, bandwidth: {rate: 'off'}, errors: {share: $share}}\n",
    )

    faults = made["only limit=off share=1%"].faults
    assert faults == ProxyFaults(errors=ErrorFault(0.01))


def test_all_faults_of_the_faults_are_named_at_once_with_their_lines(tmp_path: Path) -> None:
    faults = refused(
        tmp_path,
        """\
    faults:
      delay: {request: {gamma: 3ms}, response: {uniform: [9ms, 2ms]}}
      reset: {share: 30, at: end}
      errors: {share: 5%, status: 200}
      bandwidth: {rate: 0}
      admit: {in_flight: 0, qeue: 3}
      dealy: {request: 1s}
""",
    )

    where = "services.front.faults"
    assert faults[:8] == [
        (f"19 {where}.delay.request", "not one law of a delay: gamma"),
        (f"19 {where}.delay.response", "uniform from '9ms' down to a shorter one"),
        (f"20 {where}.reset.share", faults[2][1]),
        (f"20 {where}.reset.at", "'end' is none of request, response, body"),
        (f"21 {where}.errors.status", faults[4][1]),
        (f"22 {where}.bandwidth.rate", "0 would let nothing through"),
        (f"23 {where}.admit.qeue", "unknown key 'qeue'"),
        (f"23 {where}.admit.in_flight", faults[7][1]),
    ]
    assert faults[8][0] == f"24 {where}.dealy"


def test_what_only_the_filled_values_show_is_named_where_it_stands(tmp_path: Path) -> None:
    with pytest.raises(DefinitionErrors) as raised:
        fronts(
            tmp_path,
            "    faults: {admit: {in_flight: $share, wait: 1s}, errors: {share: $limit}}\n"
            "    settings: {keepalive: many}\n",
        )

    messages = [error.message for error in raised.value.faults]
    assert any("(from $share in only)" in message for message in messages), messages
    assert any("(from $limit in only)" in message for message in messages), messages
    assert "setting keepalive cannot be 'many'" in messages


def test_faults_belong_to_a_fault_proxy(tmp_path: Path) -> None:
    text = HEAD.replace("use: fault-proxy", "use: nginx")
    (tmp_path / "study.yaml").write_text(
        text + "    faults: {admit: {in_flight: $limit}, drop: {share: $share}}\n"
    )

    with pytest.raises(DefinitionErrors) as raised:
        plan.plan(parse.read(tmp_path))

    assert "service front: faults means nothing to use: nginx" in [e.message for e in raised.value.faults]


def test_the_port_of_its_books_has_a_name_in_the_study(tmp_path: Path) -> None:
    made = fronts(
        tmp_path,
        "    faults: {admit: {in_flight: $limit}, drop: {share: $share}}\n"
        "    scrape: {port: metrics, every: 200ms}\n",
    )

    assert made["only limit=12 share=1%"].scrape == Scrape("/metrics", "metrics", 0.2)


def test_a_variant_has_faults_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(
        HEAD + "    variants:\n"
        "      plain: {faults: {drop: {share: $share}}}\n"
        "      guarded:\n"
        "        faults: {admit: {in_flight: $limit}, drop: {share: $share}}\n"
        "        settings: {keepalive: 0}\n"
    )

    study = plan.plan(parse.read(tmp_path), variants={"front": "guarded"})

    front = next(service for service in study.cases[0].services if service.name == "front")
    assert front.faults == ProxyFaults(admit=Admission(12), drop=DropFault(0.01))
    assert front.setting("keepalive") == "0"
