"""`loadlens fleet` on real clusters: certificates that carry a load, and a look at every node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benches.measuring import Origin

from tests.end_to_end import hitting
from tests.end_to_end.fleets import Tls, cluster
from tests.end_to_end.test_fleet_verbs import verb


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates") / "made"
    done = verb("fleet", "certs", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def test_certificates_that_are_made_carry_a_load_over_tls(
    certificates: Path, tmp_path: Path, server: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, name in (
        ("CA_FILE", "ca.pem"),
        ("CLIENT__CERT", "controller.pem"),
        ("CLIENT__KEY", "controller.key"),
    ):
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__TLS__{key}", str(certificates / name))
    (certificates / "cert.pem").write_bytes((certificates / "node.pem").read_bytes())
    (certificates / "key.pem").write_bytes((certificates / "node.key").read_bytes())
    server.new_books()

    with cluster(tmp_path, "gen1", "gen2", tls=Tls(certificates)) as nodes:
        options = ("-r", "200", "-d", "1s", "--json", "--fleet", nodes.address)
        done = verb("hit", hitting.url_of(server), *options)

    assert nodes.address.startswith("tls://")
    requests = json.loads(done.stdout)["requests"]
    hitting.check_law(requests)  # the last ones may still be under way at the end, or wait on a busy machine
    assert requests["due"] == 200
    assert 0 < requests["issued"] == hitting.settled_books(server)["received"]


def test_certificates_that_are_there_are_not_replaced(certificates: Path) -> None:
    before = (certificates / "ca.pem").read_bytes()

    done = verb("fleet", "certs", str(certificates))

    assert done.returncode == 2
    assert f"{certificates / 'ca.pem'} is there" in done.stderr
    assert (certificates / "ca.pem").read_bytes() == before


def test_each_node_has_a_line_and_a_node_without_a_path_is_named(
    server: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    there = verb("fleet", "doctor", hitting.url_of(server), "--fleet", "local:2", "--no-measure", "--json")
    gone = verb("fleet", "doctor", "http://127.0.0.1:1/", "--fleet", "local:2", "--no-measure")

    nodes = json.loads(there.stdout)["nodes"]
    assert len(nodes) == 2
    for node in nodes:
        assert 0 < node["clock_error_s"] <= node["round_trip_s"]
        assert node["connect_s"] > 0
        assert node["calibration"] is None
    assert gone.returncode == 3
    assert gone.stdout.count("no connection to 127.0.0.1:1: connection refused") == 2
    assert gone.stdout.count("the service's address as the nodes see it") == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("http://127.0.0.1:1/a\tb", 2, "control character in a URL"),
        ("http://127.0.0.1:99999/", 2, "not a URL"),
        ("", 2, "not an http or https URL"),
        (f"http://{'a' * 300}/", 3, "no name of a host"),
    ],
)
def test_an_odd_url_of_a_service_ends_in_a_clear_line(url: str, code: int, words: str) -> None:
    done = verb("fleet", "doctor", url, "--fleet", "local:1", "--no-measure")

    assert done.returncode == code, done.stderr
    assert words in done.stdout + done.stderr
    assert "internal error" not in done.stderr
