"""The manifests of `examples/fleet` agree with the schemas of their tools, and with Dask's flags."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "tests" / "data" / "manifests"
FLEET = ROOT / "examples" / "fleet"


def schema_of(name: str) -> Any:
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text())


def manifest(name: str) -> Any:
    return YAML(typ="safe").load(FLEET / f"{name}.yaml")


def strict(schema: Any) -> Any:
    """Refuse fields that a schema of Kubernetes does not name, as `kubectl apply` does."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "x-kubernetes-preserve-unknown-fields" not in schema:
        closed.setdefault("additionalProperties", False)
    return closed


def faults(schema: Any, content: Any) -> list[str]:
    jsonschema.Draft202012Validator.check_schema(schema)
    errors = jsonschema.Draft202012Validator(schema).iter_errors(content)
    return sorted(f"{error.json_path}: {error.message}" for error in errors)


def cluster_schema() -> Any:
    schema = schema_of("dask-cluster")
    kubernetes: dict[str, object] = {"apiVersion": True, "kind": True, "metadata": True}
    schema["properties"] |= kubernetes
    return strict(schema)


def test_the_compose_file_agrees_with_the_compose_specification() -> None:
    assert faults(schema_of("compose"), manifest("compose")) == []


def test_the_cluster_agrees_with_the_definition_of_the_operator() -> None:
    cluster = manifest("dask-cluster")

    assert faults(cluster_schema(), cluster) == []
    assert (cluster["apiVersion"], cluster["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")


def test_a_misspelt_field_is_a_fault() -> None:
    compose, cluster = manifest("compose"), manifest("dask-cluster")
    compose["services"]["node"]["depend_on"] = compose["services"]["node"].pop("depends_on")
    pod = cluster["spec"]["worker"]["spec"]
    pod["containers"][0]["resource"] = pod["containers"][0].pop("resources")

    (of_compose,) = faults(schema_of("compose"), compose)
    (of_cluster,) = faults(cluster_schema(), cluster)

    assert "'depend_on' does not match" in of_compose
    assert "'resource' was unexpected" in of_cluster


def commands() -> Iterator[list[str]]:
    """Yield every command of Dask in the manifests."""
    for service in manifest("compose")["services"].values():
        if service.get("entrypoint", [""])[0] == "dask":
            yield service["entrypoint"]
    for part in ("scheduler", "worker"):
        (container,) = manifest("dask-cluster")["spec"][part]["spec"]["containers"]
        yield [*container["command"], *container.get("args", ())]


def test_dask_takes_every_flag() -> None:
    scheduler = pytest.importorskip("distributed.cli.dask_scheduler").main
    worker = pytest.importorskip("distributed.cli.dask_worker").main
    programs = {"scheduler": scheduler, "worker": worker}

    kinds = []
    for _, kind, *arguments in commands():
        kinds.append(kind)
        programs[kind].make_context(kind, arguments)  # raises for what it does not know

    assert sorted(kinds) == ["scheduler", "scheduler", "worker", "worker"]


def test_the_scheduler_is_reached_at_the_port_that_the_documentation_names() -> None:
    cluster = manifest("dask-cluster")

    ports = {port["name"]: port["port"] for port in cluster["spec"]["scheduler"]["service"]["ports"]}

    assert ports["tcp-comm"] == 8786
    assert cluster["metadata"]["name"] == "fleet"  # the operator's service is called fleet-scheduler
