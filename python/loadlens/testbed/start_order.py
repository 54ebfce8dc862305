"""Start order of services: each after those it names."""

from __future__ import annotations

import graphlib
from collections.abc import Mapping

from loadlens.errors import TestbedError
from loadlens.model.topology import Service


def start_order(services: Mapping[str, Service]) -> tuple[tuple[str, ...], ...]:
    """Return waves of services: each after those it names, otherwise in the order of the study.

    Raises:
        TestbedError: One comes after a service that is not there, or services wait for each other.
    """
    graph: dict[str, tuple[str, ...]] = {}
    for service in services.values():
        after = (*service.after, *service.over)
        for name in after:
            if name not in services:
                raise TestbedError(
                    f"service {service.name} comes after {name}, which does not exist",
                    where=f"services.{service.name}.after",
                    hint=f"known: {', '.join(services)}",
                )
        graph[service.name] = after
    sorter = graphlib.TopologicalSorter(graph)
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        raise TestbedError(
            f"services wait for each other: {' after '.join(error.args[1])}", where="services"
        ) from None
    waves = []
    while sorter.is_active():
        wave = tuple(sorted(sorter.get_ready(), key=list(services).index))
        waves.append(wave)
        sorter.done(*wave)
    return tuple(waves)
