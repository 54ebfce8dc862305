"""Every request needs a new connection.

**Means.** The client would keep its connections, and the service closes each after a single answer. Every
request pays for connecting, and a client's address has only so many ports: a port rests for 60 s after its
connection has ended.

**Needs.** Fewer than 1.5 requests per connection over at least 10 connections of a client that keeps them,
four of five of which the service closed. Or each request makes the machine open 0.9 further connections or
more, at all levels, as the kernel counts them, while those of the load stay; throughput has stopped growing;
and more than a third of the samples of threads on a CPU at the highest load, beyond chance, are in functions
that begin TLS connections. Such a finding explains full cores, and stands on one trial.

**Ruled out by.** A client that is set to close; errors, after which services close (most requests
failing); closings by the client; dropped connections, where asking for them again takes half of the time to
connect or more (`accept.drops`). That a proxy on the way speaks HTTP/1.0 cannot be seen from here, so the
finding is never more than probable.

**Thresholds.** 1.5 requests: between one each and the smallest limit there is, two. 80 %: the connections
that are open at the end of a short trial have no side that closed them.

**Do.** Keep connections open: with no limit or one of 1,000 requests and more, and an idle time-out longer
than users pause.

**Confirm.** The same load with keep-alive: as many connections as users.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe import connection_lives, opened_connections
from loadlens.measure.curve import Capacity, capacity_of, failed_share, waited_to_ask
from loadlens.model.facts import ConnectionWatch, Curve, Facts, Handshakes, Step
from loadlens.model.finding import Counter, Estimate, Finding, Grade, Setting
from loadlens.present import numbers

ID = "http.no-reuse"
TITLE = "every request needs a new connection"
EXPLAINS: tuple[str, ...] = ("cpu.saturated", "cpu.one-core", "saturation.plateau")

MOST_REQUESTS = 1.5  # per connection
CLOSED_BY_SERVER = 0.80
FEWEST_OPENED = 10
MOSTLY = 0.5  # of the time to connect
FAILING = 0.10  # of the requests: from here on errors may be why, from half on they are
PORTS = 28_232  # of one address to one other, by default
REST_S = 60.0  # of a port


@dataclass(frozen=True, slots=True)
class ShortConnections:
    """The connections of one level."""

    curve: Curve
    step: Step
    watch: ConnectionWatch

    @property
    def requests(self) -> float:
        """Answered on each connection."""
        return self.watch.answered / self.watch.opened

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


@dataclass(frozen=True, slots=True)
class Opened:
    """A plateau on which each request makes the service open TLS connections, which takes much CPU time."""

    curve: Curve
    step: Step  # of the highest load
    rate: Estimate
    each: float  # connections for each request
    handshakes: Handshakes


def observe(facts: Facts) -> Sequence[ShortConnections | Opened] | Lacking | Nothing:
    """Return what requests open within the service; else levels of a client that keeps connections."""
    opened = [each for curve in facts.curves if (each := _opened(curve)) is not None]
    levels = _levels(facts)
    if isinstance(levels, (Lacking, Nothing)):
        return opened or levels
    return [*opened, *levels]


def _opened(curve: Curve) -> Opened | None:
    capacity, each = capacity_of(curve), opened_connections.per_request(curve)
    if not isinstance(capacity, Capacity) or capacity.saturation.verdict == "underdriven" or each is None:
        return None
    top, watch = capacity.top, capacity.top.connections
    if top.handshakes is None or not isinstance(top.throughput, Estimate):
        return None
    if watch is None or watch.answered < MOST_REQUESTS * watch.opened:
        return None  # these handshakes may be those of the load
    return Opened(curve, top, top.throughput, each, top.handshakes)


def _levels(facts: Facts) -> Sequence[ShortConnections] | Lacking | Nothing:
    levels = connection_lives.levels(facts, needs="counts of connections")
    if isinstance(levels, str):
        return Lacking(levels)
    counted = [
        ShortConnections(level.curve, level.step, level.watch)
        for level in levels
        if level.watch.opened >= FEWEST_OPENED and level.watch.answered
    ]
    opened = max(level.watch.opened for level in levels)
    answered = sum(level.watch.answered for level in levels)
    return counted or Nothing(f"at most {opened} connections per level for {answered:,} answers")


def claim(facts: Facts, observed: ShortConnections | Opened) -> Claim:
    """Hold connections against the side that closed them, or the work of those that requests open."""
    return _within(facts, observed) if isinstance(observed, Opened) else _of_client(observed)


def _within(facts: Facts, opened: Opened) -> Claim:
    share, rate = numbers.percent(opened.handshakes.share), numbers.short(opened.rate)
    count, function = f"{opened.each:.2g} connections", opened.handshakes.function
    signals = [
        grading.stated(
            "connections.each",
            True,
            text=f"each request makes the machine open {count} more (limit {opened_connections.NEARLY_ONE})",
            chip=f"{count} for each request",
            value=opened.each,
        ),
        grading.stated(
            "handshakes.cpu",
            True,
            text=f"{share} of the samples on a CPU are in {function} (limit: more than a third)",
            chip=f"{share} of the CPU in handshakes",
            value=opened.handshakes.share,
        ),
    ]
    rivals = [
        grading.generator_rival(opened.step),
        grading.interference_rival(opened.step, facts.cores),
    ]

    def words(_: Grade) -> Words:
        return Words(
            statement=f"Requests open TLS connections within the service: {share} of the CPU at {rate}",
            explanation=f"So much of it goes to {function}. Connections that stay open cost none of it.",
            advice="Keep the connections between parts of the service open: by a session or a pool in the "
            "client, by HTTP/1.1 with keep-alive in a proxy; or let sessions of TLS be resumed.",
            confirm="the same load with connections that stay open: less CPU for each request",
            impact=opened.handshakes.share,
            setting=Setting.closing(),
        )

    return on_curve(opened.curve, signals, rivals, words, cap=Grade.PROBABLE)


def _of_client(level: ShortConnections) -> Claim:
    watch, step, requests, failed = level.watch, level.step, level.requests, level.failed
    by_server = watch.closed_by_server / watch.opened
    signals = [
        grading.stated(
            "connection.requests",
            requests < MOST_REQUESTS,
            text=f"{watch.answered:,} answers on {watch.opened:,} connections: {requests:.2g} each "
            f"(limit {MOST_REQUESTS})",
            chip=f"{requests:.2g} {'request' if requests == 1 else 'requests'} each",
        ),
        grading.stated(
            "connection.closed",
            by_server >= CLOSED_BY_SERVER,
            text=f"the service closed {numbers.percent(by_server)} of them, the client "
            f"{watch.closed_by_client:,} (limit {numbers.percent(CLOSED_BY_SERVER)})",
            chip=f"service closed {numbers.percent(by_server)}",
        ),
    ]
    rivals = [
        grading.rival("setting of the client", "it keeps connections as long as it may", True),
        grading.rival(
            "errors",
            f"{numbers.percent(failed)} of the requests failed",
            True if failed < FAILING else None if failed < 0.5 else False,
        ),
        grading.rival("a proxy that speaks HTTP/1.0", "the version of the answers is not recorded", None),
        _drops(level),
    ]

    def words(_: Grade) -> Words:
        share, rate = level.connecting, step.throughput
        cost = (
            f": connecting takes {numbers.percent(share)} of the response time." if share is not None else "."
        )
        took = f"{watch.opened:,} for {watch.answered:,} answers"
        if isinstance(watch.connect, Estimate):
            took = f"connecting takes {numbers.short(watch.connect)} of {numbers.short(step.response.mean)}"
        ended = f"{watch.closed_by_server:,} of {watch.opened:,} connections"
        explanation = f"The service ended {ended} after one answer."
        if isinstance(rate, Estimate):
            explanation += (
                f" At {numbers.with_unit(rate.point, '1/s')} these are as many connections per second; "
                f"one address of a client has ports for {PORTS / REST_S:.0f}."
            )
        # An open load has no number of users: how many connections it keeps follows from response times.
        wanted = f"{step.load:g} connections per trial" if level.curve.is_closed else "far fewer connections"
        return Words(
            statement=f"Every request needs a new connection: {took}",
            explanation=explanation,
            advice=f"Keep connections open, for 1,000 requests or more and longer than users pause{cost}",
            confirm=f"the same load with keep-alive: {wanted} instead of "
            f"{watch.opened / max(1, step.trials):,.0f}",
            impact=0.0 if share is None else share,
            unknown=("what a first request costs within the service: no connection had a second one",),
            setting=Setting.closing(),
        )

    return on_curve(level.curve, signals, rivals, words, cap=Grade.PROBABLE, explains_others=False)


def _drops(level: ShortConnections) -> Counter:
    """Connections that were dropped: then asking again takes the time, and connecting takes none."""
    again, connecting = waited_to_ask(level.step) or 0.0, level.connecting or 0.0
    text = f"asking for them again takes {numbers.percent(again)} of the response time, connecting "
    text += numbers.percent(connecting)
    return grading.rival("dropped connections", text, not 0.0 < MOSTLY * connecting <= again)


def _of_most_connections(pairs: Sequence[tuple[ShortConnections | Opened, Finding]]) -> Finding:
    """The finding of the level with the most connections, for the curves of all."""
    opened = [finding for seen, finding in pairs if isinstance(seen, Opened)]
    if opened:  # it says what connections cost
        return opened[0]
    levels = [(level, finding) for level, finding in pairs if isinstance(level, ShortConnections)]
    by_opened = sorted(levels, key=lambda pair: pair[0].watch.opened, reverse=True)
    curves = [level.curve for level, _ in by_opened]
    return grading.seen_on(by_opened[0][1], curves, bounds=curves)


def _silence(facts: Facts, observed: Sequence[ShortConnections | Opened]) -> str:
    levels = [level for level in observed if isinstance(level, ShortConnections)]
    if not levels:
        return claim(facts, observed[0]).objection
    level = min(levels, key=lambda level: level.requests)
    if level.requests >= MOST_REQUESTS:
        return f"at least {level.requests:,.1f} answers on each connection (limit {MOST_REQUESTS})"
    if level.failed >= 0.5:
        return f"{numbers.percent(level.failed)} of the requests failed: errors close connections"
    return grading.unclear(_of_client(level).signals)


assess = assessing(ID, TITLE, observe, claim, choose=_of_most_connections, silence=_silence)
