"""Every request needs a new connection.

**Means.** The client would keep its connections, and the service closes each after a single answer. Every
request pays for connecting, and a client's address has only so many ports: a port rests for 60 s after its
connection has ended.

**Needs.** Fewer than 1.5 requests a connection over at least 10 connections of a client that keeps them,
four of five of which the service closed.

**Ruled out by.** A client that is told to close; errors, after which services close (most requests
failing); closings by the client. That a proxy on the way speaks HTTP/1.0 cannot be seen from here, so the
finding is never more than probable.

**Thresholds.** 1.5 requests: between one each and the smallest limit there is, two. 80 %: the connections
that are open at the end of a short trial have no side that closed them.

**Do.** Keep connections open: with no limit or one of 1,000 requests and more, and an idle time-out longer
than users pause.

**Confirm.** The same load with keep-alive: as many connections as users.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.observe import connection_lives
from loadlens.measure.curve import failed_share
from loadlens.model.facts import ConnectionWatch, Curve, Facts, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, Grade, NotAssessed
from loadlens.present import numbers

ID = "http.no-reuse"
TITLE = "every request needs a new connection"
EXPLAINS: tuple[str, ...] = ()

MOST_REQUESTS = 1.5  # a connection
CLOSED_BY_SERVER = 0.80
FEWEST_OPENED = 10
FAILING = 0.10  # of the requests: from here on errors may be why, from half on they are
PORTS = 28_232  # of one address to one other, by default
REST_S = 60.0  # of a port


@dataclass(frozen=True, slots=True)
class Look:
    """The connections of one level."""

    curve: Curve
    step: Step
    watch: ConnectionWatch

    @property
    def requests(self) -> float:
        """Answered on each connection."""
        return self.watch.answered / self.watch.opened

    @property
    def by_server(self) -> float:
        """Share of the connections that the service closed."""
        return self.watch.closed_by_server / self.watch.opened

    @property
    def failed(self) -> float:
        """Share of the requests that did not end as expected."""
        return failed_share(self.step)

    @property
    def connecting(self) -> float | None:
        """Share of the mean response time until a connection stands; none: not known."""
        connect, mean = self.watch.connect, self.step.response.mean
        if not isinstance(connect, Estimate) or not isinstance(mean, Estimate) or mean.point <= 0:
            return None
        return min(1.0, connect.point / mean.point)


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every level; the one with the most connections speaks for all."""
    known = connection_lives.levels(facts, needs="counts of connections")
    if isinstance(known, str):
        return NotAssessed(ID, TITLE, known)
    watches = [one.watch for one in known]
    looks = [
        Look(one.curve, one.step, one.watch)
        for one in known
        if one.watch.opened >= FEWEST_OPENED and one.watch.answered
    ]
    if not looks:
        opened, answered = max(w.opened for w in watches), sum(w.answered for w in watches)
        return Absent(ID, TITLE, f"at most {opened} connections a level for {answered:,} answers")
    by_opened = sorted(looks, key=lambda look: look.watch.opened, reverse=True)
    found = [(look, f) for look in by_opened if (f := _finding(look)) is not None]
    if not found:
        look = min(looks, key=lambda one: one.requests)
        return Absent(ID, TITLE, _silence(look))
    curves = tuple(dict.fromkeys(look.curve.label for look, _ in found))
    return replace(found[0][1], scope=", ".join(curves), curves=curves)


def _finding(look: Look) -> Finding | None:
    signals = _signals(look)
    rivals = [
        grading.rival("setting of the client", "it keeps connections as long as it may", True),
        _error_rival(look),
        grading.rival("a proxy that speaks HTTP/1.0", "the version of the answers is not recorded", None),
    ]
    grade = grading.grade_of(signals, rivals, cap=min(Grade.PROBABLE, grading.cap_of(look.curve)))
    if grade is None:
        return None
    share = look.connecting
    return Finding(
        rule=ID,
        grade=grade,
        impact=0.0 if share is None else share,
        scope=look.curve.label,
        statement=grading.statement(_statement(look)),
        explanation=_explanation(look),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice="Keep connections open, for 1,000 requests or more and longer than users pause"
        + (
            f": connecting takes {numbers.percent(share)} of the response time." if share is not None else "."
        ),
        confirm=_confirm(look),
        unknown=("what a first request costs within the service: no connection had a second one",),
        curves=(look.curve.label,),
    )


def _confirm(look: Look) -> str:
    # An open load has no number of users: how many connections it keeps follows from response times.
    wanted = f"{look.step.load:g} connections a trial" if look.curve.is_closed else "far fewer connections"
    opened = look.watch.opened / max(1, look.step.trials)
    return f"the same load with keep-alive: {wanted} instead of {opened:,.0f}"


def _signals(look: Look) -> list[grading.Signal]:
    watch = look.watch
    return [
        grading.stated(
            "connection.requests",
            look.requests < MOST_REQUESTS,
            text=f"{watch.answered:,} answers on {watch.opened:,} connections: {look.requests:.2g} each "
            f"(limit {MOST_REQUESTS})",
            chip=f"{look.requests:.2g} {'request' if look.requests == 1 else 'requests'} each",
        ),
        grading.stated(
            "connection.closed",
            look.by_server >= CLOSED_BY_SERVER,
            text=f"the service closed {numbers.percent(look.by_server)} of them, the client "
            f"{watch.closed_by_client:,} (limit {numbers.percent(CLOSED_BY_SERVER)})",
            chip=f"service closed {numbers.percent(look.by_server)}",
        ),
    ]


def _error_rival(look: Look) -> Counter:
    failed = look.failed
    text = f"{numbers.percent(failed)} of the requests failed"
    return grading.rival("errors", text, True if failed < FAILING else None if failed < 0.5 else False)


def _statement(look: Look) -> str:
    connect = look.watch.connect
    if not isinstance(connect, Estimate):
        opened, answered = look.watch.opened, look.watch.answered
        return f"Every request needs a new connection: {opened:,} for {answered:,} answers"
    took, whole = numbers.short(connect), numbers.short(look.step.response.mean)
    return f"Every request needs a new connection: connecting takes {took} of {whole}"


def _explanation(look: Look) -> str:
    rate = look.step.throughput
    ended = f"{look.watch.closed_by_server:,} of {look.watch.opened:,} connections"
    text = f"The service ended {ended} after one answer"
    if not isinstance(rate, Estimate):
        return f"{text}."
    most = PORTS / REST_S
    return (
        f"{text}. At {numbers.with_unit(rate.point, '1/s')} these are as many connections a second; "
        f"one address of a client has ports for {most:.0f}."
    )


def _silence(look: Look) -> str:
    if look.requests >= MOST_REQUESTS:
        return f"at least {look.requests:,.1f} answers on each connection (limit {MOST_REQUESTS})"
    if look.failed >= 0.5:
        return f"{numbers.percent(look.failed)} of the requests failed: errors close connections"
    return grading.unclear(_signals(look))
