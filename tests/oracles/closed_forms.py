"""Closed forms of queueing theory: what a model must be where a formula is exact, and bounds where none is.

Times are seconds, rates per second. Everything is exact for the assumptions that its docstring names and for
nothing else; predictions come from the simulator (`engine.simulate`), whose tests these formulas are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.stats import poisson

from loadlens.estimate.rate_limiter import erlang_b

MOST_TERMS = 100_000  # of a distribution over numbers in a system


@dataclass(frozen=True, slots=True)
class Closed:
    """A closed system in its steady state."""

    throughput: float  # requests per second
    response: float  # mean seconds from issued to answered
    in_system: tuple[float, ...]  # P(n of the users' requests are there), n = 0..users; empty: not asked


@dataclass(frozen=True, slots=True)
class Network:
    """A closed network of stations in its steady state."""

    throughput: float
    response: float  # all stations together
    residence: tuple[float, ...]  # mean seconds at each station, its queue included
    queues: tuple[float, ...]  # mean requests at each station


@dataclass(frozen=True, slots=True)
class Mixed:
    """Users and a stream of arrivals at the same stations."""

    closed: Network
    open_response: float  # of the arrivals, all stations together


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no closed system of these demands can go beyond, whatever its laws and its order."""

    most_throughput: float
    least_response: float
    knee: float  # users from which on the busiest station is the limit


def repairman(users: int, think: float, service: float, servers: int = 1) -> Closed:
    """Return the steady state of M/M/c//N: users who think, and one station of servers.

    Args:
        users: N, at least 1.
        think: Mean think time Z, exponential or not; above 0 or 0.
        service: Mean service time, exponential.
        servers: c.

    Source: the birth-death chain, in logarithms (Lazowska et al. 1984, ch. 5).
    """
    _want(users >= 1 and servers >= 1 and think >= 0 and service > 0, "users, servers and service above 0")
    if think == 0:
        busy = min(users, servers)
        rate = busy / service
        return Closed(rate, users / rate, (*(0.0,) * users, 1.0))
    logs = [0.0]
    for n in range(1, users + 1):
        logs.append(logs[-1] + math.log((users - n + 1) / think) - math.log(min(n, servers) / service))
    top = max(logs)
    weights = [math.exp(value - top) for value in logs]
    whole = math.fsum(weights)
    chances = tuple(weight / whole for weight in weights)
    rate = math.fsum(min(n, servers) * chance for n, chance in enumerate(chances)) / service
    return Closed(rate, users / rate - think, chances)


def repairman_quantile(users: int, think: float, service: float, p: float) -> float:
    """Return a quantile of the response time of M/M/1//N, served in order.

    A request that finds n others there waits for n + 1 exponential services: a mixture of Erlang laws with
    the chances that one user fewer would see (arrival theorem; Sevcik and Mitrani 1981).

    Args:
        users: N.
        think: Mean think time, exponential.
        service: Mean service time, exponential.
        p: Level, in (0, 1).
    """
    _want(0 < p < 1, "a level between 0 and 1")
    found = repairman(users - 1, think, service).in_system if users > 1 else (1.0,)

    def above(t: float) -> float:
        return math.fsum(chance * _erlang_above(n + 1, t / service) for n, chance in enumerate(found))

    return _where(above, 1 - p, service * users)


def mva(demands: Sequence[float], think: float, users: int) -> Network:
    """Return the steady state of a closed network by exact mean value analysis.

    Args:
        demands: Seconds of each station that a request needs in all; single servers that share processors or
        serve
            exponential work in order.
        think: Mean think time, and all that takes time without a queue.
        users: At least 1.

    Source: M. Reiser and S. S. Lavenberg, Journal of the ACM 27 (2), 1980.
    """
    _want(users >= 1 and think >= 0 and all(d >= 0 for d in demands), "users of at least 1, no negative time")
    _want(think > 0 or any(d > 0 for d in demands), "some time above 0")
    queues = [0.0] * len(demands)
    residence = [0.0] * len(demands)
    rate = 0.0
    for n in range(1, users + 1):
        residence = [demand * (1 + queue) for demand, queue in zip(demands, queues, strict=True)]
        rate = n / (think + math.fsum(residence))
        queues = [rate * seconds for seconds in residence]
    return Network(rate, math.fsum(residence), tuple(residence), tuple(queues))


def mixed(
    demands: Sequence[float], think: float, users: int, *, open_demands: Sequence[float], rate: float
) -> Mixed | None:
    """Return users and a stream of arrivals at the same stations; none: the arrivals alone are too many.

    The users see stations that are slower by what the arrivals take; an arrival sees the users' queue.

    Args:
        demands: Seconds of each station that a user's request needs.
        think: Mean think time of the users.
        users: At least 1.
        open_demands: The same for an arrival.
        rate: Arrivals per second, Poisson.

    Source: Lazowska et al. 1984, section 7.4; product-form networks only.
    """
    used = [rate * demand for demand in open_demands]
    if any(share >= 1 for share in used):
        return None
    slowed = [demand / (1 - share) for demand, share in zip(demands, used, strict=True)]
    closed = mva(slowed, think, users)
    response = math.fsum(
        demand * (1 + queue) / (1 - share)
        for demand, queue, share in zip(open_demands, closed.queues, used, strict=True)
    )
    return Mixed(closed, response)


def bounds(demands: Sequence[float], think: float, users: float, servers: int = 1) -> Bounds:
    """Return the asymptotic bounds of a closed system.

    Args:
        demands: Seconds of each station that a request needs.
        think: Mean think time.
        users: How many.
        servers: Of each station: k workers, each of which takes whole requests.

    Source: P. J. Denning and J. P. Buzen, Computing Surveys 10 (3), 1978.
    """
    whole, most = math.fsum(demands), max(demands)
    _want(most > 0 and servers >= 1 and think >= 0, "a demand above 0")
    limit = servers / most
    return Bounds(
        min(limit, users / (whole + think)), max(whole, users / limit - think), (whole + think) * limit
    )


# --------------------------------------------------------------------------------------------- open systems


def erlang_c(offered: float, servers: int) -> float:
    """Return the chance that an arrival waits in M/M/c; 1 when the load is beyond the servers.

    Args:
        offered: Arrival rate times mean service time, erlangs.
        servers: c.

    Source: A. K. Erlang 1917, by the recursion of Erlang B.
    """
    _want(offered >= 0 and servers >= 1, "an offered load of at least 0 and a server")
    if offered >= servers:
        return 1.0
    blocked, used = erlang_b(offered, servers), offered / servers
    return blocked / (1 - used * (1 - blocked))


def mmc_wait(rate: float, service: float, servers: int = 1) -> float:
    """Return the mean wait of M/M/c; infinite beyond the servers."""
    offered = rate * service
    if offered >= servers:
        return math.inf
    return erlang_c(offered, servers) * service / (servers - offered)


def mmc_wait_quantile(rate: float, service: float, servers: int, p: float) -> float:
    """Return a quantile of the wait of M/M/c, whose law is P(W > t) = C exp(-(c - a) t / S).

    Infinite from as many erlangs as servers on.
    """
    _want(0 < p < 1, "a level between 0 and 1")
    offered = rate * service
    if offered >= servers:
        return math.inf
    waits = erlang_c(offered, servers)
    return 0.0 if 1 - p >= waits else service * math.log(waits / (1 - p)) / (servers - offered)


def mg1_wait(rate: float, mean: float, square: float) -> float:
    """Return the mean wait of M/G/1, served in order; infinite from a utilisation of 1 on.

    Args:
        rate: Arrivals per second, Poisson.
        mean: Mean service time.
        square: Mean of its square.

    Source: F. Pollaczek 1930, A. Y. Khinchine 1932.
    """
    used = rate * mean
    return rate * square / (2 * (1 - used)) if used < 1 else math.inf


def md1_wait(rate: float, service: float) -> float:
    """Return the mean wait of M/D/1: half of that of M/M/1."""
    return mg1_wait(rate, service, service**2)


def md1_wait_above(rate: float, service: float, t: float) -> float:
    """Return the chance that an arrival of M/D/1 waits longer than `t` seconds.

    All terms are positive, so nothing is lost where the classical alternating sum needs a hundred digits.

    Source: G. J. Franx, Operations Research Letters 29 (5), 2001.
    """
    used = rate * service
    _want(0 <= used < 1, "a utilisation below 1")
    if t < 0:
        return 1.0
    rounds = math.floor(t / service) + 1  # (rounds - 1) D <= t < rounds D
    _want(rounds <= MOST_TERMS, "a shorter time")
    waiting = _md1_queue(used, rounds)
    rest = rate * (rounds * service - t)
    term = math.exp(-rest)
    at_most = 0.0
    for j in range(rounds):
        at_most += waiting[rounds - 1 - j] * term
        term *= rest / (j + 1)
    return min(1.0, max(0.0, 1 - at_most))


def md1_wait_quantile(rate: float, service: float, p: float) -> float:
    """Return a quantile of the wait of M/D/1; 0 where so many do not wait at all."""
    _want(0 < p < 1, "a level between 0 and 1")
    if 1 - p >= rate * service:
        return 0.0
    return _where(lambda t: md1_wait_above(rate, service, t), 1 - p, service)


def mdc_wait_above(rate: float, service: float, servers: int, t: float) -> float:
    """Return the chance that an arrival of M/D/c waits longer than `t` seconds.

    Like `md1_wait_above`, with the queue that c servers leave: all that were in service a service time ago
    have left, so that n become max(n - c, 0) and the arrivals in between (C. D. Crommelin 1932).

    Source: G. J. Franx, Operations Research Letters 29 (5), 2001.
    """
    _want(0 <= rate * service < servers, "a utilisation below 1")
    if t < 0:
        return 1.0
    rounds = math.floor(t / service) + 1  # (rounds - 1) D <= t < rounds D
    rest = rate * (rounds * service - t)
    at_most = np.cumsum(_mdc_present(rate * service, servers))[servers:]  # P(at most n wait)
    at_most = np.pad(at_most, (0, max(0, rounds * servers - at_most.size)), constant_values=1.0)
    terms = poisson.pmf(np.arange(rounds * servers), rest)
    return min(1.0, max(0.0, 1 - float(terms @ at_most[: rounds * servers][::-1])))


def mdc_wait_quantile(rate: float, service: float, servers: int, p: float) -> float:
    """Return a quantile of the wait of M/D/c; infinite from as many erlangs as servers on."""
    _want(0 < p < 1, "a level between 0 and 1")
    if rate * service >= servers:
        return math.inf
    if mdc_wait_above(rate, service, servers, 0.0) <= 1 - p:
        return 0.0
    return _where(lambda t: mdc_wait_above(rate, service, servers, t), 1 - p, service)


@cache
def _mdc_present(offered: float, servers: int) -> npt.NDArray[np.float64]:
    """P(n are there), from the balance of numbers a service time apart, cut off where hardly any lie."""
    most = 4 * servers + math.ceil(15 / (1 - offered / servers))
    arrivals = poisson.pmf(np.arange(most), offered)
    number = np.arange(most)
    come = number[None, :] - np.maximum(number - servers, 0)[:, None]  # from a row to a column
    steps = np.where(come >= 0, arrivals[np.maximum(come, 0)], 0.0)
    balance = steps.T - np.eye(most)
    balance[-1] = 1.0  # in place of one equation that follows from the others
    return np.linalg.solve(balance, np.eye(most)[-1])


def _md1_queue(used: float, terms: int) -> list[float]:
    """P(at most n wait), n = 0..terms - 1, from level crossings of the chain at departures."""
    chance = math.exp(-used)  # of n arrivals in one service
    arrivals, above, rest = [chance], [1 - chance], 1 - chance
    for n in range(1, terms + 1):
        chance *= used / n
        arrivals.append(chance)
        rest = max(0.0, rest - chance)
        above.append(rest)
    present = [1 - used]
    for j in range(terms):
        up = present[0] * above[j]
        up += math.fsum(present[i] * above[j - i + 1] for i in range(1, j + 1))
        present.append(up / arrivals[0])
    total, found = present[0], []
    for n in range(terms):
        total += present[n + 1]
        found.append(total)
    return found


def _erlang_above(shape: int, x: float) -> float:
    """P(the sum of so many exponential times of mean 1 is above x)."""
    term = math.exp(-x)
    total = term
    for n in range(1, shape):
        term *= x / n
        total += term
    return total


def _where(above: Callable[[float], float], share: float, start: float) -> float:
    """The time from which on a falling function is at most `share`, by bisection."""
    low, high = 0.0, start
    while above(high) > share:
        low, high = high, high * 2
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if above(middle) > share else (low, middle)
    return high


def _want(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"wanted {what}")
