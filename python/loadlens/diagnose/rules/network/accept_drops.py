"""Connections are dropped before the service accepts them.

**Means.** The kernel keeps established connections in a queue of limited length, the backlog, until the
service accepts them. It drops connections beyond that, and the client tries again after 1 s, then after 2 s
more, then after 4 s more. A few such requests take a thousand times as long as the others. The rate of
accepted connections, and so the throughput, is a lower bound of what the service can accept: a dropped client
sends nothing while it waits, so the backlog may run empty meanwhile, and probes and readiness checks are
accepted besides. Where this waiting takes 5 % of the response time or more, wherever the connections were
lost, the capacity is reported as at least what was reached.

**Needs.** More than 3 segments of new connections, and more than 0.02 % of the connections, that the kernel
dropped at the service's port; or at least two connections, and 0.02 % of them, that were established after
one of the times at which a client tries again (1, 2, 3, 4, 5, 7 or 15 s).

**Ruled out by.** Packets lost on the way: clients tried again although the kernel dropped nothing at the
port. Without the kernel's counts this stays open, and the finding is at most suspected. Where waiting to try
again takes less than 5 % of the response time, a limit of the throughput has another cause. Where it takes
less than a tenth, and users keep their connections, so that all are opened as the load begins, drops are a
suspicion at most: no service meets as many new clients at one moment. Drops only at
levels at which the processors are full (`cpu.saturated`): whatever accepts connections waits for a core as
well, and the finding is folded under that.

**Thresholds.** 3 segments: a restart or a port scan causes one or two drops. 0.02 %: it shows at p99.9 of a
service that opens a connection for every fifth request. Within 5 % of these times: the kernel's timers are
that coarse, and nothing else makes connecting take whole seconds.

**Do.** Use a larger backlog (`listen`, and net.core.somaxconn), a loop that only accepts, and clients that
keep connections.

**Confirm.** A backlog four times as large: no drops, and no connection that takes a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Answer, Claim, Lacking, Nothing, Words, assessing_after, on_curve
from loadlens.measure.curve import FIRST_WAIT_S, completed, cores_of, waited_to_ask
from loadlens.measure.thresholds import SATURATED
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate, Evidence, Finding, Grade, Setting
from loadlens.present import load_text, numbers

ID = "accept.drops"
TITLE = "connections are dropped before they are accepted"
EXPLAINS: tuple[str, ...] = ("saturation.plateau", "tcp.timer-mode")

DROPS = 3.0
RESENT_SHARE = 0.0002
FULL_PROCESSORS = "cpu.saturated"
FEWEST_RESENT = 2
FIRST_WAVE = 2.0  # connections of each user: those of probes and tries after a drop are among them
LITTLE = 0.10  # of the response time, with what was waited before it was measured
MATTERS = 0.05  # of the response time: below, drops are there and bound nothing


@dataclass(frozen=True, slots=True)
class Level:
    """New connections at one level."""

    curve: Curve
    step: Step
    is_full: bool = False  # no level with drops has a core to spare

    @property
    def at(self) -> str:
        """Return the load in words."""
        return load_text.load_of(self.curve, self.step)

    @property
    def drops(self) -> float | None:
        """Return the drops at the service's ports; none: not read."""
        return None if self.step.kernel is None else self.step.kernel.listen_drops

    @property
    def resent(self) -> int | None:
        """Return the connections that were asked for again; none: not recorded."""
        return None if self.step.connections is None else self.step.connections.resent

    @property
    def connects(self) -> int:
        """Return the tries to connect; 0: not recorded."""
        return 0 if self.step.connections is None else self.step.connections.connects or 0

    @property
    def resent_share(self) -> float:
        """Return the share of the connections that were asked for again."""
        return (self.resent or 0) / self.connects if self.connects else 0.0

    @property
    def accepted_per_s(self) -> float | None:
        """Return the connections of the load that were accepted per second; none: not recorded."""
        watch, rate = self.step.connections, completed(self.step)
        return (
            None
            if watch is None or not watch.answered or rate <= 0
            else rate * (watch.opened / watch.answered)
        )

    @property
    def is_first_wave(self) -> bool:
        """True if users keep the connections that they open as the load begins, and lose little by it."""
        most = FIRST_WAVE * self.step.load * max(1, len(self.step.throughput_trials))
        is_kept = self.curve.is_closed and 0 < self.connects <= most
        return is_kept and (waited_to_ask(self.step) or 0.0) < LITTLE

    @property
    def is_dropping(self) -> bool:
        """True if the kernel counted drops."""
        return self.drops is not None and self.drops > self.most_drops

    @property
    def most_drops(self) -> float:
        """Drops that are no finding yet."""
        return max(DROPS, RESENT_SHARE * self.connects)

    @property
    def is_asked_again(self) -> bool:
        """True if connections stood after whole seconds."""
        return (self.resent or 0) >= FEWEST_RESENT and self.resent_share >= RESENT_SHARE


def observe(facts: Facts, others: Sequence[Answer]) -> Sequence[Level] | Lacking | Nothing:
    """Return the levels with drops or lost requests for connections, the one with the most drops first."""
    levels = [Level(curve, step) for curve in facts.curves for step in curve.steps]
    levels = [level for level in levels if level.drops is not None or level.resent is not None]
    if not levels:
        return Lacking("needs the kernel's counts at the service's port, or connections one by one")
    struck = [level for level in levels if level.is_dropping or level.is_asked_again]
    if struck:
        full = [other for other in others if isinstance(other, Finding) and other.rule == FULL_PROCESSORS]
        curves = {label for other in full if other.grade >= Grade.PROBABLE for label in other.curves}
        is_full = all(level.curve.label in curves and _are_all_used(level, facts.cores) for level in struck)
        struck = [replace(level, is_full=is_full) for level in struck]
        return sorted(struck, key=lambda level: (level.drops or 0.0, level.resent_share), reverse=True)
    drops = [level.drops for level in levels if level.drops is not None]
    limit = max(level.most_drops for level in levels)
    counts = [f"at most {max(drops):,.0f} dropped on a level (limit {limit:,.0f})"] if drops else []
    if connects := sum(level.connects for level in levels):
        resent = sum(level.resent or 0 for level in levels)
        counts.append(f"{resent:,} of {connects:,} connections stood after 1 s or more")
    return Nothing("; ".join(counts))


def _are_all_used(level: Level, cores: int) -> bool:
    """True if the service uses all of its cores, alone or together with other programs."""
    host = level.step.host_cpu
    is_shared = level.curve.shares_cores is not False
    if is_shared and isinstance(host, Estimate) and host.point >= SATURATED * cores:
        return True
    return level.step.server_cores >= SATURATED * cores_of(level.curve, level.step)


def are_kept_waiting(curve: Curve, step: Step) -> bool:
    """Return whether clients asked less than they would, as they waited to ask for connections again.

    Where these were lost makes no difference to the service. Where drops were counted and the wait of clients
    is not known, nothing says that it did not matter.
    """
    level, share = Level(curve, step), waited_to_ask(step)
    if share is None:
        return level.is_dropping
    return (level.is_dropping or level.is_asked_again) and share >= MATTERS


def claim(facts: Facts, level: Level) -> Claim:
    """Compare drops at the port with connections that were asked for again, and with losses on the way."""
    drops, resent, rate = _drops(level), _resent(level), level.accepted_per_s
    # Either is enough: a dropped last segment of a handshake shows in no connect time.
    signals = [signal for signal in (drops, resent) if signal.evidence.passed]
    if level.drops is None:
        signals.append(drops)  # one in five thousand is lost on any long way
    evidence, least = [drops.evidence, resent.evidence], ""
    if rate is not None:
        per_s = numbers.with_unit(rate, "1/s")
        least = f" The service can accept {per_s} or more."
        text = (
            f"{per_s} connections of the load are accepted at {level.at}, a lower bound: who was dropped "
            "asks for nothing while it waits, and probes and checks are accepted besides"
        )
        chip = f"accepts {per_s} or more"
        evidence.append(Evidence("accept.rate", text, chip, rate, rate, None, None, True))

    def words(grade: Grade) -> Words:
        slow = f"{level.resent or 0:,} connections took 1 s or more"
        statement = f"{slow} at {level.at}: dropped, or lost on the way"
        if level.drops is not None:
            dropped = f"{level.drops:,.0f} drops of new connections"
            statement = f"{dropped} at {level.at}: who is dropped waits 1 s or more"
        waited, mean = numbers.with_unit(FIRST_WAIT_S, "s"), numbers.short(level.step.response.mean)
        again = f"A client asks again after {waited}; a request takes {mean} on average."
        if level.resent is not None and level.connects:
            share = f"{numbers.percent(level.resent_share)} of the connections"
            again = f"{share} were asked for again after {waited} or more; a request takes {mean}."
        bound = level.step.kernel.accept_queue_bound if level.step.kernel is not None else None
        backlog = "" if bound is None else f" from {bound:.0f} to {4 * bound:.0f} or more"
        return Words(
            statement=statement,
            explanation=again + least,
            advice=f"Raise the backlog{backlog} (listen, net.core.somaxconn), accept in a loop that does "
            "nothing else, and let clients keep connections.",
            confirm=f"a backlog four times as large at {level.at}: no drops, no connection that takes a "
            "second",
            impact=waited_to_ask(level.step) or 0.0,
            unknown=() if level.drops is not None else ("what the kernel dropped at the service's port",),
            setting=None if bound is None else Setting.exactly("backlog", bound),
        )

    # A generator that made connections late would have sent requests late, too.
    rivals = [_losses(level), grading.generator_rival(level.step)]
    explained_by = FULL_PROCESSORS if level.is_full else None
    cap = Grade.SUSPECTED if level.is_first_wave else Grade.STRONG
    return on_curve(
        level.curve, signals, rivals, words, explained_by=explained_by, evidence=evidence, cap=cap
    )


def _drops(level: Level) -> grading.Signal:
    kernel = level.step.kernel
    if kernel is None or kernel.listen_drops is None:
        return grading.stated("listen.drops", None, text="what the kernel dropped at the port was not read")
    queue = ""
    if kernel.accept_queue is not None:
        queue = f"; up to {kernel.accept_queue:.0f} waited to be accepted"
        if kernel.accept_queue_bound is not None:
            queue += f" where {kernel.accept_queue_bound:.0f} may"
    return grading.stated(
        "listen.drops",
        level.is_dropping,
        text=f"the kernel dropped {kernel.listen_drops:,.0f} segments of new connections at {level.at} "
        f"(limit {level.most_drops:,.0f}){queue}",
        chip=f"{kernel.listen_drops:,.0f} dropped",
        value=kernel.listen_drops,
        threshold=level.most_drops,
    )


def _resent(level: Level) -> grading.Signal:
    if level.resent is None or not level.connects:
        return grading.stated("connect.resent", None, text="how long connecting took was not recorded")
    share = numbers.percent(level.resent_share)
    return grading.stated(
        "connect.resent",
        True if level.is_asked_again else None if level.is_dropping else False,
        text=f"{level.resent:,} of {level.connects:,} connections ({share}) stood after 1, 2, 3 .. s, as if "
        f"asked for again (limit {numbers.percent(RESENT_SHARE)})",
        chip=f"{level.resent:,} asked for again",
    )


def _losses(level: Level) -> Counter:
    name, kernel = "packets lost on the way", level.step.kernel
    if kernel is None or kernel.listen_drops is None:
        return grading.rival(name, "the kernel's counts at the service's port were not read", None)
    again = kernel.retransmitted
    resent = "" if again is None else f", {again:,.0f} segments were sent again on the machine"
    return grading.rival(
        name, f"{kernel.listen_drops:,.0f} were dropped at the port{resent}", level.is_dropping
    )


def _of_all(pairs: Sequence[tuple[Level, Finding]]) -> Finding:
    """Return the first finding for all levels; it explains others where waiting to ask again matters."""
    bounds = [level.curve for level, _ in pairs if (waited_to_ask(level.step) or 0.0) >= MATTERS]
    return grading.seen_on(pairs[0][1], [level.curve for level, _ in pairs], bounds=bounds)


def _silence(facts: Facts, levels: Sequence[Level]) -> str:
    return _losses(levels[0]).text


assess_after = assessing_after(ID, TITLE, observe, claim, choose=_of_all, silence=_silence)
