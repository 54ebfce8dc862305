"""The dashboard of a load, and of the service under it, in Prometheus; built with Grafana's Foundation SDK.

pip install -r ../../../studies/sso/grafana/requirements.txt
python dashboard.py > dashboard.json
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from grafana_foundation_sdk.builders.common import VizLegendOptions, VizTooltipOptions
from grafana_foundation_sdk.builders.dashboard import Dashboard, QueryVariable
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.timeseries import Panel
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    TooltipDisplayMode,
)
from grafana_foundation_sdk.models.dashboard import DataSourceRef

SOURCE = DataSourceRef(type_val="prometheus", uid="prometheus")
RUN = 'loadlens_run=~"$run"'
LENGTH = "[$__rate_interval]"
OK = f'{{{RUN},error_type=""}}'


@dataclass(frozen=True)
class Graph:
    """One panel: a title, a unit of Grafana's, and the name of each line -> its expression."""

    title: str
    unit: str
    lines: dict[str, str]


def rate(metric: str, by: str = "") -> str:
    """Return a rate per second, summed over cases, phases and steps."""
    return f"sum{by} (rate({metric}{{{RUN}}}{LENGTH}))"


def quantile(metric: str, q: float, which: str = OK) -> str:
    """Return a quantile in seconds, of successes by default."""
    return f"histogram_quantile({q}, sum by (le) (rate({metric}_seconds_bucket{which}{LENGTH})))"


def reading(monitor: str, metric: str, more: str = "") -> str:
    """Return what a monitor read, without the programs of the lab itself, whose names are in parentheses."""
    names = f'loadlens_monitor="{monitor}",loadlens_metric=~"{metric}"'
    return f'loadlens_reading{{{RUN},{names},service!~"[(].*"{more}}}'


def growth(monitor: str, metric: str, more: str = "") -> str:
    """Return what grew most per second; a counter of seconds grows by shares of one core."""
    return f"topk(8, rate({reading(monitor, metric, more)}{LENGTH}))"


GRAPHS = (
    Graph(
        "Due, sent, ended",
        "reqps",
        {
            "due": rate("loadlens_requests_due_total"),
            "sent": rate("loadlens_requests_issued_total"),
            "ended": rate("loadlens_requests_ended_total"),
        },
    ),
    Graph(
        "Response time of successes, from due",
        "s",
        {f"p{q * 100:g}": quantile("loadlens_response_duration", q) for q in (0.5, 0.95, 0.99)},
    ),
    Graph(
        "Not as expected",
        "reqps",
        {
            "{{error_type}}": "sum by (error_type) "
            f'(rate(loadlens_requests_ended_total{{{RUN},error_type!=""}}{LENGTH}))'
        },
    ),
    Graph(
        "Service time of successes, from sent",
        "s",
        {f"p{q * 100:g}": quantile("http_client_request_duration", q) for q in (0.5, 0.95, 0.99)},
    ),
    Graph(
        "In flight and waiting",
        "short",
        {
            "in flight": f"sum(loadlens_requests_in_flight{{{RUN}}})",
            "waiting": f"sum(loadlens_requests_waiting{{{RUN}}})",
        },
    ),
    Graph(
        "Responses",
        "reqps",
        {
            "{{http_response_status_code}}": rate(
                "loadlens_responses_total", " by (http_response_status_code)"
            )
        },
    ),
    Graph(
        "Generator: lateness",
        "s",
        {"p99": quantile("loadlens_lag", 0.99, f"{{{RUN}}}")},
    ),
    Graph(
        "Generator: busy share of its busiest thread",
        "percentunit",
        {"busy": f"max(loadlens_generator_busy_ratio{{{RUN}}})"},
    ),
    Graph(
        "Service: CPU per thread, of one core",
        "percentunit",
        {"{{service}} {{thread}} {{tid}}": growth("proc", "thread_run_s")},
    ),
    Graph(
        "Service: threads that wait for a CPU, share of the time",
        "percentunit",
        {"{{service}} {{thread}} {{tid}}": growth("proc", "thread_runq_wait_s")},
    ),
    Graph("Service: accept queue", "short", {"{{service}} {{port}}": reading("tcp", "accept_queue")}),
    Graph(
        "Service: resident memory",
        "bytes",
        {"{{service}} {{pid}}": f"topk(8, {reading('proc', 'rss_bytes')})"},
    ),
    Graph(
        "Service: what it exports, as read",
        "short",
        {"{{service}} {{loadlens_metric}}": f"topk(8, {reading('scrape', '$metric')})"},
    ),
    Graph(
        "Machine: CPU, in cores",
        "short",
        {"{{loadlens_metric}}": growth("host", "cpu_.*_s", ',cpu="all"')},
    ),
)


def panel(graph: Graph) -> Panel:
    """Return a time series, two to a row."""
    legend = VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
    tooltip = VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING)
    made = Panel().title(graph.title).unit(graph.unit).min(0).datasource(SOURCE).span(12).height(8)
    made = made.legend(legend.show_legend(True).calcs([])).tooltip(tooltip)
    for letter, (name, expression) in zip("ABC", graph.lines.items(), strict=False):
        made = made.with_target(
            Dataquery().expr(expression).legend_format(name).ref_id(letter).datasource(SOURCE)
        )
    return made


def dashboard() -> str:
    """Return the dashboard as Grafana provisions it."""
    run = (
        QueryVariable("run")
        .label("run")
        .datasource(SOURCE)
        .query("label_values(loadlens_requests_due_total, loadlens_run)")
        .include_all(True)
        .multi(True)
    )
    metric = (
        QueryVariable("metric")
        .label("metric of the service")
        .datasource(SOURCE)
        .query('label_values(loadlens_reading{loadlens_monitor="scrape"}, loadlens_metric)')
        .include_all(True)
        .multi(True)
    )
    made = (
        Dashboard("Loadlens")
        .uid("loadlens")
        .tags(["loadlens"])
        .refresh("5s")
        .time("now-15m", "now")
        .timezone("browser")
        .with_variable(run)
        .with_variable(metric)
    )
    for graph in GRAPHS:
        made = made.with_panel(panel(graph))
    board = json.loads(JSONEncoder().encode(made.build()))
    del board["style"]  # like the rest here, written by the SDK and unknown to Grafana's types
    for variable in board["templating"]["list"]:
        for key in ("auto", "auto_count", "auto_min", "id"):
            variable.pop(key, None)
    return json.dumps(board, sort_keys=True, indent=2)


if __name__ == "__main__":
    print(dashboard())
