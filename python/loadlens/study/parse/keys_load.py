"""The keys of what is asked of the service: scenarios, probes, loads, experiments, factors."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from loadlens.model.external_load import DRIVERS, OURS
from loadlens.study.definition import HoldOut, Level
from loadlens.study.parse import feeds, make_load, make_steps
from loadlens.study.parse.keys_testbed import RESET
from loadlens.study.parse.load_grammar import MOST_USERS
from loadlens.study.parse.make_steps import METHODS
from loadlens.study.parse.schema import (
    ANY,
    DASHED,
    MISSING,
    PLAIN,
    At,
    Block,
    Form,
    Key,
    Many,
    Named,
    Schema,
    Shape,
)
from loadlens.study.parse.values import (
    AUTH,
    BOUNDS,
    BURSTS,
    CONNECTION,
    DURATION,
    DURATION_ABOVE_0,
    FIXED_SCALAR,
    HEADER_VALUE,
    JSON_PATH,
    JSON_PATH_VALUE,
    JSON_SENT,
    JSON_WANTED,
    LABEL,
    LATENCY,
    LINE,
    MIX,
    PACE,
    PATH,
    RATE,
    REPLAY,
    STAGES,
    STATUSES,
    STEPS,
    TEXT,
    THINK,
    WARMUP,
    choices,
    counts,
)
from loadlens.study.tree import Leaf, Node, Row, Tree
from loadlens.units import shown

MOST_TRIALS: Final = 1_000
MOST_LEVELS: Final = 1_000

_HEADER_NAME: Final = Form(re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}"), "letters, digits and -")
_EXTRACT_NAME: Final = PLAIN
_ENGINES_HEADERS: Final = dict.fromkeys(
    ("host", "content-length", "connection", "transfer-encoding"), "set by the engine"
)

# ------------------------------------------------------------------------------------------ steps and probes


def _one_request(node: Tree, at: At) -> None:
    """One method, at most one body, and none that the method has no use for."""
    methods = [key for key in METHODS if key in node.items]
    if not methods:
        at.fault(node.line, "a step without a request", "get: /path, or one of " + ", ".join(METHODS[1:]))
    if len(methods) > 1:
        at.fault(node.line, f"one step, several requests: {', '.join(methods)}", "one step for each")
    bodies = [key for key in ("json", "body", "file") if key in node.items]
    if len(bodies) > 1:
        at.fault(node.line, f"one request, several bodies: {', '.join(bodies)}", "keep one of them")


def _one_end(node: Tree, at: At) -> None:
    """Refuse an end for picks without a last record, and a second round for unique records."""
    given = {key: leaf.value for key, leaf in node.items.items() if isinstance(leaf, Leaf)}
    odd = {"unique": "loop", "random": "stop", "user": "stop"}.get(str(given.get("pick")))
    if odd is not None and given.get("end") == odd:
        message = f"pick {given['pick']} and end {odd} contradict each other"
        at.fault_of(node, "end", message, "remove end")


def _one_source(node: Tree, at: At) -> None:
    given = set(node.items)
    if len({"json", "header"} & given) + ("regex" in given and "header" not in given) != 1:
        example = "json: data.id, header: Location, or regex: 'id=(\\d+)'"
        at.fault(node.line, "an extraction has one source", example)
    if "group" in given and "regex" not in given:
        at.fault(node.key_lines["group"], "a group belongs to a regex", "remove group")


def _json_paths(node: Tree, at: At) -> None:
    for key in ("json", "number", "count"):
        paths = node.items.get(key)
        for path in paths.items if isinstance(paths, Tree) else ():
            if not JSON_PATH.fullmatch(path):
                at.fault_of(node, key, f"{shown(path)} is not a path into JSON", "data.id")


CHECK: Final = Block(
    "check",
    make_steps.checks,
    {
        "json": Key(
            Named(JSON_WANTED, "JSON path", ANY),
            "values in the JSON body: `{data.id: 7}`; whole numbers are compared exactly, up to 64 bits",
        ),
        "exists": Key(
            Many(JSON_PATH_VALUE, or_one=True), "JSON paths at which something stands, were it null"
        ),
        "absent": Key(Many(JSON_PATH_VALUE, or_one=True), "JSON paths at which nothing stands"),
        "number": Key(
            Named(BOUNDS, "JSON path", ANY), "numbers in the JSON body: `{price: {above: 0, below: 100}}`"
        ),
        "count": Key(
            Named(BOUNDS, "JSON path", ANY), "elements of arrays, members of objects: `{items: {above: 0}}`"
        ),
        "header": Key(Named(HEADER_VALUE, "header", _HEADER_NAME), "values of headers"),
        "contains": Key(Many(TEXT, or_one=True), "texts that stand in the body"),
        "regex": Key(Many(TEXT, or_one=True), "regular expressions that something in the body matches"),
        "size": Key(BOUNDS, "bytes of the decoded body: `{below: 65536}`"),
        "latency": Key(
            LATENCY,
            "what the response time stays below: `200ms`; counted, but an answer that is late and right "
            "stays a success",
        ),
    },
    "Demands on the answer, each with counts of its own. Judged when the status is as expected.",
    check=_json_paths,
    is_of_case=True,
)

EXTRACT: Final = Block(
    "extraction",
    make_steps.source,
    {
        "json": Key(JSON_PATH_VALUE, "a path into the JSON body: `data.id`"),
        "header": Key(LINE, "a header; with `regex`, where it searches instead of the body"),
        "regex": Key(TEXT, "a regular expression: `'id=(\\d+)'`"),
        "group": Key(
            counts(0, 1000), "which group of the regular expression", "the first, or the whole match"
        ),
    },
    "Where a value is found that later steps use as `{{name}}`.",
    check=_one_source,
    is_of_case=True,
)

_REQUEST_KEYS: Final = {
    **{method: Key(PATH, f"path and query of a {method.upper()} request") for method in METHODS},
    "json": Key(JSON_SENT, "a JSON body; a value that is one `{{...}}` keeps its JSON type"),
    "body": Key(TEXT, "a text body"),
    "file": Key(LINE, "a file sent as it is, seen from the study file"),
    "headers": Key(Named(HEADER_VALUE, "header", _HEADER_NAME, _ENGINES_HEADERS), "request headers"),
    "auth": Key(
        AUTH,
        'credentials from the environment: `{bearer: "{{env TOKEN}}"}`; `none`: not the study\'s',
        "the study's",
    ),
    "expect": Key(Many(STATUSES, or_one=True), "statuses that are as expected", "200 to 399"),
    "check": Key(CHECK, "demands on the answer"),
}

STEP: Final = Block(
    "step",
    make_steps.step,
    {
        "name": Key(LABEL, "its name in results", "the scenario's, when it is the only step"),
        **_REQUEST_KEYS,
        "extract": Key(Named(EXTRACT, "value", _EXTRACT_NAME), "values for later steps"),
        "think": Key(THINK, "pause before the next step", "none"),
    },
    "One request of a scenario.",
    check=_one_request,
    is_of_case=True,
)

MOST_REPEATS: Final = 65_000


@dataclass(frozen=True, slots=True)
class Item:
    """A step, or a group of steps: what has `steps` in it."""

    words: str = "[step](#step) or [group](#group)"

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (STEP, GROUP)

    def block_of(self, node: Node | None) -> Block:
        """Return the block that describes a node."""
        is_group = isinstance(node, Tree) and not {"group", "repeat", "steps"}.isdisjoint(node.items)
        return GROUP if is_group else STEP

    def read(self, node: Node, at: At) -> Any:
        return self.block_of(node).read(node, at)

    def schema(self) -> Schema:
        return {"anyOf": [STEP.schema(), GROUP.schema()]}


STEPS_OF_GROUP: Final = Many(Item(), at_least=1)


@dataclass(frozen=True, slots=True)
class Scenario(Many):
    """Steps; `short_forms` makes a list of what stands alone."""

    @property
    def words(self) -> str:
        return f"list: {self.item.words}; or one step; or its path alone"

    def schema(self) -> Schema:
        return {"anyOf": [PATH.schema(), self.item.schema(), Many.schema(self)]}


SCENARIO: Final = Scenario(Item(), at_least=1)

GROUP: Final = Block(
    "group",
    make_steps.group,
    {
        "group": Key(LABEL, "its name", "it only repeats"),
        "repeat": Key(counts(1, MOST_REPEATS), "how many times in a row", "1"),
        "steps": Key(STEPS_OF_GROUP, "its steps; groups may stand among them", required=True),
    },
    "Steps of a scenario that belong together, or are repeated. A repeated step is one step in the results.",
    is_of_case=True,
)

FEED: Final = Block(
    "feed",
    feeds.feed,
    {
        "file": Key(LINE, "the file of records, seen from the study file", required=True),
        "format": Key(choices("csv", "tsv", "jsonl"), "how it is written", "by the file's ending"),
        "pick": Key(
            choices("shared", "unique", "random", "user"),
            "the record of an iteration: the next one for all users; the next one, none twice in the run; "
            "any one; the one with the user's number, always",
            "shared",
        ),
        "end": Key(
            choices("loop", "stop"),
            "after the last record: begin again, or end the load that wants another; `unique` always stops",
            "loop",
        ),
    },
    "A file of records that requests take values from, as `{{FEED.column}}`; one for each iteration.",
    check=_one_end,
    is_of_case=True,
)

PROBE: Final = Block(
    "probe",
    make_steps.probe,
    {
        "name": Key(LABEL, "the name of its step in results", "the probe's"),
        **_REQUEST_KEYS,
        "rate": Key(RATE, "requests per second", "20/s"),
        "arrivals": Key(choices("constant", "poisson"), "law of the gaps between due times", "poisson"),
        "connection": Key(CONNECTION, "how connections are used; a kept one sticks to one worker", "new"),
        "timeout": Key(DURATION_ABOVE_0, "from issue to the last byte", "30s"),
        "max_in_flight": Key(counts(1, MOST_USERS), "requests under way at once; more wait", "1000"),
    },
    "A thin open stream alongside the load, which shows the effect of the load on other requests.",
    check=_one_request,
    is_of_case=True,
)

# ------------------------------------------------------------------------------------------------ loads

_CLOSED_ONLY: Final = ("think", "pace", "iterations")
_OPEN_ONLY: Final = ("arrivals", "max_in_flight", "overflow")
SHAPES: Final = ("stages", "steps", "bursts", "replay")


def _one_workload(node: Tree, at: At) -> None:
    """Closed or open, at most one shape, with an end; what changes a load for `quick` may lack things."""
    given = set(node.items)
    is_whole = not at.key.startswith("quick.")
    shapes = [shape for shape in SHAPES if shape in given]
    if {"users", "rate"} <= given:
        at.fault(node.line, "a load is closed (users) or open (rate), not both", "remove one of the two")
    if len(shapes) > 1 or (shapes and "ramp" in given):
        several = ", ".join([*shapes, *(["ramp"] if "ramp" in given else [])])
        at.fault(node.line, f"several shapes of one load: {several}", "one of them; a ramp is a stage")
    if {"think", "pace"} <= given:
        message = "a think time and a pace: each says when the next iteration begins"
        at.fault(node.key_lines["pace"], message, "one of the two")
    if is_whole and not shapes and not {"users", "rate"} & given:
        at.fault(node.line, "a load needs users or a rate", "users: 10, or rate: 50/s")
    if is_whole and not {"duration", "iterations", "requests", "stages", "steps", "replay"} & given:
        at.fault(node.line, "a load needs an end", "duration: 30s, iterations: 100 or requests: 10k")
    for kind, key, others in (("open", "rate", _CLOSED_ONLY), ("closed", "users", _OPEN_ONLY)):
        odd = [other for other in others if other in given]
        if key in given and odd and not {"users", "rate"} <= given:
            message = f"{', '.join(odd)} means nothing to a load that is {kind}"
            at.fault(node.key_lines[odd[0]], message, f"remove {odd[0]}")


@dataclass(frozen=True, slots=True)
class Varied:
    """A value of a load, or a list of them, which `short_forms` makes a factor before it is read."""

    item: Shape

    @property
    def words(self) -> str:
        return self.item.words

    def read(self, node: Node, at: At) -> Any:
        return self.item.read(node, at)

    def schema(self) -> Schema:
        levels = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/text"}}
        return {"anyOf": [self.item.schema(), levels]}


_LOAD_KEYS: Final = {
    "users": Key(counts(1, MOST_USERS), "closed: users who wait for the answer, think, and ask again"),
    "think": Key(THINK, "closed: pause of a user between iterations", "none"),
    "pace": Key(
        PACE,
        "closed: from one iteration's due time to the next; a late one counts from when it was due",
    ),
    "iterations": Key(counts(), "closed: each user stops after so many iterations"),
    "rate": Key(RATE, "open: iterations per second, whatever the service does"),
    "arrivals": Key(choices("constant", "poisson"), "open: law of the gaps between due times", "constant"),
    "max_in_flight": Key(counts(1, MOST_USERS), "open: iterations under way at once", "1000"),
    "overflow": Key(choices("queue", "drop"), "open: what happens to those beyond", "queue"),
    "ramp": Key(DURATION, "from nothing to `users` or `rate` within this time, evenly", "0s"),
    "stages": Key(
        STAGES,
        "ramps, each to its level, from `users`, `rate` or 0 on: `[30s:100, 1m:100, 30s:0]` are users, "
        "with `/s` a rate; `{duration: 30s, target: 100}` in the list, as k6 has it, is `30s:100`",
    ),
    "steps": Key(STEPS, "levels, each held: `[30s:100/s, 30s:200/s]`"),
    "bursts": Key(BURSTS, "levels held in turn, again and again: `[1s:500/s, 9s:20/s]`"),
    "replay": Key(REPLAY, "open: due times from a file seen from the study file, one a line, rising"),
    "requests": Key(counts(), "the load ends after so many requests in all"),
    "duration": Key(
        DURATION_ABOVE_0, "the measured part", "20s; what stages or steps take, less the warm-up"
    ),
    "warmup": Key(
        WARMUP,
        "load before the measured part; `auto` is 5 s, or as long as earlier trials of the case took to "
        "settle, at most 60 s; a ramp, stages, steps, bursts and a replay begin with it",
        "auto; none when it ends by a number or has a shape",
    ),
    "connections": Key(
        counts(1, MOST_USERS), "a pool of so many connections for all; waiting counts", "none"
    ),
    "connection": Key(CONNECTION, "when a connection ends", "keep"),
    "timeout": Key(DURATION_ABOVE_0, "from issue to the last byte", "30s"),
    "cookies": Key(
        choices("off", "iteration", "keep"),
        "how long a user keeps the service's cookies; `keep`: as long as it is there (closed)",
        "iteration",
    ),
    "driver": Key(
        choices(OURS, *DRIVERS),
        "what makes the load: our engine, or another program, installed on the machine, that asks one "
        "request over and over for `users`, without a warm-up; as a factor (`driver: $driver`) one case "
        "runs under several",
        OURS,
    ),
}

LOAD: Final = Block(
    "load",
    make_load.load,
    {
        name: key if name in SHAPES else replace(key, shape=Varied(key.shape))
        for name, key in _LOAD_KEYS.items()
    },
    "Closed (`users`) or open (`rate`), steady or in a shape: `stages`, `steps`, `bursts` or a `replay`. "
    "It ends by `duration`, `iterations`, `requests` or its shape, the first one. A list in place of one "
    "value, as in `users: [1, 4, 16]`, is a factor of that name.",
    check=_one_workload,
    is_of_case=True,
)


# ------------------------------------------------------------------------------------------- factors, levels


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of a factor: a list of values, or named levels that bind several params."""

    what: str = "levels"

    @property
    def words(self) -> str:
        return "list of values, or level -> {param: value}"

    def read(self, node: Node, at: At) -> Any:
        if isinstance(node, Leaf):
            return at.fault(node.line, f"wanted a list of levels, got {shown(node.value)}", "[1, 2, 4]")
        if not node.items:
            return at.fault(node.line, "a factor without levels", "list some, or remove the factor")
        if len(node.items) > MOST_LEVELS:
            return at.fault(node.line, f"{len(node.items)} levels, at most {MOST_LEVELS}", "fewer levels")
        if isinstance(node, Row):
            return self._listed(node, at.name, at)
        return self._named(node, at.name, at)

    def _listed(self, node: Row, factor: str, at: At) -> tuple[Level, ...]:
        levels: dict[str, Level] = {}
        for index, item in enumerate(node.items):
            below = at.item(index)
            value = FIXED_SCALAR.read(item, below)
            if value is MISSING or not isinstance(item, Leaf):
                continue
            if item.written in levels:
                below.fault(item.line, f"level {shown(item.written)} stands twice", "keep one of them")
            elif not item.written or len(item.written) > 80 or not item.written.isprintable():
                hint = "name the levels: {short-name: {param: value}}"
                below.fault(item.line, f"{shown(item.written)} cannot name a level", hint)
            else:
                levels[item.written] = Level(item.written, below.place(item.line), {factor: value})
        return tuple(levels.values())

    def _named(self, node: Tree, factor: str, at: At) -> tuple[Level, ...]:
        read = Named(Named(FIXED_SCALAR, "param", PLAIN, at_least=1), "level", ANY).read(node, at)
        return tuple(
            # The factor's own name gives the level's, unless the level binds it to something else.
            Level(name, at.below(name).place(node.key_lines[name]), {factor: name, **binds})
            for name, binds in read.items()
        )

    def schema(self) -> Schema:
        binds: Schema = {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"$ref": "#/$defs/text"},
        }
        return {
            "anyOf": [
                {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/text"}},
                {"type": "object", "minProperties": 1, "additionalProperties": binds},
            ]
        }


@dataclass(frozen=True, slots=True)
class HeldOutLevels:
    """Cases that are predicted before they are run: levels, and where in the other factors."""

    @property
    def words(self) -> str:
        return "factor -> levels, and `where: {factor: levels}`"

    def read(self, node: Node, at: At) -> Any:
        if not isinstance(node, Tree):
            hint = "{hash: [threads], where: {users: [5]}}"
            return at.fault(node.line, f"wanted factors and their levels, got {shown(None)}", hint)
        own, below, shape = node.without("where"), at.of(node, "where"), Named(Levels(), "factor", PLAIN)
        factors = shape.read(own, at)
        restricted = shape.read(node.items["where"], below) if "where" in node.items else {}
        if restricted is MISSING:
            return MISSING
        if restricted and not own.items:
            return below.fault(
                node.line, "`where` without a level to hold out", "{hash: [threads], where: ...}"
            )
        return HoldOut(at.place(node.line), factors, restricted)

    def schema(self) -> Schema:
        levels = Levels().schema()
        where: Schema = {"type": "object", "additionalProperties": levels}
        return {"type": "object", "properties": {"where": where}, "additionalProperties": levels}


# ------------------------------------------------------------------------------------------------ experiments

FACTORS: Final = Named(Levels(), "factor", PLAIN)
PROBES: Final = Named(PROBE, "probe", DASHED)
FRESH: Final = choices("trial", "block", "run")
TRIALS: Final = counts(1, MOST_TRIALS)
NEEDS_CORES: Final = counts(1, 100_000)
STACKS: Final = choices("on", "off")

EXPERIMENT: Final = Block(
    "experiment",
    dict,
    {
        "mix": Key(
            MIX, "the scenario, or scenarios with weights; drawn for each iteration", "the only scenario"
        ),
        "load": Key(LOAD, "the workload"),
        "factors": Key(FACTORS, "levels to be crossed; a named level binds several params", "one case"),
        "hold_out": Key(HeldOutLevels(), "cases that are predicted, the prediction recorded, then run"),
        "probes": Key(PROBES, "instead of the study's; `{}`: none"),
        "trials": Key(TRIALS, "instead of the study's"),
        "fresh": Key(FRESH, "instead of the study's"),
        "reset": Key(RESET, "instead of the study's"),
        "needs_cores": Key(NEEDS_CORES, "cores that a case needs: `$workers`; instead of the study's"),
        "stacks": Key(STACKS, "instead of the study's"),
    },
    "One experiment: a mix of scenarios under a load, for every combination of its factors.",
)
