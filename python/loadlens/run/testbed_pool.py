"""Reuse of the running testbed by the next trial (`fresh: trial|block|run`)."""

from __future__ import annotations

import importlib.metadata
import secrets
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from loadlens.model.study import Case, PlannedTrial, Study
from loadlens.model.topology import Scalar, Service
from loadlens.testbed import Prepared, Testbed, demand, prepare

OnEvent = Callable[[Mapping[str, object]], None]


def prepare_all(study: Study, *, cache: Path, on_line: Callable[[str], None]) -> Preparations:
    """Build the environments of every case, each once.

    Raises:
        TestbedError: Programs (of all cases) or a folder are missing, or a build failed.
    """
    demand(dict.fromkeys(service for case in study.cases for service in case.services), Path(study.folder))
    made = Preparations({})
    for case in study.cases:
        key = _builds(case)
        if key not in made.by_builds:
            made.by_builds[key] = prepare(
                case.services, cache=cache, on_line=on_line, folder=Path(study.folder)
            )
    return made


class Preparations:
    """Built environments of the services of each case."""

    def __init__(self, by_builds: dict[tuple[object, ...], Prepared]) -> None:
        self.by_builds = by_builds
        self.values_of: Callable[[Case], Mapping[str, Scalar]] = lambda _: {}  # calibrated values of a case

    def of(self, case: Case) -> Prepared:
        """Return the environments of one case."""
        return self.by_builds[_builds(case)]

    def builds(self) -> dict[str, dict[str, object]]:
        """Return the digest and the package versions of each service's environment."""
        return {
            service: {"digest": environment.digest, "packages": _packages(environment.folder)}
            for prepared in self.by_builds.values()
            for service, environment in prepared.environments.items()
            if environment.digest is not None
        }

    def parts(self) -> dict[str, str]:
        """Return the version of each part that the lab provides, or the reason why it is left out."""
        versions: dict[str, str] = {}
        for prepared in self.by_builds.values():
            versions |= prepared.versions
            versions |= {service: f"left out: {why}" for service, why in prepared.absent.items()}
        return versions


def _packages(environment: Path | None) -> dict[str, str]:
    """Return the Python packages in an environment; empty for other kinds of build."""
    places = [] if environment is None else [str(p) for p in environment.glob("lib/python*/site-packages")]
    packages = importlib.metadata.distributions(path=places) if places else ()
    return dict(sorted((package.name, package.version) for package in packages))


def _builds(case: Case) -> tuple[object, ...]:
    return tuple((service.name, service.dir, service.build) for service in case.services)


class TestbedPool:
    """Holds at most one testbed, as a context manager that stops it on exit."""

    __test__ = False

    def __init__(
        self, preparations: Preparations, *, marker: str, shared_logs: Callable[[], Path], on_event: OnEvent
    ) -> None:
        """Prepare an empty pool; no process runs before `ready_for`.

        Args:
            preparations: Result of `prepare_all`.
            marker: The run's id, on every process.
            shared_logs: Makes a folder for the logs of services that outlive a trial.
            on_event: Receives the testbed's events.
        """
        self._preparations = preparations
        self._marker = marker
        self._shared_logs = shared_logs
        self._on_event = on_event
        self._up: Testbed | None = None
        self._up_for: tuple[object, ...] | None = None
        self._logs: Path | None = None  # logs of a testbed that outlives its trial
        self.restarts: int = 0

    def ready_for(self, planned: PlannedTrial, logs: Path) -> Testbed:
        """Return a testbed that is ready for this trial: the running one, or a new one.

        Raises:
            TestbedError: The testbed did not start; no process stays up.
        """
        wanted = _lifetime(planned)
        if self._up is not None and self._up_for == wanted:
            return self._up
        self.close()
        is_own = planned.case.fresh == "trial"
        self._logs = None if is_own else self._shared_logs()
        testbed = Testbed(
            planned.case.services,
            self._preparations.of(planned.case),
            marker=self._marker,
            scratch=Path(tempfile.gettempdir()) / f"loadlens-{self._marker}-{secrets.token_hex(4)}",
            logs=self._logs or logs,
            values=self._preparations.values_of(planned.case),
            on_event=self._on_event,
        )
        self._up, self._up_for = testbed, wanted  # before the start, because Ctrl-C may come at any time
        try:
            testbed.start()
        except BaseException:
            self._up_for = None  # a testbed that failed to start is never reused
            raise
        self.restarts += 1
        return testbed

    def shared_logs(self) -> Path | None:
        """Return the log folder of services that outlive the trial; None if none does."""
        return self._logs

    def done_with(self, planned: PlannedTrial, *, broken: bool) -> tuple[str, ...]:
        """Stop the testbed unless the next trial may reuse it; describe leftover processes."""
        if planned.case.fresh == "trial" or broken:
            return self.close()
        return ()

    def close(self) -> tuple[str, ...]:
        """Stop the running testbed; describe leftover processes."""
        testbed, self._up, self._up_for = self._up, None, None
        return () if testbed is None else testbed.stop()

    def __enter__(self) -> TestbedPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _lifetime(planned: PlannedTrial) -> tuple[object, ...]:
    """Return a key; trials with equal keys may share processes."""
    services: tuple[Service, ...] = planned.case.services
    match planned.case.fresh:
        case "run":
            return ("run", services)
        case "block":
            return ("block", planned.block, services)
        case "trial":
            return ("trial", planned.case.slug, planned.block, services, object())
