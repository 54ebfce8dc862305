"""The dashboard of the published report's figures 5 and 6, built with Grafana's Foundation SDK.

pip install -r requirements.txt
python dashboard.py > dashboard.json
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from grafana_foundation_sdk.builders.common import VizLegendOptions, VizTooltipOptions
from grafana_foundation_sdk.builders.dashboard import Dashboard, Row
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
REQUESTS = "http_server_requests_seconds"
LENGTH = "[$__rate_interval]"


@dataclass(frozen=True)
class Graph:
    """One panel: a title, a unit of Grafana's, and what each line is called -> its expression."""

    title: str
    unit: str
    lines: dict[str, str]


ROWS: dict[str, tuple[Graph, ...]] = {
    "Requests": (
        Graph(
            "Answers",
            "reqps",
            {"{{uri}} {{status}}": f"sum by (uri, status) (rate({REQUESTS}_count{LENGTH}))"},
        ),
        Graph(
            "Mean time of an answer",
            "s",
            {
                "{{uri}}": f"sum by (uri) (rate({REQUESTS}_sum{LENGTH}))"
                f" / sum by (uri) (rate({REQUESTS}_count{LENGTH}))"
            },
        ),
        Graph(
            "Request threads",
            "short",
            {"busy": "tomcat_threads_busy_threads", "at most": "tomcat_threads_config_max_threads"},
        ),
        Graph(
            "Database connections",
            "short",
            {
                "in use": "hikaricp_connections_active",
                "threads that wait for one": "hikaricp_connections_pending",
                "at most": "hikaricp_connections_max",
            },
        ),
    ),
    "JVM memory": (
        Graph(
            "Heap",
            "bytes",
            {
                "used": 'sum(jvm_memory_used_bytes{area="heap"})',
                "committed": 'sum(jvm_memory_committed_bytes{area="heap"})',
                "at most": "jvm_gc_max_data_size_bytes",
            },
        ),
        Graph("Heap by pool", "bytes", {"{{id}}": 'jvm_memory_used_bytes{area="heap"}'}),
        Graph("Outside the heap", "bytes", {"{{id}}": 'jvm_memory_used_bytes{area="nonheap"}'}),
        Graph(
            "Stopped by the collector",
            "percentunit",
            {"{{action}}": f"rate(jvm_gc_pause_seconds_sum{LENGTH})"},
        ),
    ),
    "JVM": (
        Graph("CPU", "percentunit", {"process": "process_cpu_usage", "machine": "system_cpu_usage"}),
        Graph(
            "Threads",
            "short",
            {"live": "jvm_threads_live_threads", "{{state}}": "jvm_threads_states_threads"},
        ),
        Graph(
            "Compiling",
            "percentunit",
            {"{{compiler}}": f"rate(jvm_compilation_time_ms_total{LENGTH}) / 1000"},
        ),
        Graph("Open files", "short", {"open": "process_files_open_files"}),
    ),
}


def panel(graph: Graph) -> Panel:
    """A time series, two to a row."""
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
    """The dashboard as Grafana provisions it."""
    made = (
        Dashboard("sso")
        .uid("sso")
        .tags(["loadlens"])
        .refresh("5s")
        .time("now-15m", "now")
        .timezone("browser")
    )
    for title, graphs in ROWS.items():
        made = made.with_row(Row(title))
        for graph in graphs:
            made = made.with_panel(panel(graph))
    board = json.loads(JSONEncoder().encode(made.build()))
    del board["style"]  # written by the SDK and unknown to Grafana's types
    return json.dumps(board, sort_keys=True, indent=2)


if __name__ == "__main__":
    print(dashboard())
