"""Local ports for new connections run out.

**Means.** Whoever opens a connection takes one of its machine's ports, and towards one address and port each
serves one connection. Who ends it first keeps the port taken for 60 s (TIME_WAIT; 1 s where Linux uses it
again, as on loopback). A service that opens a connection for each call of another one so has ports for some
470 calls a second; on top of that connect fails with EADDRNOTAVAIL, at once and without any wait.

**Needs.** Lines of the service's log in which a connection found no local port; or at least 80 % of the local
ports taken towards one address, where new connections would use up 64 % of them while one rests. It says
whose they are: the generator's towards the address that the load asks, the service's towards any other.

**Ruled out by.** A log that speaks of descriptors (EMFILE) and of no port: then those ran out. Up to 3 drops
at the service's own ports: a client that is not accepted waits and takes no port from others (open, where
more were dropped or it was not watched). Another program that opens connections: those beyond the load's own
grew with what the service answered (open without two levels, the one half as high again as the other).

**Thresholds.** 80 %: from here on the kernel tries several ports for each connection, and the rest lasts for
a quarter more load. 64 %: 300 connections/s of 28,232 ports that rest for 60 s; a service that holds as many
connections open for long needs addresses and no reuse. 5 % of the requests failed, or 99 % of the ports
taken: only then it explains a limit of the throughput.

**Do.** Keep connections and use them again; more source addresses; a wider net.ipv4.ip_local_port_range.

**Confirm.** A second source address: twice as many connections a second, and no such error.

A generator of ours that finds no port fails as `own_ports`, and the trial is invalid: it is no finding. What
a service does in a network namespace of its own, as in most containers, is not seen from outside; its log
tells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.measure.curve import failed_share
from loadlens.model.facts import Curve, Facts, LogSign, PortsWatch, Step
from loadlens.model.finding import Absent, Counter, Finding, NotAssessed
from loadlens.present import numbers

ID = "ports.exhausted"
TITLE = "local ports for new connections run out"
EXPLAINS: tuple[str, ...] = ("saturation.plateau", "retrograde.throughput", "downstream.serialised")

TAKEN = 0.80  # of the local ports
CHURN = 0.64  # of them, opened while one rests
GONE = 0.99  # of them: hardly one is left
FAILING = 0.05  # of the requests: below, a limit of the throughput has another cause
DROPS = 3.0  # as accept.drops has it
RISE = 1.5  # between two levels that show whether connections grow with requests
GROWS = 0.5  # of what it would be if each request opened as many


@dataclass(frozen=True, slots=True)
class Look:
    """What is known of one level."""

    curve: Curve
    step: Step

    @property
    def ports(self) -> PortsWatch | None:
        """Where they were scarcest; none: nobody looked."""
        return None if self.step.kernel is None else self.step.kernel.ports

    def sign(self, kind: str) -> LogSign | None:
        """Lines of the log."""
        return next((sign for sign in self.step.log_signs if sign.kind == kind), None)

    @property
    def share(self) -> float:
        """Of the ports, taken."""
        return 0.0 if self.ports is None else self.ports.share

    @property
    def opens_per_s(self) -> float | None:
        """Connections a second of those whose ports they are; none: not counted."""
        kernel, watch = self.step.kernel, self.step.connections
        if kernel is None or kernel.begun is None or kernel.begun_s <= 0:
            return None
        of_load = 0 if watch is None else watch.opened if watch.connects is None else watch.connects
        if self.ports is not None and self.ports.is_load:
            return (kernel.begun if watch is None else of_load) / kernel.begun_s
        return max(0.0, kernel.begun - of_load) / kernel.begun_s

    @property
    def churn(self) -> float | None:
        """Share of the ports that are opened while one rests."""
        if self.opens_per_s is None or self.ports is None:
            return None
        return self.opens_per_s * self.ports.rests_s / self.ports.there

    @property
    def ok_per_s(self) -> float:
        """Successes."""
        rates = self.step.throughput_trials
        return sum(rates) / len(rates) if rates else 0.0

    @property
    def failed(self) -> float:
        """Share of the requests that did not end as expected."""
        return failed_share(self.step)


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every level; the one that fails most, then the one with the most ports taken speaks for all."""
    looks = [Look(curve, step) for curve in facts.curves for step in curve.steps]
    known = [look for look in looks if look.ports is not None or look.sign("ports") is not None]
    if not known:
        lack = (
            "needs the kernel's view of the service's machine (--pid PID, --start CMD), or the service's log"
        )
        return NotAssessed(ID, TITLE, lack)
    by_weight = sorted(known, key=lambda look: (look.failed, look.share), reverse=True)
    found = [(look, finding) for look in by_weight if (finding := _finding(look)) is not None]
    if not found:
        return Absent(ID, TITLE, _silence(max(known, key=lambda look: look.share)))
    return grading.seen_on(
        found[0][1],
        [look.curve for look, _ in found],
        bounds=[look.curve for look, _ in found if _binds(look)],
    )


def _finding(look: Look) -> Finding | None:
    refused, taken, churn = _refused(look), _taken(look), _churn(look)
    signals = [refused] if refused.evidence.passed else [taken, churn]
    rivals = [_descriptors(look), _drops(look), _others(look)]
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(look.curve))
    if grade is None:
        return None
    return Finding(
        rule=ID,
        grade=grade,
        impact=look.failed,
        scope=look.curve.label,
        statement=grading.statement(_statement(look)),
        explanation=_explanation(look),
        evidence=(refused.evidence, taken.evidence, churn.evidence),
        counter=tuple(rivals),
        advice=_advice(look),
        confirm="a second source address: twice as many connections a second, and no such error",
        unknown=() if refused.evidence.passed else ("with which error connections failed: no log says it",),
        curves=(look.curve.label,),
    )


def _binds(look: Look) -> bool:
    return look.failed >= FAILING or look.share >= GONE


# --- what it needs ----------------------------------------------------------------------------------------


def _refused(look: Look) -> grading.Signal:
    sign = look.sign("ports")
    if sign is None:
        return grading.stated("ports.refused", None, text="no log says that a connection found no local port")
    text = f"the log says so {sign.count:,} times: {sign.sample}"
    return grading.stated("ports.refused", True, text=text, chip=f"{sign.count:,} found no port")


def _taken(look: Look) -> grading.Signal:
    ports = look.ports
    if ports is None:
        return grading.stated("ports.taken", None, text="which local ports were taken was not read")
    found = grading.stated(
        "ports.taken",
        ports.share >= TAKEN,
        text=f"{_of_them(ports)} local ports towards {ports.to or 'any address'} were taken: "
        f"{numbers.percent(ports.share)} (limit {numbers.percent(TAKEN)})",
        chip=f"{numbers.percent(ports.share)} of the ports taken",
    )
    evidence = replace(found.evidence, value=ports.taken, threshold=TAKEN * ports.there)
    return grading.Signal(evidence, found.is_clear)


def _churn(look: Look) -> grading.Signal:
    ports, churn, opens = look.ports, look.churn, look.opens_per_s
    if ports is None or churn is None or opens is None:
        return grading.stated("ports.opened", None, text="how many connections were opened was not counted")
    found = grading.stated(
        "ports.opened",
        churn >= CHURN,
        text=f"{numbers.with_unit(opens, '1/s')} connections were opened, and a port rests "
        f"{numbers.with_unit(ports.rests_s, 's')}: that takes {numbers.percent(churn)} of them "
        f"(limit {numbers.percent(CHURN)})",
        chip=f"{numbers.with_unit(opens, '1/s')} opened",
    )
    return grading.Signal(replace(found.evidence, value=opens, threshold=None), found.is_clear)


# --- what else would look the same ------------------------------------------------------------------------


def _descriptors(look: Look) -> Counter:
    sign, name = look.sign("descriptors"), "descriptors"
    if sign is None:
        return grading.rival(name, "nothing says that they ran out, and a port that rests needs none", True)
    text = f"the log says {sign.count:,} times that they ran out: {sign.sample}"
    return grading.rival(name, text, None if look.sign("ports") else False)


def _drops(look: Look) -> Counter:
    name = "connections that are not accepted"
    drops = None if look.step.kernel is None else look.step.kernel.listen_drops
    if drops is None:
        return grading.rival(name, "drops at the service's ports were not read", None)
    return grading.rival(
        name, f"{drops:,.0f} dropped at the service's ports", True if drops <= DROPS else None
    )


def _others(look: Look) -> Counter:
    """Connections of a program that has nothing to do with the load are as many at each level."""
    name = "another program's connections"
    if look.ports is not None and look.ports.is_load:
        return grading.rival(name, "they go where the load goes", True)
    if look.sign("ports") is not None:
        return grading.rival(name, "the service's own log says that its connections found no port", True)
    seen = [Look(look.curve, step) for step in look.curve.steps]
    levels = sorted((one.ok_per_s, one.opens_per_s) for one in seen if one.opens_per_s is not None)
    if not levels or levels[-1][0] < RISE * levels[0][0]:
        return grading.rival(name, "no two levels show whether they grow with the load", None)
    (low, few), (high, many) = levels[0], levels[-1]
    text = (
        f"{few:,.0f}/s were opened beside the load's at {numbers.with_unit(low, '1/s')}, "
        f"{many:,.0f}/s at {numbers.with_unit(high, '1/s')}"
    )
    return grading.rival(name, text, many - few >= GROWS * many * (1 - low / high) and many > 0)


# --- words ------------------------------------------------------------------------------------------------


def _of_them(ports: PortsWatch) -> str:
    return f"{ports.taken:,.0f} of {ports.there:,.0f}"


def _whose(look: Look) -> str:
    return "the generator's" if look.ports is not None and look.ports.is_load else "the service's"


def _statement(look: Look) -> str:
    ports, sign = look.ports, look.sign("ports")
    if ports is None or ports.share < TAKEN:
        return f"{sign.count if sign else 0:,} connections of the service found no local port"
    return f"{_of_them(ports)} local ports to {ports.to} are taken, {_whose(look)}"


def _explanation(look: Look) -> str:
    ports, opens = look.ports, look.opens_per_s
    fails = f" {numbers.percent(look.failed)} of the requests failed." if look.failed else ""
    if ports is None or opens is None or ports.rests_s <= 0:
        return f"A connection without a local port fails at once.{fails}"
    lasts = numbers.with_unit(ports.there / ports.rests_s, "1/s")
    rests = numbers.with_unit(ports.rests_s, "s")
    return (
        f"A port rests {rests} after its connection was ended from this side: {ports.there:,.0f} last for "
        f"{lasts}, and {numbers.with_unit(opens, '1/s')} were opened.{fails}"
    )


def _advice(look: Look) -> str:
    to = f" to {look.ports.to}" if look.ports is not None and look.ports.share >= TAKEN else ""
    who = "the generator" if _whose(look) == "the generator's" else "the service"
    return (
        f"Let {who} keep its connections{to} and use them again; else more source addresses, or a wider "
        "net.ipv4.ip_local_port_range."
    )


def _silence(look: Look) -> str:
    rivals = (_descriptors(look), _others(look))
    for signal in (_taken(look), _churn(look)):
        if signal.evidence.passed is False:
            return signal.evidence.text
    return next((rival.text for rival in rivals if rival.ruled_out is False), _taken(look).evidence.text)
