"""Requests that ask for things of one kind, and templates of paths."""

from __future__ import annotations

import pytest

from loadlens.measure.services.path_templates import are_of_a_kind, fits


@pytest.mark.parametrize(
    "requests",
    [
        ["GET /gauges/RH-0112", "GET /gauges/EL-0395"],
        ["GET /orders/7/lines", "GET /orders/12/lines", "GET /orders/8/lines"],
        ["GET /rates?of=CHF", "GET /rates?of=USD"],
        ["GET /rates/CHF?day=1", "GET /rates/USD?day=1"],
    ],
)
def test_paths_that_differ_in_the_name_of_a_thing_are_of_a_kind(requests: list[str]) -> None:
    assert are_of_a_kind(requests)


@pytest.mark.parametrize(
    "requests",
    [
        ["GET /orders/7"],
        ["GET /orders", "POST /orders"],
        ["GET /v1/orders", "GET /v2/orders"],
        ["GET /orders?sort=asc", "GET /orders?sort=desc"],
        ["GET /orders/7", "GET /orders/7"],
        ["GET /search", "GET /health"],  # routes
        ["GET /v1/search", "GET /v1/list", "GET /v1/7"],
        ["GET /orders/7", "POST /orders/8"],  # differ in two parts
        ["GET /orders/7", "GET /orders/8/lines"],
    ],
)
def test_other_requests_are_not(requests: list[str]) -> None:
    assert not are_of_a_kind(requests)


def test_a_template_fits_the_paths_that_it_counts() -> None:
    assert fits("/orders/{id}", "/orders/7")
    assert not fits("/orders/{id}", "/orders/7/lines")
