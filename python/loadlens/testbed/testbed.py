"""The testbed: start, watch, reset and stop the services of one case.

The file follows the life of a trial from top to bottom: start, check, reset, stop. Processes live in
`keeper.py`, their plans in `replicas.py`, their order in `start_order.py`, readiness checks in
`readiness.py`, data resets in `resetting.py`.
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from loadlens import http_client
from loadlens.errors import TestbedError
from loadlens.model.topology import Entry, Ready, Reset, Scalar, ServerTimes, Service, Use
from loadlens.model.workload import Target, Tls
from loadlens.present import failure_text
from loadlens.testbed import keeper_process, resetting
from loadlens.testbed import ports as tcp
from loadlens.testbed.build import Prepared
from loadlens.testbed.commands import COMMAND_WITHIN_S, arguments
from loadlens.testbed.keeper import Keeper, Leftover, ending
from loadlens.testbed.parts import PIECES
from loadlens.testbed.placement import Place, Placement
from loadlens.testbed.readiness import HttpStatus, Listener, Question, Watch, await_ready
from loadlens.testbed.replicas import Replica, Surroundings, lay_out
from loadlens.testbed.runtimes import RUNTIMES, environment
from loadlens.testbed.start_order import start_order

_SAMPLING_WITHIN_S = 60.0  # to prepare a runtime's self-sampling
_SAMPLES = ".samples"  # ends the name of the folder for a replica's runtime samples
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_SETTLE_S = 0.3  # children may need a moment to follow their parent
_NEW_PORTS = 1  # restarts of the testbed after another process took a port

Event = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ServiceProcess:
    """A running replica."""

    service: str
    replica: int
    pid: int
    ports: Mapping[str, int]
    command: tuple[str, ...]
    mark: str  # environment entry of this process and its descendants
    log: str
    groups: tuple[str, ...]  # folders of the control groups that limit it
    samples: str = ""  # folder of its runtime samples


@dataclass(frozen=True, slots=True)
class ServerTimesFile:
    """A file with response times measured by a service itself."""

    service: str
    path: Path
    keys: ServerTimes


@dataclass(frozen=True, slots=True)
class AccessLogFile:
    """The access log of a balancer, one JSON object per line."""

    service: str
    path: Path
    backends: Mapping[str, str]  # address -> replica


class _PortTaken(Exception):
    """Another process took a port after it was chosen."""

    def __init__(self, error: TestbedError) -> None:
        super().__init__(str(error))
        self.error = error


class Testbed:
    """The services of one case as a context manager: every exit ends them all."""

    __test__ = False

    def __init__(
        self,
        services: Iterable[Service],
        prepared: Prepared,
        *,
        marker: str,
        scratch: Path,
        logs: Path,
        values: Mapping[str, Scalar] | None = None,
        secret_values: tuple[str, ...] = (),
        on_event: Callable[[Event], None] = lambda _: None,
    ) -> None:
        """Prepare the testbed; no process runs before `start`.

        Args:
            services: Empty if the target is a URL.
            prepared: Result of `build.prepare`.
            marker: The run's id, on every process as LOADLENS_RUN.
            scratch: `$scratch`. Created if absent and then removed again, even if the lab is killed; an
                existing folder belongs to the caller and stays.
            logs: Folder of the logs, one per replica.
            values: Further names, such as calibrated values.
            secret_values: Credentials that are masked in all output, besides those of `env:`.
            on_event: Receives a mapping with the key `event` for everything that happens.
        """
        self._services = {
            service.name: service for service in services if service.name not in prepared.absent
        }
        self._absent = dict(prepared.absent)
        self._order = start_order(self._services)
        temporary = Path(tempfile.gettempdir()).resolve() / f"loadlens-{secrets.token_hex(4)}"
        self._around = Surroundings(
            prepared, scratch.resolve(), logs.resolve(), dict(values or {}), temporary
        )
        self._secret_values = secret_values
        self._marker = marker
        self._on_event = on_event
        self._ports = tcp.Ports()
        self._otlp_port: int | None = None
        self._replicas: dict[str, tuple[Replica, ...]] = {}
        self._keeper: Keeper | None = None
        self._pids: dict[str, int] = {}
        self._readiness_requests: dict[str, int] = {}
        self._own_scratch = False
        self._samples: dict[str, Path] = {}
        self._placement = Placement()
        self._places: dict[str, Place] = {}

    # --- up ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start every service after those it depends on; all are ready on return.

        Raises:
            TestbedError: A command failed, or a process ended or was not ready in time. No process stays up.
        """
        if not self._services:
            return
        for attempt in range(_NEW_PORTS + 1):
            try:
                self._start()
                return
            except _PortTaken as taken:
                self.stop()
                if attempt == _NEW_PORTS:
                    raise taken.error from None
                self._on_event({"event": "port_taken", "words": taken.error.message})
            except BaseException:
                self.stop()
                raise

    def _start(self) -> None:
        for name, why in self._absent.items():
            self._on_event({"event": "caveat", "service": name, "words": f"{name} is left out: {why}"})
        scratch, logs = self._around.scratch, self._around.logs
        logs.mkdir(parents=True, exist_ok=True)
        self._own_scratch = not scratch.exists()
        temporary = self._around.temporary
        self._replicas, secret_values = lay_out(self._services.values(), self._around, self._ports)
        receivers = [service.otlp for service in self._services.values() if service.otlp is not None]
        if receivers:
            given = next((otlp.port for otlp in receivers if otlp.port is not None), None)
            self._otlp_port = self._ports.take() if given is None else given
        self._keeper = Keeper(
            marker=self._marker,
            scratch=(temporary, scratch) if self._own_scratch else (temporary,),
            secret_values=(*self._secret_values, *secret_values),
        )
        scratch.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        temporary.chmod(0o711)  # an unprivileged part passes through to its own folder
        for replica in self._all_replicas():
            folder = temporary / replica.name
            folder.mkdir()
            if replica.command.account is not None:
                os.chown(folder, *replica.command.account)
        for wave in self._order:
            for name in wave:
                self._set_up(self._services[name])
                for replica in self._replicas[name]:
                    self._furnish(replica)
                    self._spawn(replica)
            self._await_ready([replica for name in wave for replica in self._replicas[name]])

    def _set_up(self, service: Service) -> None:
        """Run the setup command once per service."""
        if service.setup is None:
            return
        first = self._replicas[service.name][0]
        name = f"{service.name}.setup"
        argv = arguments(service.setup, first.names, where=f"services.{service.name}.setup")
        began = time.monotonic()
        command = replace(first.command, argv=argv, log=self._around.logs / f"{name}.log")
        self._running.run(name, command, within_s=COMMAND_WITHIN_S)
        self._on_event(
            {"event": "service_set_up", "service": service.name, "seconds": time.monotonic() - began}
        )

    def _furnish(self, replica: Replica) -> None:
        """Write the replica's files, and run the commands that come before its start."""
        layout, account = replica.layout, replica.command.account
        if layout.copies or layout.files or layout.first:
            replica.folder.mkdir(parents=True)
        for to, source in layout.copies.items():
            shutil.copytree(source, to, symlinks=True)
        for path, text in layout.files.items():
            path.write_text(text)
        if account is not None:
            self._open_to(replica.folder, account)
        for number, argv in enumerate(layout.first, 1):
            name = f"{replica.name}.first.{number}"
            command = replace(replica.command, argv=argv, log=self._around.logs / f"{name}.log")
            self._running.run(name, command, within_s=COMMAND_WITHIN_S)
        for words in layout.caveats:
            self._on_event({"event": "caveat", "service": replica.service.name, "words": words})

    def _open_to(self, folder: Path, account: tuple[int, int]) -> None:
        """Give a folder to another user, who may traverse the scratch around it but not list it."""
        self._around.scratch.chmod(0o711)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, *account, follow_symlinks=False)
        for parent in folder.parents:
            if parent.stat().st_mode & 0o001 == 0:
                raise TestbedError(
                    f"the account of {folder.name} may not enter {parent}",
                    hint="run as another user than root, or set TMPDIR to a folder that all may enter",
                )

    def _spawn(self, replica: Replica) -> None:
        for port in replica.ports.values():
            if not tcp.is_free(port):
                raise _PortTaken(_port_error(replica, port))
        place = self._placement.place(
            replica.name, replica.service.limits, where=f"services.{replica.service.name}.limits"
        )
        further = {**self._sampled(replica), **self._exporting(replica)}
        command = replace(
            replica.command, env={**replica.command.env, **further}, cpus=place.cpus, cgroups=place.doors
        )
        pid = self._running.spawn(replica.name, command)
        self._places[replica.name] = place
        self._pids[replica.name] = pid
        self._on_event(
            {
                "event": "service_started",
                "service": replica.service.name,
                "replica": replica.number,
                "pid": pid,
                "ports": dict(replica.ports),
                "command": list(replica.command.argv),
                "cpus": None if place.cpus is None else list(place.cpus),
                "groups": [str(folder) for folder in place.groups],
            }
        )

    def _sampled(self, replica: Replica) -> dict[str, str]:
        """Return the variables for the runtime's self-sampling; empty if sampling is impossible."""
        runtime = replica.service.runtime
        if runtime is None:
            return {}
        folder = self._around.temporary / f"{replica.name}{_SAMPLES}"
        self._samples[replica.name] = folder
        folder.mkdir()
        first = RUNTIMES[runtime].first
        if first is not None:
            name = f"{replica.name}.runtime"
            command = replace(replica.command, argv=first(folder), log=self._around.logs / f"{name}.log")
            try:
                self._running.run(name, command, within_s=_SAMPLING_WITHIN_S)
            except TestbedError as error:
                words = f"its {runtime} is not sampled: {error.message.splitlines()[0]}"
                self._on_event({"event": "caveat", "service": replica.service.name, "words": words})
                return {}
        return environment(runtime, folder, replica.command.env)

    def _exporting(self, replica: Replica) -> dict[str, str]:
        """Return the variables that make an OpenTelemetry SDK send to us; the study's own are kept."""
        present, port = replica.command.env, self._otlp_port
        if replica.service.otlp is None or port is None or any(name in present for name in _ENDPOINTS):
            return {}
        usual = {
            _ENDPOINTS[0]: f"http://{tcp.HOST}:{port}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_SERVICE_NAME": replica.service.name,
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_LOGS_EXPORTER": "otlp",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_BSP_SCHEDULE_DELAY": "500",  # ms; the usual 5 s are longer than a trial's end waits
            "OTEL_BLRP_SCHEDULE_DELAY": "500",
        }
        return {name: value for name, value in usual.items() if name not in present}

    def _await_ready(self, replicas: list[Replica]) -> None:
        watches = {}
        for replica in replicas:
            question = _question(replica)
            if question is not None:
                ready = replica.service.ready or Ready("/")
                watches[replica.name] = Watch(replica.name, question, ready.within_s)
        late = await_ready(tuple(watches.values()), lambda: self._check_all_run(before_ready=True))
        for replica in replicas:
            watch = watches.get(replica.name)
            if watch is None:
                continue
            service = replica.service.name
            self._readiness_requests[service] = (
                self._readiness_requests.get(service, 0) + watch.question.requests
            )
            if watch is late:
                within = "" if watch.is_hopeless else f" within {watch.within_s:g} s"
                raise self._running.failure(
                    replica.name,
                    f"{replica.name} was not ready{within}: "
                    f"wanted {watch.question.wanted}, last: {watch.seen}",
                    replica.command.log,
                    hint=_advice(replica, watch)
                    or f"allow more time: ready: {{within: {2 * watch.within_s:g}s}}",
                )
            if late is None:
                self._on_event(
                    {
                        "event": "service_ready",
                        "service": service,
                        "replica": replica.number,
                        "seconds": watch.after_s,
                        "requests": watch.question.requests,
                    }
                )

    # --- while it runs ----------------------------------------------------------------------------

    def check(self) -> None:
        """Check that every service still runs; cheap enough for every turn of a loop.

        Raises:
            TestbedError: A service ended (the error carries its last output), or the keeper was lost.
        """
        if self._keeper is not None:
            self._check_all_run(before_ready=False)

    def _check_all_run(self, *, before_ready: bool) -> None:
        standing = self._running.standing()
        for replica in self._all_replicas():
            state = standing.get(replica.name)
            if state is None or state.status is None:
                continue
            for port in replica.ports.values() if before_ready else ():
                if not self._running.leftovers(replica.name, kill=False) and not tcp.is_free(port):
                    raise _PortTaken(_port_error(replica, port))
            when = "before it was ready" if before_ready else "while it was under test"
            command = shlex.join(replica.command.argv)
            raise self._running.failure(
                replica.name,
                f"{replica.name} ended {when}, {ending(state.status)}",
                replica.command.log,
                hint=f"run it by hand in {replica.command.cwd}: {command}" if before_ready else None,
            )

    def processes(self) -> tuple[ServiceProcess, ...]:
        """The running replicas, in the order they were started."""
        return tuple(
            ServiceProcess(
                replica.service.name,
                replica.number,
                self._pids[replica.name],
                dict(replica.ports),
                replica.command.argv,
                self._running.mark(replica.name),
                str(replica.command.log),
                tuple(map(str, self._places[replica.name].groups)),
                str(self._samples.get(replica.name, "")),
            )
            for replica in self._all_replicas()
            if replica.name in self._pids
        )

    @property
    def ports(self) -> dict[str, tuple[dict[str, int], ...]]:
        """Named ports of each service's replicas."""
        return {
            name: tuple(dict(replica.ports) for replica in replicas)
            for name, replicas in self._replicas.items()
        }

    @property
    def keeper_pid(self) -> int | None:
        """Process that drains the services' output, so that a monitor can measure its cost."""
        return None if self._keeper is None else self._keeper.pid

    @property
    def readiness_requests(self) -> dict[str, int]:
        """Readiness requests sent to each service, all replicas together."""
        return dict(self._readiness_requests)

    def target(self, entry: Entry) -> Target:
        """Return the target of the load: a service's first replica, or an external URL.

        Raises:
            TestbedError: The service or its port does not exist, or the URL is not an HTTP URL.
        """
        if entry.url is not None:
            return _target_of_url(entry)
        if entry.service not in self._replicas:
            raise TestbedError(f"the entry names a service that does not run: {entry.service}", where="entry")
        port = self._replicas[entry.service][0].port(entry.port)
        return Target(tcp.HOST, port, f"{tcp.HOST}:{port}", entry.tls)

    def otlp_address(self) -> tuple[str, int] | None:
        """Return the address that services send their spans to; none if no study asks for them."""
        return None if self._otlp_port is None else (tcp.HOST, self._otlp_port)

    def server_times_files(self) -> tuple[ServerTimesFile, ...]:
        """Return the files with response times measured by the services, each once."""
        files: dict[Path, ServerTimesFile] = {}
        for replica in self._all_replicas():
            keys = replica.service.server_times
            if keys is None:
                continue
            where = f"services.{replica.service.name}.server_times.file"
            path = replica.command.cwd / replica.names.fill(keys.file, where=where)
            files.setdefault(path, ServerTimesFile(replica.service.name, path, keys))
        return tuple(files.values())

    def access_logs(self) -> tuple[AccessLogFile, ...]:
        """Return the access logs of the balancers, with the addresses of their backends."""
        return tuple(
            AccessLogFile(
                replica.service.name,
                replica.layout.access_log,
                {
                    f"{tcp.HOST}:{backend.port(None)}": backend.name
                    for name in replica.service.over
                    for backend in self._replicas[name]
                },
            )
            for replica in self._all_replicas()
            if replica.layout.access_log is not None
        )

    def databases(self) -> dict[str, str]:
        """Return the URLs of the PostgreSQL servers, by service."""
        return self._urls("postgres")

    def metric_servers(self) -> dict[str, str]:
        """Return the URLs of the Prometheus servers, by service."""
        return self._urls("prometheus")

    def _urls(self, use: Use) -> dict[str, str]:
        """Return the URL of each service of a kind, by service."""
        return {
            replica.service.name: PIECES[use].url(tcp.HOST, replica.port(None))
            for replica in self._all_replicas()
            if replica.service.use == use
        }

    @property
    def absent(self) -> Mapping[str, str]:
        """Parts left out because this machine cannot run them, with the reason."""
        return self._absent

    # --- data -------------------------------------------------------------------------------------

    def reset(self, reset: Reset) -> None:
        """Put the data back: remove files, run the command, then verify.

        Raises:
            TestbedError: A step failed; the trial that would follow must not count.
        """
        replica = resetting.replica_for(reset, self._replicas)
        removed = resetting.put_back(reset, replica, self._running, self._around)
        name = replica.service.name
        self._on_event({"event": "reset", "service": name, "removed": [str(path) for path in removed]})

    # --- down -------------------------------------------------------------------------------------

    def stop(self) -> tuple[str, ...]:
        """Stop every service, last started first, by signal and then by force; describe the leftovers."""
        keeper, self._keeper = self._keeper, None
        leaks: list[str] = []
        try:
            if keeper is not None:
                leaks = self._end_services(keeper)
                leaks += [_left_behind("the testbed", process) for process in keeper.end(None)]
                self._remove_scratch()  # while the keeper lives: it takes over if the lab is killed now
        except TestbedError as error:
            leaks.append(error.message)  # the keeper was lost; its message describes the end of the services
        finally:
            if keeper is not None:
                keeper.close()
            self._pids.clear()
            self._placement.remove()
            self._ports.release()
            self._remove_scratch()
        for words in leaks:
            self._on_event({"event": "leak", "words": words})
        return tuple(leaks)

    def _remove_scratch(self) -> None:
        if self._own_scratch:
            keeper_process.forget_shared_memory(str(self._around.scratch))
            shutil.rmtree(self._around.scratch, ignore_errors=True)
        shutil.rmtree(self._around.temporary, ignore_errors=True)

    def _end_services(self, keeper: Keeper) -> list[str]:
        leaks: list[str] = []
        for wave in reversed(self._order):
            replicas = [r for name in wave for r in self._replicas.get(name, ()) if r.name in self._pids]
            alive = {name for name, standing in keeper.standing().items() if standing.status is None}
            for replica in replicas:
                keeper.signal(replica.name, replica.command.stop_signal)
            began = time.monotonic()
            for replica in replicas:
                in_time = _await_end(keeper, replica, began)
                leaks += self._end_one(keeper, replica, in_time=in_time, ran=replica.name in alive)
        return leaks

    def _end_one(self, keeper: Keeper, replica: Replica, *, in_time: bool, ran: bool) -> list[str]:
        """Kill the remaining processes of a replica."""
        leaks = []
        if not in_time:
            leaks.append(
                f"{replica.name} did not end within {replica.service.stop.within_s:g} s of "
                f"{replica.command.stop_signal.name} and was killed"
            )
            keeper.end(replica.name)
        else:
            until = time.monotonic() + _SETTLE_S
            while keeper.leftovers(replica.name, kill=False) and time.monotonic() < until:
                time.sleep(0.01)
            leaks += [_left_behind(replica.name, process) for process in keeper.end(replica.name)]
        status = keeper.standing()[replica.name].status
        self._on_event(
            {
                "event": "service_stopped",
                "service": replica.service.name,
                "replica": replica.number,
                "status": status,
                "when_asked": ran,  # false: it had ended before
            }
        )
        return leaks

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- inside -----------------------------------------------------------------------------------

    @property
    def _running(self) -> Keeper:
        if self._keeper is None:
            raise TestbedError("the testbed is not running", hint="call start() first")
        return self._keeper

    def _all_replicas(self) -> list[Replica]:
        return [replica for wave in self._order for name in wave for replica in self._replicas.get(name, ())]


def _await_end(keeper: Keeper, replica: Replica, began: float) -> bool:
    pause = 0.002
    while keeper.standing()[replica.name].status is None:
        if time.monotonic() - began > replica.service.stop.within_s:
            return False
        time.sleep(pause)
        pause = min(0.05, pause * 1.5)
    return True


def _question(replica: Replica) -> Question | None:
    """Return the readiness check of a replica; None: it counts as ready at once."""
    ready = replica.service.ready
    if ready is not None:
        return HttpStatus(0 if ready.address is not None else replica.port(ready.port), ready)
    if replica.layout.ready is not None:
        return replica.layout.ready
    if replica.ports and (replica.service.use != "process" or _receives_port(replica.service)):
        return Listener(replica.port(None))
    return None


def _advice(replica: Replica, watch: Watch) -> str:
    """Return the remedy for the last failure seen; empty if more time may be enough."""
    reason = failure_text.explained("tls" if http_client.is_of_tls(watch.fault) else "", watch.seen or "")
    ready = replica.service.ready
    return reason.for_explain if ready is not None and ready.address is not None else reason.for_study


def _receives_port(service: Service) -> bool:
    """True if the service receives its port; otherwise waiting for a listener is pointless."""
    texts = [service.start, *(text for _, text in service.env)]
    return any("$port" in text or f"${service.name}." in text for text in texts)


def _left_behind(name: str, process: Leftover) -> str:
    return f"{name} left process {process.pid} behind ({process.command or 'no command line'}); it was killed"


def _port_error(replica: Replica, port: int) -> TestbedError:
    return TestbedError(
        f"port {port} of {replica.name} was taken by another process between its choice and the start",
        where=str(replica.command.log),
        hint=f"find the process that holds it: ss -ltnp 'sport = :{port}'",
    )


def _target_of_url(entry: Entry) -> Target:
    parts = urlsplit(entry.url or "")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TestbedError(
            f"the entry is not an HTTP URL: {entry.url}", where="entry", hint="such as http://localhost:8080"
        )
    usual, tls = (80, None) if parts.scheme == "http" else (443, entry.tls or Tls())
    host = parts.hostname
    shown = f"[{host}]" if ":" in host else host
    port = parts.port or usual
    return Target(host, port, shown if port == usual else f"{shown}:{port}", tls)
