"""The keys at the top of a study file, and those that speak of its results."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, get_args

from loadlens.model.study import TAKES, ChartKind, Window
from loadlens.model.workload import KEPT_ROWS
from loadlens.study.parse import results
from loadlens.study.parse.keys_load import (
    EXPERIMENT,
    FEED,
    FRESH,
    NEEDS_CORES,
    PROBES,
    SCENARIO,
    STACKS,
    TRIALS,
)
from loadlens.study.parse.keys_testbed import RESET, SERVICE, TLS
from loadlens.study.parse.results import CLAIM_KINDS
from loadlens.study.parse.schema import (
    ANY,
    DASHED,
    PLAIN,
    At,
    Block,
    Key,
    Label,
    Many,
    Named,
    OrText,
    Short,
)
from loadlens.study.parse.short_forms import OF_ONLY, PROBE_PATH, PROBE_PER_S, QUICK_DURATION
from loadlens.study.parse.values import (
    AUTH,
    COMPARED_METRIC,
    ENTRY,
    FIXED_COUNT,
    FIXED_EDGE,
    FIXED_KEPT_ROWS,
    FIXED_LINE,
    FIXED_NAME_OF_SECRET,
    FIXED_NUMBER,
    FIXED_PROMQL,
    FIXED_SCALAR,
    FIXED_SEED,
    FIXED_STEP,
    FIXED_TEXT,
    FIXED_TOLERANCE,
    FIXED_TRUTH,
    FIXED_WEIGHT,
    METRIC,
    OBJECTIVE_TEXT,
    SCHEMA_VERSION,
    STUDY_NAME,
    fixed_choice,
)
from loadlens.study.tree import Tree

# What each kind of claim needs, and what it may have besides metric, in, step, where, published, within.
_CLAIM_NEEDS: Final = {
    "ratio": ("of", "to"),
    "rises": ("over",),
    "order": ("across", "is"),
    "same": ("across",),
}
_CLAIM_EXAMPLE: Final = {
    "ratio": "of: {users: 20}, to: {users: 5}",
    "rises": "over: users",
    "order": "across: workers, is: [4, 2, 1]",
    "same": "across: workers",
}


def _one_bound(node: Tree, at: At) -> None:
    if not {"below", "above"} & set(node.items):
        at.fault(node.line, "an objective without a bound", "below: 50ms, or above: 100/s")


def _one_claim(node: Tree, at: At) -> None:
    """Exactly one kind, with what it needs and nothing that belongs to another."""
    kinds = [kind for kind in CLAIM_KINDS if kind in node.items]
    if len(kinds) != 1:
        given = ", ".join(kinds) or "none"
        at.fault(
            node.line, f"a claim is one of {', '.join(CLAIM_KINDS)}; got {given}", "ratio: response_time.mean"
        )
        return
    kind = kinds[0]
    for needed in _CLAIM_NEEDS[kind]:
        if needed not in node.items:
            at.fault(node.line, f"claim {kind} without {needed}", _CLAIM_EXAMPLE[kind])
    for other in sorted({key for needs in _CLAIM_NEEDS.values() for key in needs} - set(_CLAIM_NEEDS[kind])):
        if other in node.items:
            at.fault_of(node, other, f"{other} means nothing to claim {kind}", "remove it")
    if kind == "ratio" and "published" not in node.items:
        at.fault(node.line, "claim ratio without the published number", "published: 4.5, within: 30%")


def _window_has_an_edge(node: Tree, at: At) -> None:
    if not {"from", "to"} & set(node.items):
        at.fault(node.line, "a window without an edge", "from: 5s, or to: 35s, or both")


_LEVEL_OF: Final = Named(Label(), "factor", PLAIN)

OBJECTIVE: Final = Block(
    "objective",
    results.objective,
    {
        "metric": Key(METRIC, "what is bounded: `response_time.p99`, `failed.share`", required=True),
        "step": Key(FIXED_LINE, "of one step", "of all"),
        "below": Key(FIXED_SCALAR, "the metric must stay below: `50ms`, `1%`"),
        "above": Key(FIXED_SCALAR, "the metric must stay above: `100/s`"),
    },
    "An objective of one step, or of a metric by its full name.",
    check=_one_bound,
)

PUBLISHED: Final = Block(
    "published figures",
    results.published,
    {
        "file": Key(
            FIXED_TEXT,
            "CSV: experiment, a column a factor, step, metric, side (client, server), value, unit, note",
            required=True,
        ),
        "cores": Key(FIXED_COUNT, "cores of the published machine"),
    },
    "Published figures; the report shows ours next to them.",
)

CLAIM: Final = Block(
    "claim",
    results.claim,
    {
        "ratio": Key(METRIC, "metric at `of` divided by metric at `to`"),
        "rises": Key(METRIC, "the metric rises over the levels of a factor, in study order"),
        "order": Key(METRIC, "the levels of a factor sorted by the metric, smallest first, are `is`"),
        "same": Key(METRIC, "the metric is the same across the levels of a factor"),
        "in": Key(FIXED_LINE, "experiment", "the only one", field="experiment"),
        "step": Key(FIXED_LINE, "of one step", "of all"),
        "where": Key(_LEVEL_OF, "the other factors: `{workers: 1}`"),
        "of": Key(_LEVEL_OF, "ratio: levels of the numerator"),
        "to": Key(_LEVEL_OF, "ratio: levels of the denominator"),
        "over": Key(FIXED_LINE, "rises: the factor"),
        "across": Key(FIXED_LINE, "order, same: the factor"),
        "is": Key(Many(Label(), at_least=2), "order: the levels, smallest metric first", field="expected"),
        "published": Key(FIXED_NUMBER, "ratio: the published number"),
        "within": Key(FIXED_TOLERANCE, "relative tolerance: `30%`"),
    },
    "A published statement about shape, which the record can uphold or contradict.",
    check=_one_claim,
)

ORDER: Final = Block(
    "order",
    dict,
    {
        "by": Key(
            fixed_choice("blocks", "listed"),
            "`blocks`: every case once a block, in random order; `listed`: as written, as in old runs",
            "blocks",
            field="order_by",
        ),
        "seed": Key(FIXED_SEED, "every random draw of the study follows from it", "1"),
    },
    "The order of the trials.",
)

COMPARE: Final = Block(
    "comparison",
    results.compared,
    {
        "metric": Key(
            COMPARED_METRIC,
            "what is put side by side",
            required=True,
        ),
        "in": Key(FIXED_LINE, "experiment", "the only one", field="experiment"),
        "step": Key(FIXED_LINE, "of one step", "of all"),
    },
    "One figure of every case of an experiment, side by side with the published ones; a figure that the "
    "cases' table does not have is added to it.",
)

WINDOW: Final = Block(
    "window",
    Window,
    {
        "from": Key(FIXED_EDGE, "where it begins: `5s`, or `25%` of the measured part", "0s", field="begin"),
        "to": Key(FIXED_EDGE, "where it ends: `35s` or `75%`", "the end of the measured part", field="end"),
    },
    "The part of each trial that figures are taken from, counted from where the measured part begins. The "
    "accounting stays that of whole trials.",
    check=_window_has_an_edge,
)

QUERY: Final = Block(
    "query",
    results.query,
    {
        "expr": Key(
            FIXED_PROMQL,
            "PromQL; `$__range` is the length of the part: `increase(a[$__range])`",
            required=True,
        ),
        "unit": Key(FIXED_LINE, "the unit of its value: `s`, `requests/s`", "none"),
        "take": Key(
            fixed_choice(*TAKES),
            "which of its values over the part is its figure: the one at the end, their mean, the largest or "
            "the smallest",
            "last with `$__range`, otherwise mean",
        ),
        "step": Key(FIXED_STEP, "time between two values over the part", "1s"),
    },
    "A PromQL expression over each trial's measured part: a row in a table of the case, a line over time. "
    "A service with `use: prometheus` answers it; without one, our own evaluation of what our scrapes "
    "recorded. Record and report say which.",
)

REPORT: Final = Block(
    "report",
    results.report,
    {
        "charts": Key(
            Many(fixed_choice(*get_args(ChartKind))), "charts to show, in this order", "all that apply"
        ),
        "compare": Key(
            Many(COMPARE), "figures of an experiment's cases side by side, one chart each", "none"
        ),
        "window": Key(
            WINDOW, "the part of each trial that figures are taken from", "the whole measured part"
        ),
        "promql": Key(
            Named(Short(QUERY, "expr"), "query", ANY),
            "expressions over the metrics of services with a `scrape`: "
            "`{requests: increase(a_total[$__range])}`",
        ),
    },
    "What the report shows besides what it always shows.",
    refused={
        "failed_as": "compare: [{metric: ab_failed.share}]",
    },
)

# Keys of the only experiment may stand at the top of the file, and of `quick`.
_ONLY: Final = {
    name: replace(key, doc=f"{key.doc}; of a study without `experiments`")
    for name, key in EXPERIMENT.keys.items()
    if name in OF_ONLY
}

QUICK: Final = Block(
    "quick",
    dict,
    {
        "load": _ONLY["load"],
        "factors": _ONLY["factors"],
        "trials": Key(TRIALS, "trials of every case"),
        "params": Key(Named(FIXED_SCALAR, "param", PLAIN), "params with other values"),
        "skip": Key(Many(FIXED_LINE, or_one=True), "experiments left out"),
        "experiments": Key(
            Named(EXPERIMENT, "experiment"),
            "changes; `load` key by key, everything else replaces: `factors`, `hold_out: {}`",
        ),
    },
    "What `--quick` changes; the report lists every difference.",
)

FLEET: Final = Block(
    "fleet",
    results.fleet,
    {
        "nodes": Key(
            FIXED_COUNT, "how many make the load, the first by name", "as many as there are weights"
        ),
        "weights": Key(
            Many(FIXED_WEIGHT, at_least=1),
            "how large a part each makes, in the order of their names: `[1, 3, 5]`",
            "equal parts",
        ),
    },
    "Machines that divide every load of the study; `--fleet` says where they are.",
    example="nodes: 4",
)

STUDY: Final = Block(
    "study",
    dict,
    {
        "schema": Key(SCHEMA_VERSION, "version of the format", "1"),
        "study": Key(STUDY_NAME, "its name", "that of the file, or of the folder of a `study.yaml`"),
        "question": Key(FIXED_LINE, "what it asks, in one sentence", "how the entry responds to load"),
        "params": Key(
            Named(FIXED_SCALAR, "param", PLAIN),
            "default of every `$name`; factor levels, `--set` and quick override",
        ),
        "services": Key(Named(SERVICE, "service", PLAIN), "what is started"),
        "entry": Key(
            ENTRY,
            "where the load goes; with a URL nothing is started. The path of a URL is that of the only step "
            "when there are no scenarios",
            required=True,
        ),
        "tls": Key(TLS, "how connections to the entry are secured", "by an https URL with its defaults"),
        "fresh": Key(FRESH, "how long processes live: one trial, one block of trials, or the run", "trial"),
        "reset": Key(RESET, "how the data are put back", "not at all"),
        "scenarios": Key(
            Named(SCENARIO, "scenario", DASHED, at_least=1),
            "what users do, step by step",
            "a GET of the entry",
        ),
        **_ONLY,
        "auth": Key(
            AUTH,
            "credentials of every step and probe, from the environment: "
            '`{basic: {user: alice, password: "{{env PASSWORD}}"}}`',
            "none",
        ),
        "probes": Key(
            PROBES,
            "thin streams alongside every load",
            f"none; with a list of users or rates at the top, {PROBE_PER_S:g} requests/s for `{PROBE_PATH}`, "
            "which does not exist",
        ),
        "feeds": Key(
            Named(FEED, "feed", PLAIN), "files of records that requests take values from: `{{FEED.column}}`"
        ),
        "trials": Key(TRIALS, "how often every case is run", "3"),
        "order": Key(ORDER, "the order of the trials"),
        "needs_cores": Key(
            NEEDS_CORES, "cores that a case needs; with fewer it is shown, not judged", "not said"
        ),
        "stacks": Key(
            STACKS,
            "`on`: sample the threads of the services, which names the line of code that they are at; in one "
            "further trial at the highest level of an experiment and one at its lightest, without figures",
            "off",
        ),
        "experiments": Key(
            Named(EXPERIMENT, "experiment", DASHED, at_least=1),
            "what is run",
            "one, of the `load` at the top",
        ),
        "objectives": Key(
            Many(OrText(OBJECTIVE, OBJECTIVE_TEXT), or_one=True),
            "bounds that must hold in every case; missed: exit code 99",
        ),
        "published": Key(PUBLISHED, "published figures"),
        "claims": Key(Many(CLAIM), "published statements about shape"),
        "report": Key(REPORT, "what the report shows"),
        "quick": Key(
            QUICK,
            "what `--quick` changes",
            f"nothing; with a `load` at the top that has no end of its own, 1 trial of {QUICK_DURATION}",
        ),
        "samples": Key(
            FIXED_KEPT_ROWS,
            "rows of requests that each trial of a record keeps of each stream, and rows of connections; "
            "beyond the number half of the rows go, then half of the rest, and so on. Counts and histograms "
            "stay exact",
            f"{KEPT_ROWS:,}",
        ),
        "traceparent": Key(
            FIXED_TRUTH,
            "send a W3C trace context with each request of scenarios and probes; the record leads from a "
            "request to its trace",
            "false",
        ),
        "hide": Key(
            Many(FIXED_NAME_OF_SECRET, or_one=True),
            "names of headers, query fields, body fields, variables or options whose values no record, log "
            "or report keeps: `[sig, X-Partner]`",
            "those that look like credentials: `Authorization`, `Cookie`, names with `password`, `secret`, "
            "`token`, `api_key` and the like",
        ),
        "fleet": Key(
            FLEET,
            "machines that make the load together, wherever `--fleet` finds them",
            "as many as `--fleet` finds; without it this machine",
        ),
        "notes": Key(Many(FIXED_TEXT), "remarks that the report repeats: what was inferred, what is unknown"),
    },
    "A whole study.",
)
