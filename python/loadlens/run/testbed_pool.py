"""The testbed that is up, and whether the next trial may have it (`fresh: trial|block|run`)."""

from __future__ import annotations

import importlib.metadata
import secrets
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from loadlens.model.study import Case, PlannedTrial, Study
from loadlens.model.topology import Scalar, Service
from loadlens.testbed import Prepared, Testbed, demand, prepare

Tell = Callable[[Mapping[str, object]], None]


def prepare_all(study: Study, *, cache: Path, on_line: Callable[[str], None]) -> Preparations:
    """Build what every case needs, each environment once.

    Raises:
        TestbedError: Programs are missing (those of all cases are named), a folder is, or a build failed.
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
    """What the services of each case run in."""

    def __init__(self, by_builds: dict[tuple[object, ...], Prepared]) -> None:
        self.by_builds = by_builds
        self.values_of: Callable[[Case], Mapping[str, Scalar]] = lambda _: {}  # calibrated values of a case

    def of(self, case: Case) -> Prepared:
        """For one case."""
        return self.by_builds[_builds(case)]

    def builds(self) -> dict[str, dict[str, object]]:
        """Of each service that was built: digest of its environment, packages in it by version."""
        return {
            service: {"digest": environment.digest, "packages": _packages(environment.folder)}
            for prepared in self.by_builds.values()
            for service, environment in prepared.environments.items()
            if environment.digest is not None
        }

    def parts(self) -> dict[str, str]:
        """Of each part of a kind that is not the study's own: its version, or why it is left out."""
        found: dict[str, str] = {}
        for prepared in self.by_builds.values():
            found |= prepared.versions
            found |= {service: f"left out: {why}" for service, why in prepared.absent.items()}
        return found


def _packages(environment: Path | None) -> dict[str, str]:
    """Python packages that an environment holds; empty for other kinds of build."""
    places = [] if environment is None else [str(p) for p in environment.glob("lib/python*/site-packages")]
    found = importlib.metadata.distributions(path=places) if places else ()
    return dict(sorted((package.name, package.version) for package in found))


def _builds(case: Case) -> tuple[object, ...]:
    return tuple((service.name, service.dir, service.build) for service in case.services)


class Bench:
    """Holds at most one testbed; a context manager that leaves none behind."""

    def __init__(
        self, preparations: Preparations, *, marker: str, shared_logs: Callable[[], Path], tell: Tell
    ) -> None:
        """Nothing runs before `ready_for`.

        Args:
            preparations: What `prepare_all` made.
            marker: The run's id, on every process.
            shared_logs: Makes a folder for the logs of services that outlive a trial.
            tell: Gets what happens.
        """
        self._preparations = preparations
        self._marker = marker
        self._shared_logs = shared_logs
        self._tell = tell
        self._up: Testbed | None = None
        self._up_for: tuple[object, ...] | None = None
        self._logs: Path | None = None  # of a testbed that outlives its trial
        self.restarts: int = 0

    def ready_for(self, planned: PlannedTrial, logs: Path) -> Testbed:
        """A testbed that is up and ready for this trial; the one that was up, or a new one.

        Raises:
            TestbedError: It did not come up; nothing stays up then.
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
            on_event=self._tell,
        )
        self._up, self._up_for = testbed, wanted  # at once: Ctrl-C may come right behind its start
        try:
            testbed.start()
        except BaseException:
            self._up_for = None  # what did not come up is nobody's
            raise
        self.restarts += 1
        return testbed

    def shared_logs(self) -> Path | None:
        """Where services that outlive the trial write; none when the trial's own folder has it all."""
        return self._logs

    def done_with(self, planned: PlannedTrial, *, broken: bool) -> tuple[str, ...]:
        """Take the testbed down unless the next trial may use it; what was left over, in words."""
        if planned.case.fresh == "trial" or broken:
            return self.close()
        return ()

    def close(self) -> tuple[str, ...]:
        """Take down what is up; what was left over, in words."""
        testbed, self._up, self._up_for = self._up, None, None
        return () if testbed is None else testbed.stop()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _lifetime(planned: PlannedTrial) -> tuple[object, ...]:
    """Trials with the same one may share processes."""
    services: tuple[Service, ...] = planned.case.services
    match planned.case.fresh:
        case "run":
            return ("run", services)
        case "block":
            return ("block", planned.block, services)
        case "trial":
            return ("trial", planned.case.slug, planned.block, services, object())
