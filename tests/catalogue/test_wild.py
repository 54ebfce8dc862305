"""The descriptions of the services in the wild are complete, and each line is in its file once."""

from __future__ import annotations

import pytest
from catalogue.wild.serve import Service, faults, services


@pytest.mark.parametrize("service", services(), ids=lambda service: service.name)
def test_a_service_is_described_whole_and_its_line_is_there(service: Service) -> None:
    assert faults(service) == []
