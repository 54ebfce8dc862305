"""Conditions for a node: the same Loadlens, reached with the right certificate."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import dask
import pytest
from benches.measuring import ROOT, Origin
from distributed import LocalCluster, Security

from loadlens import __version__
from loadlens.errors import UsageError
from loadlens.fleet.cluster import connect
from loadlens.fleet.place import place_of
from loadlens.fleet.trial import run_trial
from loadlens.model.workload import Open
from tests.end_to_end.fleets import Cluster, Tls, cluster, plan_of, reached
from tests.end_to_end.hitting import settled_books


def test_nodes_are_named_and_described(tmp_path: Path) -> None:
    with cluster(tmp_path, "gen2", "gen1") as nodes, connect(place_of(str(nodes.file)), nodes=2) as fleet:
        assert [node.name for node in fleet.nodes] == ["gen1", "gen2"]
        assert all(node.address.startswith("tcp://127.0.0.1:") for node in fleet.nodes)


def test_a_node_with_another_loadlens_is_refused_by_name(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(ROOT / "python" / "loadlens", other / "loadlens")
    init = other / "loadlens" / "__init__.py"
    init.write_text(init.read_text().replace(f'"{__version__}"', '"0.0.9"'))

    with cluster(tmp_path, "gen1") as nodes:
        nodes.workers["gen2"] = nodes.worker("gen2", python_path=other)
        with pytest.raises(UsageError) as refused, connect(place_of(str(nodes.file)), nodes=2):
            pass

    assert f"node gen2 has Loadlens 0.0.9, and here is {__version__}" in str(refused.value)
    assert refused.value.hint == f"pip install 'loadlens=={__version__}' there"


def test_a_node_with_another_engine_is_refused_by_name(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(ROOT / "python" / "loadlens", other / "loadlens")
    with open(next((other / "loadlens").glob("_engine*.so")), "ab") as engine:
        engine.write(b"\0")

    with cluster(tmp_path, "gen1") as nodes:
        nodes.workers["gen2"] = nodes.worker("gen2", python_path=other)
        with pytest.raises(UsageError) as refused, connect(place_of(str(nodes.file)), nodes=2):
            pass

    assert "node gen2 has another compiled engine" in str(refused.value)


def test_a_service_that_is_no_scheduler_is_named(server: Origin) -> None:
    address = f"tcp://127.0.0.1:{server.port}"

    with pytest.raises(UsageError) as refused, connect(place_of(address)):
        pass

    assert f"no scheduler answers at {address}" in str(refused.value)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tls, Tls]:
    """Return two sets of certificates that do not trust each other."""
    folder = tmp_path_factory.mktemp("tls")
    return made(folder / "ours"), made(folder / "others")


def made(folder: Path) -> Tls:
    folder.mkdir()
    made = Security.temporary()
    for name, text in (
        ("ca", made.tls_ca_file),
        ("cert", made.tls_client_cert),
        ("key", made.tls_client_key),
    ):
        (folder / f"{name}.pem").write_text(text)
    return Tls(folder)


@pytest.fixture(scope="module")
def secured(tls: tuple[Tls, Tls], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with the first set."""
    with cluster(tmp_path_factory.mktemp("secured"), "gen1", "gen2", tls=tls[0]) as nodes:
        yield nodes


def test_a_fleet_with_certificates_carries_a_load(
    tls: tuple[Tls, Tls], secured: Cluster, server: Origin
) -> None:
    server.new_books()

    assert secured.address.startswith("tls://")
    with (
        dask.config.set(tls[0].settings()),
        connect(place_of(secured.address), nodes=2) as fleet,
    ):
        result = run_trial(fleet, plan_of(server, Open(200.0), seconds=1.0))

    assert result["streams"][0]["requests"]["issued"] == settled_books(server)["received"]
    assert result["streams"][0]["requests"]["due"] == 200


def test_a_certificate_of_others_is_refused_in_a_line(tls: tuple[Tls, Tls], secured: Cluster) -> None:
    with (
        dask.config.set(tls[1].settings()),
        pytest.raises(UsageError) as refused,
        connect(place_of(secured.address)),
    ):
        pass

    assert str(refused.value).startswith(f"no scheduler answers at {secured.address}")
    assert "certificate" in str(refused.value).lower()


@pytest.fixture
def elastic(tmp_path: Path) -> Iterator[LocalCluster]:
    """A cluster that begins without a worker, and has at most two."""
    folder = str(tmp_path)
    with LocalCluster(
        n_workers=0,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        threads_per_worker=1,
        local_directory=folder,
        scheduler_kwargs={"local_directory": folder},
    ) as growing:
        growing.adapt(minimum=0, maximum=2, interval="200ms")
        yield growing


def test_an_elastic_cluster_grows_for_a_load_and_shrinks_after_it(
    elastic: LocalCluster, server: Origin
) -> None:
    server.new_books()
    lines: list[str] = []

    with connect(place_of(elastic.scheduler_address), nodes=2, say=lines.append) as fleet:
        result = run_trial(fleet, plan_of(server, Open(200.0), seconds=1.0))

    requests = result["streams"][0]["requests"]
    assert [node["status"] for node in result["nodes"]] == ["complete"] * 2
    assert requests["due"] == 200
    assert requests["issued"] == settled_books(server)["received"]
    assert reached(lambda: not elastic.workers, within_s=30)
    assert len(lines) <= 1  # a quick start is not spoken of


def test_an_elastic_cluster_that_stays_too_small_is_refused(elastic: LocalCluster) -> None:
    lines: list[str] = []

    with (
        connect(place_of(elastic.scheduler_address)) as fleet,
        pytest.raises(UsageError, match="the fleet has 2 of 3 nodes after 6 s"),
    ):
        fleet.demand(3, within_s=6.0, say=lines.append)

    assert lines[0].endswith("are there; the others are waited for, at most 6 s")
