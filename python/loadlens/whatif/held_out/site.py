"""The part of a planned case that a model takes: its services, load and requests; and which cases are kin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Final

from loadlens.model.recorded import PlannedCase
from loadlens.model.topology import BALANCERS, BALANCING_POLICIES, PASSING, Service
from loadlens.model.workload import Step, Think
from loadlens.whatif.queueing import NoModel

APART: Final = ("prometheus",)  # no request of the load comes to them
# What a model knows how to change; any other difference of a service must be declared in its `model:`.
CHANGEABLE: Final = frozenset(
    {"replicas", "limits", "model", "variant", "ready", "stop", "scrape", "server_times", "otlp"}
)


@dataclass(frozen=True, slots=True)
class Site:
    """The service that does the work, and how much of it there is."""

    service: str
    replicas: int
    workers: int  # of each replica
    threads: int  # of each worker, for the work of requests; 0: the work is where it was measured
    policy: str | None  # of the balancer before it
    quota: float | None  # cores of each replica; none: unlimited
    cpus: int | None  # CPUs that it may run on; none: all

    @property
    def members(self) -> int:
        """Number of processes that take requests."""
        return self.replicas * self.workers

    @property
    def speed(self) -> float:
        """Cores that one request gets when it is alone."""
        return min(1.0, self.quota) if self.quota is not None else 1.0


def site_of(case: PlannedCase) -> Site:
    """Return where the work of a case is done.

    Raises:
        NoModel: The load goes to something that is not started here, or to several services.
    """
    services = {service.name: service for service in case.services}
    name = case.entry_service
    policy = None
    for _ in range(len(services) + 1):
        if name not in services:
            raise NoModel("the load goes to a service that Loadlens does not start: its inside is not known")
        service = services[name]
        if service.use not in PASSING:
            break
        if len(service.over) != 1:
            raise NoModel(f"{name} stands before {len(service.over)} services; a model knows one")
        if service.use in BALANCERS:
            policy = service.policy or BALANCING_POLICIES[0]
        (name,) = service.over
    return Site(
        service=name,
        replicas=service.replicas,
        workers=service.model.workers or 1,
        threads=service.model.threads,
        policy=policy,
        quota=service.limits.cpu,
        cpus=None if service.limits.cpus is None else len(service.limits.cpus),
    )


def why_not_kin(measured: PlannedCase, wanted: PlannedCase) -> str | None:
    """Return why figures of one case say nothing about another; none if a model can change what differs."""
    if measured.connection != wanted.connection:
        return "connections are used in another way"
    if list(_requests(measured)) != list(_requests(wanted)):
        return "it sends other requests"
    before = {service.name: service for service in measured.services}
    after = {service.name: service for service in wanted.services}
    for name, either in {**before, **after}.items():
        old, new = before.get(name), after.get(name)
        if either.use in APART:
            continue
        if either.use in PASSING:
            if (old and old.faults) != (new and new.faults):
                return f"{name} does other things wrong"
            continue
        if old is None or new is None:
            return f"{name} is there in one of them only"
        differing = sorted(
            field.name
            for field in fields(Service)
            if field.name not in CHANGEABLE and _value(old, field.name) != _value(new, field.name)
        )
        if differing and old.model == new.model:
            verb = "differs" if len(differing) == 1 else "differ"
            names = f"{' and '.join(differing)} of {name} {verb}"
            return f"{names}, and its `model:` does not say what that changes"
    return None


def _requests(case: PlannedCase) -> Iterator[Step]:
    """Yield each request of the load, without its pause and whatever its share of the mix."""
    for scenario in case.scenarios:
        for step in scenario.steps:
            yield replace(step, think=Think())


def _value(service: Service, name: str) -> object:
    """Return a key of a service; settings by name have no order."""
    return dict(getattr(service, name)) if name in ("env", "settings") else getattr(service, name)
