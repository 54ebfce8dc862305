"""A service of the testbed that speaks TLS: the lab asks it as the load would."""

from __future__ import annotations

import json
import secrets
import shutil
from pathlib import Path
from typing import Any

import pytest

from loadlens.cli.explain_options import ExplainFlags, aim_of
from loadlens.errors import TestbedError
from loadlens.model.study import Case
from loadlens.run import watching
from loadlens.search import step_cases
from loadlens.search.ladder import LOOK_S, Next
from loadlens.signals import collect
from loadlens.study import parse, plan
from loadlens.testbed import Testbed, readiness
from tests.end_to_end.explaining import free_port
from tests.end_to_end.testbed_cases import PYTHON, bed_of, carriers
from tests.secured import FOLDER

SERVICE = Path(__file__).with_name("metrics_service.py")
STUDY = """\
schema: 1
study: secured
question: is it asked over TLS?
entry: api
tls: {TRUST}
scenarios:
  look: [{get: /}]
experiments:
  only: {mix: look, load: {users: 1, duration: 9s}}
services:
  api: {start: START, ready: {get: /, within: 20s}, scrape: {every: 100ms}}
"""


def secured(folder: Path, certificate: str, tls: str) -> tuple[Case, Testbed]:
    """The case of a study whose service shows a certificate, and its testbed."""
    shutil.copy(FOLDER / "ca.pem", folder)
    start = f"{PYTHON} {SERVICE} $port --tls {FOLDER / certificate}.pem"
    (folder / "study.yaml").write_text(STUDY.replace("START", start).replace("TRUST", tls))
    case = plan.plan(parse.read(folder)).cases[0]
    return case, bed_of(*case.services, folder=folder, marker=f"test-{secrets.token_hex(6)}")


def scraped(bed: Testbed, case: Case, out: Path) -> list[dict[str, Any]]:
    """Readings of the metrics of a running testbed by its monitors."""
    complaint = collect.start(watching.spec_of(bed, case, marker=bed._marker), out).stop()
    assert complaint is None
    return [row for row in map(json.loads, out.read_text().splitlines()) if row["source"] == "scrape"]


@pytest.mark.parametrize(
    ("certificate", "tls"),
    [
        ("server", "ca: ca.pem"),
        ("elsewhere", "ca: ca.pem, servername: elsewhere.test"),
        ("alone", "insecure: true"),
    ],
)
def test_readiness_and_metrics_go_over_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificate: str, tls: str
) -> None:
    monkeypatch.setattr(readiness, "ATTEMPT_WITHIN_S", 20.0)  # one request, however late its answer
    case, bed = secured(tmp_path, certificate, tls)

    with bed:
        bed.start()
        asked = bed.readiness_requests
        rows = scraped(bed, case, tmp_path / "readings.jsonl")

    assert asked == {"api": 1}
    # the service counts all answers but those to scrapes: the one to readiness
    assert [row["value"] for row in rows if row["metric"] == "hits_total"][-1] == 1
    assert not [row for row in rows if row["metric"] == "missed"]


@pytest.mark.parametrize(
    ("certificate", "tls", "seen", "to_try"),
    [
        ("alone", "ca: ca.pem", "issuer is not trusted", "tls: {ca: FILE} with the CA that signed it"),
        ("expired", "ca: ca.pem", "has expired", "a new certificate on the server"),
        ("elsewhere", "ca: ca.pem", "is for another name", "tls: {servername: NAME}"),
    ],
)
def test_a_certificate_that_is_not_trusted_is_named_with_one_thing_to_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificate: str, tls: str, seen: str, to_try: str
) -> None:
    monkeypatch.setattr(readiness, "DISTRUST_WITHIN_S", 0.2)
    _, bed = secured(tmp_path, certificate, tls)

    wanted = rf"api was not ready: wanted status 200 from GET https://.*, last: the certificate.*{seen}"
    with pytest.raises(TestbedError, match=wanted) as raised:
        bed.start()

    assert raised.value.hint is not None
    assert raised.value.hint.startswith(to_try)
    assert carriers(bed._marker) == []


def test_what_explain_starts_and_scrapes_it_asks_over_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "ATTEMPT_WITHIN_S", 20.0)
    url = f"https://127.0.0.1:{free_port()}"
    start = f"{PYTHON} {SERVICE} {url.rpartition(':')[2]} --tls {FOLDER / 'alone.pem'}"
    aim = aim_of([f"{url}/"], ExplainFlags(start=start, metrics=f"{url}/metrics", insecure=True))
    case = step_cases.case_of(aim, Next("look", 1, 0.0, LOOK_S), None)

    with bed_of(*case.services, folder=tmp_path, marker=f"test-{secrets.token_hex(6)}") as bed:
        bed.start()
        rows = scraped(bed, case, tmp_path / "readings.jsonl")

    assert [row["value"] for row in rows if row["metric"] == "hits_total"][-1] == 1  # readiness
    assert not [row for row in rows if row["metric"] == "missed"]


def test_what_explain_starts_is_told_flags_to_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "DISTRUST_WITHIN_S", 0.2)
    port = free_port()
    start = f"{PYTHON} {SERVICE} {port} --tls {FOLDER / 'alone.pem'}"
    aim = aim_of([f"https://127.0.0.1:{port}/"], ExplainFlags(start=start))
    marker = f"test-{secrets.token_hex(6)}"

    with pytest.raises(TestbedError, match="the certificate's issuer is not trusted") as raised:
        bed_of(*aim.services, folder=tmp_path, marker=marker).start()

    assert raised.value.hint == "SSL_CERT_FILE=FILE with the CA that signed it, or --insecure"
