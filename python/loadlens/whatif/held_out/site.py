"""What a case runs on, as far as a model knows it, and whether two cases differ in nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Json = Mapping[str, Any]

PASSING: Final = ("nginx", "fault-proxy")  # they pass requests on
APART: Final = ("prometheus",)  # no request of the load comes to them
# What a model knows how to change; any other difference of a service must be declared in its `model:`.
CHANGEABLE: Final = frozenset(
    {"replicas", "limits", "model", "variant", "ready", "stop", "scrape", "server_times"}
)


class NoModel(Exception):
    """Why there is no model of a case, in words for people."""


@dataclass(frozen=True, slots=True)
class Site:
    """The service that does the work, and how much of it there is."""

    service: str
    replicas: int
    workers: int  # of each replica
    threads: int  # of each worker, beside what takes requests in; 0: the work is where it was measured
    policy: str | None  # of the balancer before it
    quota: float | None  # cores of each replica; none: as many as it gets
    cpus: int | None  # CPUs that it may run on; none: all

    @property
    def members(self) -> int:
        """How many take requests."""
        return self.replicas * self.workers

    @property
    def speed(self) -> float:
        """How fast one request is worked on when it is alone, in cores."""
        return min(1.0, self.quota) if self.quota is not None else 1.0


def site_of(case: Json) -> Site:
    """Where the work of a case is done.

    Raises:
        NoModel: The load goes to something that is not started here, or to several services.
    """
    services: dict[str, Json] = {service["name"]: service for service in case.get("services") or ()}
    service: Json = {}
    name = (case.get("entry") or {}).get("service")
    policy = None
    for _ in range(len(services) + 1):
        if name not in services:
            raise NoModel("the load goes to a service that Loadlens does not start: its inside is not known")
        service = services[name]
        if service["use"] not in PASSING:
            break
        if len(service["over"]) != 1:
            raise NoModel(f"{name} stands before {len(service['over'])} services; a model knows one")
        if service["use"] == "nginx":
            policy = service.get("policy") or "round-robin"
        (name,) = service["over"]
    limits, told = service.get("limits") or {}, service.get("model") or {}
    return Site(
        service=str(name),
        replicas=int(service.get("replicas") or 1),
        workers=int(told.get("workers") or 1),
        threads=int(told.get("threads") or 0),
        policy=policy,
        quota=limits.get("cpu"),
        cpus=None if limits.get("cpus") is None else len(limits["cpus"]),
    )


def why_not_kin(measured: Json, wanted: Json) -> str | None:
    """Why figures of one case say nothing of another; none: they differ in what a model can change."""
    if measured["connection"] != wanted["connection"]:
        return "connections are used in another way"
    if list(_requests(measured)) != list(_requests(wanted)):
        return "it sends other requests"
    return _other_services(measured, wanted)


def _requests(case: Json) -> Iterator[Json]:
    """Each request of the load, without its pause and whatever its share of the mix."""
    for scenario in case["scenarios"]:
        for step in scenario["steps"]:
            yield {key: value for key, value in step.items() if key != "think"}


def _other_services(measured: Json, wanted: Json) -> str | None:
    before = {service["name"]: service for service in measured.get("services") or ()}
    after = {service["name"]: service for service in wanted.get("services") or ()}
    for name in {**before, **after}:
        one, other = before.get(name), after.get(name)
        use = (one or other or {}).get("use")
        if use in APART:
            continue
        if use in PASSING:
            if (one or {}).get("faults") != (other or {}).get("faults"):
                return f"{name} does other things wrong"
            continue
        if one is None or other is None:
            return f"{name} is there in one of them only"
        differing = sorted(key for key in other if key not in CHANGEABLE and one.get(key) != other.get(key))
        if differing and one.get("model") == other.get("model"):
            verb = "differs" if len(differing) == 1 else "differ"
            what = f"{' and '.join(differing)} of {name} {verb}"
            return f"{what}, and its `model:` does not say what that changes"
    return None
