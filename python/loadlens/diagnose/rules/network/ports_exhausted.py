"""Local ports for new connections run out.

**Means.** Each outgoing connection takes one of its machine's local ports, and per remote address and port a
local port serves one connection. The side that closes first keeps its port taken for 60 s (TIME_WAIT; 1 s
where Linux reuses it, as on loopback). A service that opens a connection per call to another service has
ports for about 470 calls/s; beyond that, connect fails at once with EADDRNOTAVAIL.

**Needs.** Lines in the service's log that say that a connection found no local port; or at least 80 % of the
local ports taken towards one address, where new connections would use up 64 % of them while one rests. The
finding says whose ports they are: the generator's towards the address under load, the service's towards any
other.

**Ruled out by.** A log that names descriptors (EMFILE) and no port: then descriptors ran out. Up to 3 drops
at the service's own ports: a client that is not accepted waits and takes no port from others (open if more
were dropped, or if drops were not read). Another program that opens connections: the connections beyond those
of the load grew with the number of answers (open without two levels of which one has half as many answers
again as the other).

**Thresholds.** 80 %: from there on the kernel tries several ports per connection, and the rest lasts for a
quarter more load. 64 %: 300 connections/s of 28,232 ports that rest for 60 s; a service that holds as many
connections open for long needs addresses, not reuse. Only where 5 % of the requests failed, or 99 % of the
ports were taken, does the finding explain a limit of the throughput.

**Do.** Keep connections and reuse them; add source addresses; widen net.ipv4.ip_local_port_range.

**Confirm.** A second source address: twice the connections per second, and no such error.

If our own generator finds no port, its requests fail as `own_ports` and the trial is invalid: that is no
finding. Ports in a network namespace of the service's own, as in most containers, cannot be read from
outside; only the service's log shows that they ran out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Words, assessing, on_curve
from loadlens.diagnose.observe import opened_connections
from loadlens.measure.curve import failed_share, succeeded
from loadlens.model.facts import Curve, Facts, LogSign, PortsWatch, Step
from loadlens.model.finding import Counter, Finding, Grade
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
class Level:
    """Local ports at one level."""

    curve: Curve
    step: Step

    @property
    def ports(self) -> PortsWatch | None:
        """Return the ports where they were scarcest; none: not read."""
        return None if self.step.kernel is None else self.step.kernel.ports

    @property
    def is_load(self) -> bool:
        """True if the ports are those of the generator."""
        return self.ports is not None and self.ports.is_load

    @property
    def share(self) -> float:
        """Return the share of the ports that are taken."""
        return 0.0 if self.ports is None else self.ports.share

    @property
    def opens_per_s(self) -> float | None:
        """Return connections per second on the side whose ports these are; none: not counted."""
        kernel, besides = self.step.kernel, opened_connections.besides_load(self.step)
        if kernel is None or besides is None or kernel.begun_s <= 0:
            return None
        by_load = opened_connections.by_load(self.step)
        return (besides if not self.is_load or by_load is None else by_load) / kernel.begun_s


def observe(facts: Facts) -> Sequence[Level] | Lacking:
    """Return all levels: first the one that fails most, then the one with the most ports taken."""
    levels = [Level(curve, step) for curve in facts.curves for step in curve.steps]
    seen = [level for level in levels if level.ports is not None or level.step.sign("ports") is not None]
    return sorted(seen, key=lambda level: (failed_share(level.step), level.share), reverse=True) or Lacking(
        "needs the kernel's view of the service's machine (--pid PID, --start CMD), or the service's log"
    )


def claim(facts: Facts, level: Level) -> Claim:
    """Compare errors in the log, or else the ports that are taken and used up, with what looks the same."""
    ports, sign, opens = level.ports, level.step.sign("ports"), level.opens_per_s
    refused, taken, churn = _refused(sign), _taken(ports), _churn(level)
    signals = [refused] if refused.evidence.passed else [taken, churn]

    def words(grade: Grade) -> Words:
        statement, to = f"{sign.count if sign else 0:,} connections of the service found no local port", ""
        if ports is not None and ports.share >= TAKEN:
            whose = "the generator's" if ports.is_load else "the service's"
            statement = f"{_of_them(ports)} local ports to {ports.to} are taken, {whose}"
            to = f" to {ports.to}"
        explanation = "A connection without a local port fails at once."
        if ports is not None and opens is not None and ports.rests_s > 0:
            rests, lasts = numbers.with_unit(ports.rests_s, "s"), ports.there / ports.rests_s
            explanation = (
                f"A port rests {rests} after its connection was ended from this side: "
                f"{ports.there:,.0f} last for {numbers.with_unit(lasts, '1/s')}, and "
                f"{numbers.with_unit(opens, '1/s')} were opened."
            )
        failed = failed_share(level.step)
        fails = f" {numbers.percent(failed)} of the requests failed." if failed else ""
        who = "the generator" if level.is_load else "the service"
        return Words(
            statement=statement,
            explanation=explanation + fails,
            advice=f"Let {who} keep its connections{to} and use them again; else more source addresses, or a "
            "wider net.ipv4.ip_local_port_range.",
            confirm="a second source address: twice as many connections per second, and no such error",
            impact=failed,
            unknown=() if sign is not None else ("with which error connections failed: no log says it",),
        )

    evidence = [refused.evidence, taken.evidence, churn.evidence]
    rivals = [_descriptors(level), _drops(level), _others(level)]
    return on_curve(level.curve, signals, rivals, words, evidence=evidence)


# --- signals ----------------------------------------------------------------------------------------------


def _refused(sign: LogSign | None) -> grading.Signal:
    if sign is None:
        return grading.stated("ports.refused", None, text="no log says that a connection found no local port")
    text = f"the log says so {sign.count:,} times: {sign.sample}"
    return grading.stated("ports.refused", True, text=text, chip=f"{sign.count:,} found no port")


def _taken(ports: PortsWatch | None) -> grading.Signal:
    if ports is None:
        return grading.stated("ports.taken", None, text="which local ports were taken was not read")
    return grading.stated(
        "ports.taken",
        ports.share >= TAKEN,
        text=f"{_of_them(ports)} local ports towards {ports.to or 'any address'} were taken: "
        f"{numbers.percent(ports.share)} (limit {numbers.percent(TAKEN)})",
        chip=f"{numbers.percent(ports.share)} of the ports taken",
        value=ports.taken,
        threshold=TAKEN * ports.there,
    )


def _of_them(ports: PortsWatch) -> str:
    return f"{ports.taken:,.0f} of {ports.there:,.0f}"


def _churn(level: Level) -> grading.Signal:
    ports, opens = level.ports, level.opens_per_s
    if ports is None or opens is None:
        return grading.stated("ports.opened", None, text="how many connections were opened was not counted")
    churn = opens * ports.rests_s / ports.there
    return grading.stated(
        "ports.opened",
        churn >= CHURN,
        text=f"{numbers.with_unit(opens, '1/s')} connections were opened, and a port rests "
        f"{numbers.with_unit(ports.rests_s, 's')}: that takes {numbers.percent(churn)} of them "
        f"(limit {numbers.percent(CHURN)})",
        chip=f"{numbers.with_unit(opens, '1/s')} opened",
        value=opens,
    )


# --- rivals -----------------------------------------------------------------------------------------------


def _descriptors(level: Level) -> Counter:
    sign, name = level.step.sign("descriptors"), "descriptors"
    if sign is None:
        return grading.rival(name, "nothing says that they ran out, and a port that rests needs none", True)
    text = f"the log says {sign.count:,} times that they ran out: {sign.sample}"
    return grading.rival(name, text, None if level.step.sign("ports") else False)


def _drops(level: Level) -> Counter:
    name = "connections that are not accepted"
    drops = None if level.step.kernel is None else level.step.kernel.listen_drops
    if drops is None:
        return grading.rival(name, "drops at the service's ports were not read", None)
    text = f"{drops:,.0f} dropped at the service's ports"
    return grading.rival(name, text, True if drops <= DROPS else None)


def _others(level: Level) -> Counter:
    """Return the rival of a program that has nothing to do with the load: it opens as many at each level."""
    name = "another program's connections"
    if level.is_load:
        return grading.rival(name, "they go where the load goes", True)
    if level.step.sign("ports") is not None:
        return grading.rival(name, "the service's own log says that its connections found no port", True)
    counts = [(succeeded(step), Level(level.curve, step).opens_per_s) for step in level.curve.steps]
    rates = sorted((rate, opens) for rate, opens in counts if opens is not None)
    if not rates or not rates[-1][0] or rates[-1][0] < RISE * rates[0][0]:
        return grading.rival(name, "no two levels show whether they grow with the load", None)
    (low, few), (high, many) = rates[0], rates[-1]
    text = (
        f"{few:,.0f}/s were opened besides the load's at {numbers.with_unit(low, '1/s')}, "
        f"{many:,.0f}/s at {numbers.with_unit(high, '1/s')}"
    )
    return grading.rival(name, text, many - few >= GROWS * many * (1 - low / high) and many > 0)


# --- which finding, and why none --------------------------------------------------------------------------


def _of_all(pairs: Sequence[tuple[Level, Finding]]) -> Finding:
    """Return the first finding for all levels; it explains others where requests fail or no port is left."""
    bounds = [level.curve for level, _ in pairs if failed_share(level.step) >= FAILING or level.share >= GONE]
    return grading.seen_on(pairs[0][1], [level.curve for level, _ in pairs], bounds=bounds)


def _silence(facts: Facts, levels: Sequence[Level]) -> str:
    level = max(levels, key=lambda level: level.share)
    taken, rivals = _taken(level.ports), [_descriptors(level), _others(level)]
    rival = grading.against(rivals)
    return grading.contradicted([taken, _churn(level)]) or (
        taken.evidence.text if rival is None else rival.text
    )


assess = assessing(ID, TITLE, observe, claim, choose=_of_all, silence=_silence)
