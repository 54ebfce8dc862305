"""Scenarios and probes of one case."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadlens.model.study import Probe
from loadlens.model.workload import (
    LOAD,
    Auth,
    Body,
    Bounds,
    Check,
    Connection,
    Extract,
    Group,
    Open,
    Scenario,
    Source,
    Step,
    Think,
)
from loadlens.study.definition import (
    CheckPart,
    Definition,
    ExperimentPart,
    ExtractPart,
    GroupPart,
    Later,
    Place,
    ProbePart,
    StepPart,
)
from loadlens.study.plan.feeds import Feeds
from loadlens.study.plan.fill import Filler

_TIMEOUT_NS = 30_000_000_000
_PROBE_RATE_PER_S = 20.0
MOST_REQUESTS = 60_000  # of one iteration; the engine takes 65,000 for all scenarios of a mix
_MOST_BODY_BYTES = 64 << 20


class Steps:
    """Makes scenarios; checks each template with the values that earlier steps extract.

    Args:
        fill: Fills the names of one case.
        folder: What body files are seen from.
        feeds: The feeds that templates may use, and what checks templates.
        auth: Credentials of the steps that have none of their own.
    """

    def __init__(self, fill: Filler, folder: str, feeds: Feeds, auth: Later[Auth] | None = None) -> None:
        self._fill = fill
        self._folder = Path(folder)
        self._feeds = feeds
        self._auth = fill.optional(auth)
        self._stream = LOAD  # whose steps are being made

    def scenario(self, name: str, weight: float, items: Sequence[StepPart | GroupPart]) -> Scenario:
        """One scenario of a mix."""
        so_far: list[str] = []  # what steps so far have extracted
        steps: list[Step] = []
        groups: list[Group] = []

        def add(items: Sequence[StepPart | GroupPart]) -> None:
            for item in items:
                if isinstance(item, GroupPart):
                    place, first = len(groups), len(steps)
                    groups.append(Group("", 0, 0))  # outer before inner: its place is kept
                    add(item.steps)
                    title, repeat = self._fill.value(item.group, ""), self._fill.value(item.repeat, 1)
                    groups[place] = Group(title, first, len(steps) - first, repeat)
                else:
                    steps.append(self.step(item, name, so_far))
                    so_far.extend(extract.name for extract in steps[-1].extract)

        add(items)
        scenario = Scenario(name, weight, tuple(steps), tuple(groups))
        if scenario.requests > MOST_REQUESTS:
            message = (
                f"{name} repeats to {scenario.requests:,} requests an iteration, at most {MOST_REQUESTS:,}"
            )
            self._fill.fault(message, items[0].place, "repeat less, and let users do more iterations")
        return scenario

    def step(self, part: StepPart, default_name: str, extracted: list[str]) -> Step:
        """One request."""
        fill = self._fill
        method, path = part.request
        return Step(
            name=fill.value(part.name, default_name),
            method=method,
            path=self._template(path, extracted, "/"),
            headers=tuple(
                (name, self._template(value, extracted, "", in_header=True))
                for name, value in part.headers.items()
            ),
            auth=self._auth_of(part),
            body=self._body(part, extracted),
            expect=tuple(fill.value(status, 200) for status in part.expect),
            checks=self._checks(part.check) if part.check is not None else (),
            extract=tuple(self._extract(name, source) for name, source in part.extract.items()),
            think=fill.value(part.think, Think()),
        )

    def _auth_of(self, part: StepPart) -> Auth | None:
        """The step's own credentials, or the study's; a header of the step wins over the study's."""
        has_header = any(name.lower() == "authorization" for name in part.headers)
        if part.auth is None:
            return None if has_header else self._auth
        own = self._fill.value(part.auth, Auth("none"))
        if own.kind == "none":
            return None
        if has_header:
            self._fill.fault(
                "auth and an Authorization header in one step", part.auth.place, "keep one of them"
            )
        return own

    def _template(
        self, later: Later[str], extracted: list[str], default: str, *, in_header: bool = False
    ) -> str:
        text = self._fill.value(later, default)
        self._check(text, extracted, later.place, in_header=in_header)
        return text

    def _check(self, text: str, extracted: list[str], place: Place, *, in_header: bool = False) -> None:
        fault = self._feeds.check(text, extracted, place, self._stream, in_header=in_header)
        if fault is not None:
            self._fill.fault(fault, place, "{{uuid}}, {{word 12}} and values that earlier steps extract")

    def _body(self, part: StepPart, extracted: list[str]) -> Body:
        if part.json is not None:
            value = self._fill.value(part.json, None)
            for text in _texts_in(value):
                self._check(text, extracted, part.json.place)
            return Body("json", value=value)
        if part.body is not None:
            return Body("text", text=self._template(part.body, extracted, ""))
        return Body() if part.file is None else self._file_body(part.file)

    def _file_body(self, later: Later[str]) -> Body:
        path = self._folder / self._fill.value(later, "")
        try:
            if not path.is_file():
                self._fill.fault(f"there is no file {path.name!r}", later.place, f"make {path}")
                return Body()
            if path.stat().st_size > _MOST_BODY_BYTES:
                self._fill.fault(
                    f"{path.name!r} has {path.stat().st_size:,} bytes", later.place, "at most 64 MiB"
                )
                return Body()
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except (OSError, ValueError) as error:
            self._fill.fault(f"{path.name!r} cannot be read: {error}", later.place)
            return Body()
        return Body("file", path=str(path), digest=digest)

    def _checks(self, part: CheckPart) -> tuple[Check, ...]:
        fill = self._fill
        return (
            *(Check("json", path=path, equals=fill.value(value, None)) for path, value in part.json.items()),
            *(
                Check("header", name=name, equals=fill.value(value, ""))
                for name, value in part.header.items()
            ),
            *(Check("contains", text=fill.value(text, "")) for text in part.contains),
            *(Check("exists", path=fill.value(path, "")) for path in part.exists),
            *(Check("absent", path=fill.value(path, "")) for path in part.absent),
            *(
                Check("number", path=path, bounds=fill.value(bounds, Bounds()))
                for path, bounds in part.number.items()
            ),
            *(
                Check("count", path=path, bounds=fill.value(bounds, Bounds()))
                for path, bounds in part.count.items()
            ),
            *(Check("regex", pattern=self._pattern(pattern, None)) for pattern in part.regex),
            *(() if part.size is None else (Check("size", bounds=fill.value(part.size, Bounds())),)),
            *(() if part.latency is None else (Check("latency", below_ns=fill.value(part.latency, 1)),)),
        )

    def _pattern(self, later: Later[str], group: int | None) -> str:
        text = self._fill.value(later, "")
        fault = self._feeds.check_pattern(text, group)
        if fault is not None:
            self._fill.fault(fault, later.place, "the syntax is that of Rust's regex crate: 'id=(\\d+)'")
        return text

    def _extract(self, name: str, part: ExtractPart) -> Extract:
        if part.regex is not None:
            group = self._fill.optional(part.group)
            header = self._fill.optional(part.header)
            return Extract(
                name, Source("regex", pattern=self._pattern(part.regex, group), group=group, header=header)
            )
        if part.json is not None:
            return Extract(name, Source("json", path=self._fill.value(part.json, "")))
        return Extract(name, Source("header", name=self._fill.value(part.header, "")))

    def probe(self, name: str, part: ProbePart) -> Probe:
        """A thin open stream of one step."""
        fill = self._fill
        self._stream = name
        return Probe(
            name=name,
            scenario=Scenario(name, 1.0, (self.step(part, name, []),)),
            workload=Open(
                rate_per_s=fill.value(part.rate, _PROBE_RATE_PER_S),
                arrivals=fill.value(part.arrivals, "poisson"),
                max_in_flight=fill.value(part.max_in_flight, 1000),
            ),
            connection=fill.value(part.connection, Connection("new")),
            timeout_ns=fill.value(part.timeout, _TIMEOUT_NS),
        )


def _texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _texts_in(item)]


def scenarios(
    definition: Definition, experiment: ExperimentPart, steps: Steps, fill: Filler
) -> tuple[Scenario, ...]:
    """The mix of a case."""
    if experiment.mix is None:
        return ()
    mix: Mapping[str, float] = fill.value(experiment.mix, {})
    made, step_names = [], set[str]()
    for name, weight in mix.items():
        if name not in definition.scenarios:
            names = ", ".join(definition.scenarios)
            fill.fault(f"{name!r} is no scenario", experiment.mix.place, f"scenarios: {names}")
            continue
        made.append(steps.scenario(name, weight, definition.scenarios[name]))
        for step in made[-1].steps:
            if step.name in step_names:
                message = f"two steps of the mix are named {step.name!r}; results could not distinguish them"
                fill.fault(message, experiment.mix.place, "rename one")
            step_names.add(step.name)
    return tuple(made)


def probes(definition: Definition, experiment: ExperimentPart, steps: Steps) -> tuple[Probe, ...]:
    """The experiment's probes, or the study's."""
    parts = definition.probes if experiment.probes is None else experiment.probes
    return tuple(steps.probe(name, part) for name, part in parts.items())
