"""In which order services start."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadlens.errors import TestbedError
from loadlens.model.topology import Service
from loadlens.testbed import Testbed, prepare


def bed_of(*services: Service) -> Testbed:
    here = Path(__file__).parent
    prepared = prepare(services, cache=here, folder=here)
    return Testbed(services, prepared, marker="none", scratch=here / "none", logs=here / "none")


def test_services_that_wait_for_each_other_are_refused() -> None:
    with pytest.raises(
        TestbedError, match=r"services wait for each other: (a after b after a|b after a after b)"
    ):
        bed_of(Service("a", "true", after=("b",)), Service("b", "true", after=("a",)))


def test_a_service_after_an_unknown_one_is_refused() -> None:
    with pytest.raises(TestbedError, match="service a comes after db, which does not exist") as raised:
        bed_of(Service("a", "true", after=("db",)))

    assert raised.value.where == "services.a.after"


def test_a_folder_that_is_not_there_is_refused_before_anything_is_built() -> None:
    with pytest.raises(TestbedError, match="folder of service a does not exist"):
        bed_of(Service("a", "true", dir="absent"))
