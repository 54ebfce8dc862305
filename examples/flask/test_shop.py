"""Load tests of the shop: reading orders and taking them."""

import pytest


@pytest.fixture(scope="module")
def shop(loadlens_service):
    return loadlens_service("gunicorn --bind 127.0.0.1:$port --threads 4 shop:app", ready="/health")


def test_orders_are_listed_fast(loadlens, shop):
    result = loadlens.hit(f"{shop.url}/orders", rate=200, duration="8s")

    assert result.failed < "1%"
    assert result.p99 < "100ms"


def test_orders_are_taken(loadlens, shop):
    result = loadlens.hit(
        f"{shop.url}/orders",
        header="Content-Type: application/json",
        body='{"product": {{int 1 100}}, "count": {{int 1 5}}}',
        expect=201,
        rate=200,
        duration="3s",
    )

    assert result.failed < "1%"
