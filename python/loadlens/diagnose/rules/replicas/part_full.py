"""One of several parts is full, and the others have room.

**Means.** A fixed share of the requests goes to one part of several: an upstream, a shard, a replica, or a
system that only some requests need. That part is full. Its requests wait longer with every further user, and
all others stay as fast as they were. In the end most users wait for this part, so throughput is at most what
the part lets through, divided by its share of the requests.

**Needs.** A plateau. CPU to spare: computing and waiting for a core take at most 70 % of the cores, and no
thread is full. In addition one of these signs, which must explain half or more of the waiting at the highest
load:

- A histogram, or a sum and a count, among the service's own metrics (`--metrics`), by any label with 2 to 24
  values. Some values take at least 3 times as long at the highest load as at the lightest, and the others at
  most twice as long. These values get 2 to 80 % of the requests, and the same share at all levels, within
  20 %. Where three values or more take the same time without load, within a quarter, it may be 95 %. The
  names of the label and of its values do not count.
- The same of calls to programs of this machine, as the kernel saw them, by program and port.
- The same of requests of the load whose paths differ only in the thing that they ask for.
- The response times of one kind of request fall into two hills at two levels or more, the highest among
  them. The slow hill has 2 to 80 % of the requests, and the same share at all levels of the plateau, within
  20 %. Its time grows at least half as fast as the number of users. The median of the quick requests is at
  most twice that without load. If one value of a label has just this share, it is named.

**Ruled out by.** A value of the service's metrics that clients choose, such as the path: it comes as often as
one kind of request and takes as long. A share that changes with the load, because a balancer then avoids the
part. A slow path that takes the same time longer at any load (`mixture.slow-path`). A generator that is the
limit. Refusals. Responses whose transfer takes most of the time. A full machine or other programs leave the
finding probable at most: the other requests pass the same machine and stay fast. A lock or pool that gauges
show (`db.lock`, `db.pool`) and a replica that is slower or gets more requests (`backend.slow-one`,
`lb.imbalance`) are the cause; this finding is then their effect.

**Thresholds.** 3 times and twice: in a queue behind equal work times double soon, and hills of a smaller
ratio cannot be separated. Half of the waiting: less is not the limit. 80 %: what nearly all requests need is
no part of several, unless others are like it, as shards are. 24 values: a label with more of them names
single things, such as users. 20 %: a share that is counted over 100 requests varies as much by chance.

**Do.** Give the part what the others have (places, a host, an index), or spread its requests: more keys per
shard, a balancer that counts what is under way, a bound on waiting for it so that it does not hold up the
rest.

**Confirm.** The same load without the requests to that part: throughput grows with users again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve, strongest
from loadlens.diagnose.observe import label_parts, waits
from loadlens.diagnose.observe.label_parts import GROWN, LEAST_SHARE, SAME_SHARE, UNLOADED
from loadlens.model.facts import Facts
from loadlens.model.finding import Grade
from loadlens.present import numbers, words

ID = "part.full"
TITLE = "one of several parts is full"
EXPLAINS: tuple[str, ...] = (
    *("saturation.plateau", "downstream.serialised", "threads.pool-limit", "outside.handler-wait"),
    *("mixture.slow-path", "ratelimit.active"),
)

AS_MUCH = 0.5  # of the growth of the users


@dataclass(frozen=True, slots=True)
class FullPart:
    """A part on a plateau."""

    full: waits.Full
    part: label_parts.Part


def observe(facts: Facts) -> Sequence[FullPart] | Lacking | Nothing:
    """Return the parts of all plateaus that slow down while others do not, those of labels first."""
    plateaus = waits.plateaus(facts)
    if not isinstance(plateaus, tuple):
        return waits.without_plateau(plateaus)
    parts = [
        FullPart(full, part)
        for look in (label_parts.by_labels, label_parts.by_times)
        for full in plateaus
        if (part := look(full)) is not None
    ]
    if parts:
        return parts
    if any(full.top.splits or full.curve.slow_paths for full in plateaus):
        return Nothing("no value of a label and no hill of times slows down alone")
    return Lacking("needs every request of a trial in its log, or metrics with labels (--metrics)")


def claim(facts: Facts, observed: FullPart) -> Claim:
    """Hold the part against its share of the requests and of the waiting, and against the others."""
    full, part = observed.full, observed.part
    signals = [waits.cpu_signal(facts, full.curve, full.top), *_signals(observed)]

    def text(grade: Grade) -> Words:
        is_suspected = grade is Grade.SUSPECTED
        share, time = numbers.percent(part.share), numbers.percent(part.of_time)
        now, others = numbers.with_unit(part.now_s, "s"), numbers.with_unit(part.others_now_s, "s")
        rate = numbers.with_unit(part.rate, "1/s")
        verb = "may be" if is_suspected else "is"
        statement = f"{part.name} {verb} full at {rate}: {share} of the {part.what}, {time} of their time"
        take, unknown = "takes", tuple[str, ...]()
        further = f" Full as well: {', '.join(part.further)}." if part.further else ""
        if not part.source:
            verb, take = "may wait" if is_suspected else "wait", "take"
            statement = f"{part.name} {verb} for a part that is full at {rate}; the others do not"
            same = label_parts.of_share(full.top, part.share, part.now_s)
            if same is None:
                unknown = ("which part: no label of a metric has this share",)
            else:
                further = f" {same.name} of {same.source} has this share."
        return Words(
            statement=statement,
            explanation=f"{part.name} {take} {now} at {words.users(full.top.load)}{_before(part)}; the "
            f"others take {others}. {numbers.percent(part.of_waiting)} of all waiting is there.{further}",
            advice="Give it what the others have, or spread its requests over them; bound the wait for it, so"
            " that it does not hold up the rest.",
            confirm=f"the same load without the requests to it: throughput grows beyond {full.most}",
            impact=full.waiting_share * part.of_waiting,
            unknown=unknown,
        )

    # The others run on the same machine and stay fast: alone it cannot be the cause.
    machine, generator, programs, *rest = waits.rivals(facts, full)
    rivals = [grading.left_open(machine), generator, grading.left_open(programs), *rest]
    return on_curve(full.curve, signals, rivals, text)


def _before(part: label_parts.Part) -> str:
    """`, 20.0 ms at 1 user`; empty: not known."""
    if part.before is None:
        return ""
    return f", {numbers.with_unit(part.before.seconds, 's')} at {words.users(part.before.load)}"


def _signals(observed: FullPart) -> list[grading.Signal]:
    part, top = observed.part, words.users(observed.full.top.load)
    name = f"{part.name} of {part.source}" if part.source else part.name
    share, of_waiting = numbers.percent(part.share), numbers.percent(part.of_waiting)
    now, others_now, others_before = (
        numbers.with_unit(value, "s") for value in (part.now_s, part.others_now_s, part.others_before_s)
    )
    limits = f"limits {numbers.percent(LEAST_SHARE)} and {numbers.percent(part.most)}"
    shares = ", ".join(f"{numbers.percent(each)} at {load:g}" for load, each in part.shares)
    apart, mostly = numbers.percent(SAME_SHARE), numbers.percent(waits.MOSTLY)
    return [
        grading.stated(
            "part.share",
            LEAST_SHARE <= part.share <= part.most,
            text=f"{name}: {share} of the {part.what} ({limits})",
            chip=f"{share} of the {part.what}",
            value=part.share,
        ),
        grading.stated(
            "part.same-share",
            part.has_same_share,
            text=f"its share at the levels of load: {shares or 'too few requests'} (limit {apart} apart)",
            chip="the same share at every load",
        ),
        grading.stated(
            "part.grown",
            _is_grown(observed),
            text=f"it takes {now} at {top}{_before(part)}",
            chip=f"{now} under load",
            value=part.now_s,
        ),
        grading.stated(
            "part.others",
            part.others_now_s <= UNLOADED * part.others_before_s,
            text=f"the others take {others_before} and {others_now} (limit {UNLOADED:g} times)",
            chip=f"others {others_now}",
            value=part.others_now_s,
        ),
        grading.stated(
            "part.waiting",
            part.of_waiting >= waits.MOSTLY,
            text=f"{of_waiting} of the waiting at {top} is there (limit {mostly})",
            chip=f"{of_waiting} of the waiting",
            value=part.of_waiting,
        ),
    ]


def _is_grown(observed: FullPart) -> bool | None:
    """Return true for a value that takes several times as long, and for a hill that grows with users."""
    part, before = observed.part, observed.part.before
    if before is None:
        return None
    growth = part.now_s / before.seconds if before.seconds > 0 else math.inf
    if part.source:
        return growth >= GROWN
    return growth >= 1 + AS_MUCH * (observed.full.top.load / before.load - 1)


assess = assessing(ID, TITLE, observe, claim, choose=strongest)
