"""Connections are dropped before the service accepts them.

**Means.** The kernel keeps connections that stand until the service accepts them, and only so many: its
backlog. What comes on top is dropped, and the client asks again after a second, then after two more, then
after four. A few such requests take a thousand times as long as the others. How many connections are accepted
a second is a lower bound of what the service can accept, and so is the throughput: who was dropped asks for
nothing while it waits, so the backlog may run empty meanwhile, and probes and checks are accepted besides.
Where that waiting takes 5 % of the response time or more, whoever dropped them, the capacity is said to be
at least what was reached.

**Needs.** More than 3 segments of new connections that the kernel dropped at the service's port, or at
least two connections, and 0.02 % of them, that stood after just as long as a client waits before it asks
again (1, 2, 3, 4, 5, 7 or 15 s).

**Ruled out by.** Packets lost on the way: connections were asked for again and the kernel dropped none at
the port. Without the kernel's counts this stays open, and the finding is no more than suspected. Where
waiting to ask again takes less than 5 % of the response time, a limit of the throughput has another cause.

**Thresholds.** 3: a drop or two come with a restart or a scan. 0.02 %: it shows at p99.9 of a service that
opens a connection for every fifth request. Within 5 % of these times: the kernel's timers are that coarse,
and nothing else makes connections stand after whole seconds.

**Do.** A larger backlog (`listen`, and net.core.somaxconn), a loop that does nothing but accept, clients
that keep connections.

**Confirm.** A backlog four times as large: no drops, and no connection that takes a second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.measure.curve import FIRST_WAIT_S, completed, waited_to_ask
from loadlens.model.facts import ConnectionWatch, Curve, Facts, KernelWatch, Step
from loadlens.model.finding import Absent, Counter, Evidence, Finding, NotAssessed
from loadlens.present import load_text, numbers

ID = "accept.drops"
TITLE = "connections are dropped before they are accepted"
EXPLAINS: tuple[str, ...] = ("saturation.plateau", "tcp.timer-mode")

DROPS = 3.0
RESENT_SHARE = 0.0002
FEWEST_RESENT = 2
MATTERS = 0.05  # of the response time: below, drops are there and bound nothing


@dataclass(frozen=True, slots=True)
class Look:
    """What is known of one level's new connections."""

    curve: Curve
    step: Step
    kernel: KernelWatch | None
    watch: ConnectionWatch | None

    @property
    def at(self) -> str:
        """The load there, in words."""
        return load_text.load_of(self.curve, self.step)

    @property
    def drops(self) -> float | None:
        """At the service's ports; none: not read."""
        return None if self.kernel is None else self.kernel.listen_drops

    @property
    def resent(self) -> int | None:
        """Connections that were asked for again; none: not recorded."""
        return None if self.watch is None else self.watch.resent

    @property
    def resent_share(self) -> float:
        """Of the connections that were begun."""
        if self.watch is None or not self.watch.connects or self.watch.resent is None:
            return 0.0
        return self.watch.resent / self.watch.connects

    @property
    def opens(self) -> float | None:
        """Connections for each request of the load; none: not recorded."""
        return (
            None if self.watch is None or not self.watch.answered else self.watch.opened / self.watch.answered
        )

    @property
    def is_dropping(self) -> bool:
        """Whether the kernel counted drops."""
        return self.drops is not None and self.drops > DROPS

    @property
    def is_asked_again(self) -> bool:
        """Whether connections stood after whole seconds."""
        return (self.resent or 0) >= FEWEST_RESENT and self.resent_share >= RESENT_SHARE


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every level; the one with the most drops speaks for all."""
    looks = [Look(curve, s, s.kernel, s.connections) for curve in facts.curves for s in curve.steps]
    looks = [look for look in looks if look.drops is not None or look.resent is not None]
    if not looks:
        lack = "needs the kernel's counts at the service's port, or connections one by one"
        return NotAssessed(ID, TITLE, lack)
    struck = [look for look in looks if look.is_dropping or look.is_asked_again]
    if not struck:
        return Absent(ID, TITLE, _silence(looks))
    by_weight = sorted(struck, key=lambda look: (look.drops or 0.0, look.resent_share), reverse=True)
    found = [(look, finding) for look in by_weight if (finding := _finding(look)) is not None]
    if not found:
        return Absent(ID, TITLE, _loss_rival(by_weight[0]).text)
    return grading.seen_on(
        found[0][1],
        [look.curve for look, _ in found],
        bounds=[look.curve for look, _ in found if _at_stake(look) >= MATTERS],
    )


def are_kept_waiting(curve: Curve, step: Step) -> bool:
    """Whether clients asked less than they would, as they waited to ask for connections again.

    It is all the same to the service where those were lost. Where drops were counted and nobody knows for how
    long clients waited, nothing says that it did not matter.
    """
    look, share = Look(curve, step, step.kernel, step.connections), waited_to_ask(step)
    if share is None:
        return look.is_dropping
    return (look.is_dropping or look.is_asked_again) and share >= MATTERS


def _finding(look: Look) -> Finding | None:
    drops, resent = _drops_signal(look), _resent_signal(look)
    # Either is enough: a dropped last segment of a handshake shows in no connect time.
    needed = [signal for signal in (drops, resent) if signal.evidence.passed]
    if look.drops is None:
        needed.append(drops)  # one in five thousand is lost on any long way
    rivals = [_loss_rival(look), _late_rival(look)]
    grade = grading.grade_of(needed, rivals, cap=grading.cap_of(look.curve))
    if grade is None:
        return None
    bound = look.kernel.accept_queue_bound if look.kernel is not None else None
    backlog = "" if bound is None else f" from {bound:.0f} to {4 * bound:.0f} or more"
    return Finding(
        rule=ID,
        grade=grade,
        impact=_at_stake(look),
        scope=look.curve.label,
        statement=grading.statement(_statement(look)),
        explanation=_explanation(look),
        evidence=(drops.evidence, resent.evidence, *_accepted_evidence(look)),
        counter=tuple(rivals),
        advice=f"Raise the backlog{backlog} (listen, net.core.somaxconn), accept in a loop that does nothing "
        "else, and let clients keep connections.",
        confirm=f"a backlog four times as large at {look.at}: no drops, no connection that takes a second",
        unknown=() if look.drops is not None else ("what the kernel dropped at the service's port",),
        curves=(look.curve.label,),
    )


def _drops_signal(look: Look) -> grading.Signal:
    if look.drops is None:
        return grading.stated("listen.drops", None, text="what the kernel dropped at the port was not read")
    queue = ""
    if look.kernel is not None and look.kernel.accept_queue is not None:
        queue = f"; up to {look.kernel.accept_queue:.0f} waited to be accepted"
        if look.kernel.accept_queue_bound is not None:
            queue += f" where {look.kernel.accept_queue_bound:.0f} may"
    found = grading.stated(
        "listen.drops",
        look.is_dropping,
        text=f"the kernel dropped {look.drops:,.0f} segments of new connections at {look.at} "
        f"(limit {DROPS:.0f}){queue}",
        chip=f"{look.drops:,.0f} dropped",
    )
    value = look.drops
    return grading.Signal(replace(found.evidence, value=value, threshold=DROPS), found.is_clear)


def _resent_signal(look: Look) -> grading.Signal:
    if look.resent is None or look.watch is None or not look.watch.connects:
        return grading.stated("connect.resent", None, text="how long connecting took was not recorded")
    return grading.stated(
        "connect.resent",
        True if look.is_asked_again else None if look.is_dropping else False,
        text=f"{look.resent:,} of {look.watch.connects:,} connections ({numbers.percent(look.resent_share)}) "
        f"stood after 1, 2, 3 .. s, as if asked for again (limit {numbers.percent(RESENT_SHARE)})",
        chip=f"{look.resent:,} asked for again",
    )


def _loss_rival(look: Look) -> Counter:
    name = "packets lost on the way"
    if look.drops is None:
        return grading.rival(name, "the kernel's counts at the service's port were not read", None)
    again = look.kernel.retransmitted if look.kernel is not None else None
    resent = "" if again is None else f", {again:,.0f} segments were sent again on the machine"
    return grading.rival(name, f"{look.drops:,.0f} were dropped at the port{resent}", look.is_dropping)


def _late_rival(look: Look) -> Counter:
    """The generator as the cause of late connections: it would have sent late, too."""
    return grading.generator_rival(look.step)


def _at_stake(look: Look) -> float:
    """Share of the response time that waiting to ask again takes, at least."""
    return waited_to_ask(look.step) or 0.0


def _accepted(look: Look) -> float | None:
    """Connections of the load that were accepted per second; none: not recorded."""
    rate = completed(look.step)
    return None if look.opens is None or rate <= 0 else rate * look.opens


def _accepted_evidence(look: Look) -> tuple[Evidence, ...]:
    """Told, not needed: it bounds from below what the service can accept, and nothing does from above."""
    rate = _accepted(look)
    if rate is None:
        return ()
    told = numbers.with_unit(rate, "1/s")
    text = (
        f"{told} connections of the load are accepted at {look.at}, a lower bound: who was dropped asks for "
        "nothing while it waits, and probes and checks are accepted besides"
    )
    return (Evidence("accept.rate", text, f"accepts {told} or more", rate, rate, None, None, True),)


def _statement(look: Look) -> str:
    if look.drops is not None:
        return f"{look.drops:,.0f} drops of new connections at {look.at}: who is dropped waits 1 s or more"
    return f"{look.resent:,} connections took 1 s or more at {look.at}: dropped, or lost on the way"


def _explanation(look: Look) -> str:
    waited = numbers.with_unit(FIRST_WAIT_S, "s")
    mean = numbers.short(look.step.response.mean)
    rate = _accepted(look)
    least = "" if rate is None else f" The service can accept {numbers.with_unit(rate, '1/s')} or more."
    if look.resent is None or look.watch is None or not look.watch.connects:
        return f"A client asks again after {waited}; a request takes {mean} on average.{least}"
    share = numbers.percent(look.resent_share)
    again = f"{share} of the connections were asked for again after {waited} or more"
    return f"{again}; a request takes {mean}.{least}"


def _silence(looks: list[Look]) -> str:
    drops = [look.drops for look in looks if look.drops is not None]
    resent = sum(look.resent or 0 for look in looks)
    connects = sum(look.watch.connects or 0 for look in looks if look.watch is not None)
    told = [f"at most {max(drops):,.0f} dropped on a level (limit {DROPS:.0f})"] if drops else []
    if connects:
        told.append(f"{resent:,} of {connects:,} connections stood after 1 s or more")
    return "; ".join(told)
