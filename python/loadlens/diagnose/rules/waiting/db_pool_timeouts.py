"""Waiting for a connection of a pool ends in errors.

**Means.** A request needs one of a fixed number of connections. When none is given back within a time-out,
the pool gives up and the server answers with an error. Either there are too few, or requests hold one longer
than they use it, or some are never given back.

**Needs.** Answers with status 500 or above: at least 0.1 % of the requests at the highest load, and at least
twice their share at the lowest load. In addition, the server names the pool, in its log or in these answers,
once for every ten errors or more; or half of these answers lie within 10 % of their median time while gauges
show a pool that is full with more than 0.5 requests waiting. Failures that ended a level count where no whole
level has any.

**Ruled out by.** The client's own time-out (such requests have no status). A lock for which the holders of
the connections wait, by its gauges or in the words of the server: more connections would wait for it, too.
Errors that occur at the lowest load already. Without gauges of locks, and where the server names none, that
alternative stays open.

**Thresholds.** As for `db.lock-timeouts`.

**Do.** Hold a connection only for the query, not during calls to other systems; give it back on every path,
errors included; then as many connections as the database serves at once.

**Confirm.** Twice the connections: the errors vanish, or come at twice the load. If they come again after
twice as many requests, connections are not given back (`places.lost`).
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe import limits, vain_waits
from loadlens.diagnose.observe.vain_waits import ServerErrors
from loadlens.model.facts import Facts
from loadlens.model.finding import Counter, Grade
from loadlens.present import numbers

ID = "db.pool-timeouts"
TITLE = "waits for a pool's connections end in errors"
EXPLAINS: tuple[str, ...] = ("timeouts.cliff", "shed.overload")


def observe(facts: Facts) -> Sequence[ServerErrors] | Lacking | Nothing:
    """Return the server errors of all curves, the one with the largest share first."""
    return vain_waits.observe(facts, "pool")


def claim(facts: Facts, errors: ServerErrors) -> Claim | Nothing:
    """Compare the errors with the words of the server, and with gauges of a pool."""
    if errors.sign is None and errors.place is None:
        return Nothing("neither the server nor a gauge names a pool")
    signals = vain_waits.signals_of(errors)

    def texts(grade: Grade) -> Words:
        verb = "may come" if grade is Grade.SUSPECTED else "comes"
        share = numbers.percent(errors.share)
        cause = f"no connection {verb} free in time"
        return Words(
            statement=f"{share} of requests end with {errors.mode.status} at {errors.step.load:g} users: "
            f"{cause}",
            explanation=f"{vain_waits.who_says_so(errors)}{errors.pile_text}.",
            advice="Hold a connection only for the query and give it back on every path, errors included; "
            "then more connections, as many as the database serves at once.",
            confirm="twice the connections: no errors up to twice the load",
            impact=errors.share,
            unknown=()
            if errors.place is not None
            else ("how many connections there are: no gauge was read",),
            scope=f"{errors.mode.label} · {errors.curve.label}",
        )

    return on_curve(
        errors.curve,
        vain_waits.grading_signals(errors, signals),
        [
            grading.rival("time-out of the client", f"the server answered with {errors.mode.status}", True),
            _lock_rival(errors),
        ],
        texts,
        evidence=[signal.evidence for signal in signals],
    )


def _lock_rival(errors: ServerErrors) -> Counter:
    """Return the rival of a lock for which the holders of the connections wait."""
    name, step = "lock held by a request", errors.step
    named = step.sign("lock")
    if named is not None:
        return grading.rival(name, named.text, False)
    locks = [places for places in step.places if places.kind == "lock"]
    line = next((lock for lock in locks if vain_waits.is_line(lock)), None)
    if line is not None:
        return grading.rival(name, f"{limits.reading(line.held)}, {limits.reading(line.waiting)}", False)
    if locks:
        return grading.rival(name, f"{limits.reading(locks[0].held)}: no line there", True)
    return grading.rival(name, "no gauge of lock waits, and the server names no lock", None)


def _silence(facts: Facts, observed: Sequence[ServerErrors]) -> str:
    errors = observed[0]
    share = f"{numbers.percent(errors.share)} end with {errors.mode.status} on {errors.curve.label}"
    names = (
        "neither the server nor a gauge names a pool" if errors.sign is None and errors.place is None else ""
    )
    return "; ".join(part for part in (share, errors.pile_text, names) if part)


assess = assessing(ID, TITLE, observe, claim, silence=_silence)
