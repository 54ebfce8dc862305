"""Services of a study, up in one of the variants of its service `api`."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from loadlens.errors import TestbedError
from loadlens.model.topology import Scalar
from loadlens.study import parse, plan
from loadlens.study.tree import items_at
from loadlens.temporary import default_cache
from loadlens.testbed import Testbed, prepare
from loadlens.testbed.build import in_words, missing

# without Hex; with Hex, which may be installed
_NO_REGISTRY = ("Could not install Hex", "Failed to fetch record")


def variants_of(study: Path) -> list[str]:
    """Names of the variants, in the order of the study."""
    return list(items_at(parse.read(study).tree, "services", "api", "variants"))


@contextmanager
def running(study: Path, variant: str, **overrides: Scalar) -> Iterator[Testbed]:
    """Run the services of the first case; skip the test where they cannot be built."""
    planned = plan.plan(parse.read(study), variants={"api": variant}, overrides=overrides)
    services = [replace(service, dir=service.dir or ".") for service in planned.cases[0].services]
    if lacking := missing(services, study):
        pytest.skip(f"{variant} needs {in_words(lacking)}")
    with tempfile.TemporaryDirectory(prefix="loadlens-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # a database may run as another user
        try:
            prepared = prepare(services, cache=default_cache(), folder=study)
        except TestbedError as fault:
            if any(words in fault.message for words in _NO_REGISTRY):
                pytest.skip(f"{variant} needs the Hex registry, which cannot be reached from here")
            raise
        marker = f"test-{secrets.token_hex(6)}"
        with Testbed(
            services, prepared, marker=marker, scratch=folder / "scratch", logs=folder / "logs"
        ) as bed:
            bed.start()
            yield bed
