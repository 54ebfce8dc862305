from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from psycopg_pool import ConnectionPool

from . import settings

pool = ConnectionPool(
    "", min_size=settings.DB_POOL_SIZE, max_size=settings.DB_POOL_SIZE, timeout=settings.DB_POOL_TIMEOUT, open=False
)


class PoolCollector:
    """What psycopg_pool knows of itself."""

    def collect(self):
        stats = pool.get_stats()
        yield GaugeMetricFamily("db_pool_size", "Connections of the pool", stats.get("pool_size", 0))
        yield GaugeMetricFamily("db_pool_available", "Connections not in use", stats.get("pool_available", 0))
        yield GaugeMetricFamily("db_pool_requests_waiting", "Threads that wait", stats.get("requests_waiting", 0))
        yield CounterMetricFamily(
            "db_pool_requests_wait_seconds", "Time waited for connections", stats.get("requests_wait_ms", 0) / 1000
        )
