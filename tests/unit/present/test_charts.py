"""Charts: each failure mode that makes a chart lie, and that it is handled; specs pass Altair's schema."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest

from loadlens.model.report import Chart
from loadlens.present import charts, tokens, words
from loadlens.present.charts import columns, parts, timeline
from tests.unit.report.write import sample_charts as sample

ALL = sample.all_charts()


def with_rows(chart: Chart, dataset: str, rows: tuple[dict[str, Any], ...], **other: Any) -> Chart:
    return replace(chart, datasets={**chart.datasets, dataset: rows}, **other)


def texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return ["".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text")]


def layers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    own = spec.get("layer", [])
    return [
        *own,
        *(layer for part in ("vconcat", "concat") for panel in spec.get(part, []) for layer in layers(panel)),
    ]


@pytest.mark.parametrize("chart", ALL, ids=lambda c: c.kind)
def test_every_kind_passes_the_schema_of_altair(chart: Chart) -> None:
    import altair

    def without_rows(part: Any) -> Any:
        """The schema walks every row of inline data, and slowly."""
        if isinstance(part, dict):
            return {
                k: [] if k == "values" and v and isinstance(v[0], dict) else without_rows(v)
                for k, v in part.items()
            }
        return [without_rows(v) for v in part] if isinstance(part, list) else part

    altair.Chart.from_dict(without_rows(charts.spec(chart)))


@pytest.mark.parametrize("chart", ALL, ids=lambda c: c.kind)
def test_a_static_chart_has_token_colours_only_so_that_css_can_recolour_it(chart: Chart) -> None:
    svg = charts.svg(chart)

    used = {colour.upper() for colour in re.findall(r'(?:fill|stroke)="(#[0-9A-Fa-f]{3,8})"', svg)}
    assert used <= set(tokens.light_to_dark())
    assert not re.search(r'(fill|stroke)="(rgb|hsl|url)', svg)


@pytest.mark.parametrize("chart", ALL, ids=lambda c: c.kind)
def test_specs_hold_no_colour_but_the_halo_of_the_page(chart: Chart) -> None:
    found = set(re.findall(r"#[0-9A-Fa-f]{6}", json.dumps(charts.draw(chart).spec)))

    assert found <= {tokens.PAGE.light}


def test_every_chart_kind_of_the_model_can_be_drawn_and_has_its_columns() -> None:
    from typing import get_args

    from loadlens.model.study import ChartKind

    assert set(columns.KINDS) == set(get_args(ChartKind)) == {chart.kind for chart in ALL}


def test_a_zero_on_a_log_axis_is_dropped_and_said_in_the_caption() -> None:
    chart = sample.load_curve()
    steps = (
        *chart.datasets["steps"],
        {"users": 50, "x": 0, "x_lo": 0, "x_hi": 0, "r": 0, "r_lo": 0, "r_hi": 0},
    )

    zeros = with_rows(chart, "steps", steps)  # type: ignore[arg-type]
    drawing = charts.draw(zeros)

    throughput, time_ = drawing.spec["vconcat"]
    shown = [
        sorted({r["users"] for layer in layers(p) for r in layer["data"]["values"] if "r_lo" in r})
        for p in (throughput, time_)
    ]
    assert shown == [[1, 2, 10, 50, 100], [1, 2, 10, 100]]  # zero has its place on the linear panel only
    assert drawing.notes == ("0 at: users 50",)
    assert charts.caption(zeros).endswith(" · 0 at: users 50")


def test_a_missed_reading_breaks_the_line_and_a_long_gap_is_called_not_read() -> None:
    # the sample misses seconds 30 to 35 in every resource
    svg = charts.svg(sample.resources())

    assert texts(svg).count("not read") == 2 * 4  # four panels, each word on its halo
    paths = [d for d in re.findall(r' d="(M[^"]+)"', svg) if d.count("M") == 2 and "L" in d]
    assert len(paths) >= 4  # lines of two pieces


def test_three_missed_readings_are_a_gap_in_the_line_but_no_shade() -> None:
    rows = [{"t": t, "value": None if 3 <= t < 6 else 1.0} for t in range(10)]

    assert parts.gaps(rows, "value") == []
    assert parts.gaps([*rows[:6], {"t": 6, "value": None}, *rows[7:]], "value") == [
        {"t": 3, "t2": 7, "label": "not read"}
    ]


def test_one_point_is_a_point_and_no_line() -> None:
    chart = sample.load_curve()
    alone = Chart("load_curve", "a", "h", {"steps": chart.datasets["steps"][:1]}, {}, "c")

    svg = charts.svg(alone)

    assert 'class="mark-symbol' in svg
    drawn = re.findall(r'class="mark-line[^>]*>(.*?)</g>', svg)
    assert all("L" not in d for block in drawn for d in re.findall(r' d="([^"]*)"', block))


def test_one_trial_is_drawn_hollow() -> None:
    chart = sample.ladder()
    marks = [
        json.dumps(layer["mark"]) for layer in layers(charts.draw(replace(chart, options={"trials": 1})).spec)
    ]

    assert any('"filled": false' in mark and "style" not in mark for mark in marks)


def test_an_interval_that_is_open_above_runs_to_the_edge_and_says_open() -> None:
    chart = sample.bystander()
    rows = tuple({**row, "hi": None} if row["ms"] == 2310 else dict(row) for row in chart.datasets["probe"])

    svg = charts.svg(with_rows(chart, "probe", rows))

    assert "open" in texts(svg)
    assert "open" not in texts(charts.svg(chart))


def test_more_than_six_series_leave_the_rest_grey_and_counted() -> None:
    steps = tuple(
        {
            "users": u,
            "x": i + u,
            "x_lo": None,
            "x_hi": None,
            "r": 1 + i,
            "r_lo": None,
            "r_hi": None,
            "series": f"s{i}",
        }
        for i in range(9)
        for u in (1, 2, 3)
    )
    chart = Chart("load_curve", "a", "h", {"steps": steps}, {}, "c")

    drawing = charts.draw(chart)

    inks = {
        row["series"]: row["ink"]
        for layer in layers(drawing.spec)
        for row in layer["data"]["values"]
        if "series" in row and "ink" in row
    }
    assert [inks[f"s{i}"] for i in range(9)] == [*(f"slot {i}" for i in range(1, 7)), *["the rest"] * 3]
    assert drawing.notes == ("3 more series in grey",)
    assert "s7" not in texts(charts.svg(chart))


def test_slots_come_from_the_report_so_that_a_level_keeps_its_colour_in_every_chart() -> None:
    chart = sample.bystander()  # 4 workers has slot 3 in this study

    svg = charts.svg(chart)

    assert tokens.SLOTS[2].light.lower() in svg.lower()
    assert tokens.SLOTS[1].light.lower() not in svg.lower()


def test_a_long_name_is_cut_in_the_middle_and_whole_in_the_csv() -> None:
    long = "mixed workers=4 users=20 hash=blocking pool=own"
    chart = sample.published()
    rows = ({**chart.datasets["rows"][0], "case": long}, *chart.datasets["rows"][1:])
    cut = with_rows(chart, "rows", rows)  # type: ignore[arg-type]

    assert "mixed workers..king pool=own" in texts(charts.svg(cut))
    assert long in charts.as_csv(cut)


def test_glyphs_that_a_font_may_lack_do_not_reach_a_chart() -> None:
    assert parts.text("◇ p99 ≥ 3 × 2–4 · é 日本 \u202e\x1b") == "? p99 ≥ 3 × 2–4 · é 日本 ??"


@pytest.mark.parametrize(
    "name", ["datum.x", "a[0]", "{{x}}", "</text><script>alert(1)</script>", "'; drop", 'a"b', "\\"]
)
def test_hostile_names_are_text(name: str) -> None:
    chart = sample.ladder(2)
    steps = tuple(
        {**row, "series": name if row["series"] == "workers=1" else row["series"]}
        for row in chart.datasets["steps"]
    )

    svg = charts.svg(with_rows(chart, "steps", steps, entities=None))

    assert "<script" not in svg
    assert parts.text(name) in texts(svg) or parts.text(name, 28) in texts(svg)


def test_labels_at_line_ends_do_not_touch() -> None:
    placed = parts.staggered([100, 101, 102, 160, 168], 170)

    assert all(b - a >= parts.LINE_PX for a, b in pairwise(placed))
    assert max(placed) <= 170


def test_a_label_in_the_right_half_ends_at_its_point() -> None:
    axis = parts.Axis(0, 100, 600)
    rows = [{"t": 10, "label": "left"}, {"t": 90, "label": "right"}]

    styles = {
        layer["data"]["values"][0]["label"]: layer["mark"]["style"]
        for layer in parts.notes_at(rows, axis, "t", (8,))
    }

    assert styles == {"left": "note", "right": "noter"}


def test_two_labels_at_one_place_take_both_sides_and_then_two_rows() -> None:
    axis = parts.Axis(0, 100, 600)
    rows = [
        {"t": 50, "label": "the first label"},
        {"t": 50, "label": "the second label"},
        {"t": 50, "label": "a third"},
    ]

    found = [
        (layer["mark"]["style"], row["_y"])
        for layer in parts.notes_at(rows, axis, "t", (8, 22))
        for row in layer["data"]["values"]
    ]

    assert len(set(found)) == 3


def test_a_log_axis_says_log_and_a_linear_one_starts_at_zero() -> None:
    top, low = charts.draw(sample.load_curve()).spec["vconcat"]

    assert top["layer"][0]["encoding"]["y"]["scale"]["domain"][0] == 0
    assert " ".join(low["layer"][0]["encoding"]["y"]["axis"]["title"]).endswith("(log)")
    assert low["layer"][0]["encoding"]["y"]["scale"]["type"] == "log"


def test_load_is_on_a_log_axis_from_a_ratio_of_20_on() -> None:
    chart = sample.ladder(1, users=(1, 5, 19))
    wide = sample.ladder(1, users=(1, 5, 20))

    def scale(c: Chart) -> dict[str, Any]:
        return charts.draw(c).spec["vconcat"][1]["layer"][0]["encoding"]["x"]["scale"]  # type: ignore[no-any-return]

    assert "type" not in scale(chart)
    assert scale(wide)["type"] == "log"


def test_a_chart_has_one_time_unit_from_its_median() -> None:
    chart = sample.bystander()
    slow = tuple(
        {**row, "ms": row["ms"] * 100, "lo": row["lo"] * 100, "hi": row["hi"] * 100}
        for row in chart.datasets["probe"]
    )

    title = charts.draw(with_rows(chart, "probe", slow)).spec["layer"][0]["encoding"]["y"]["axis"]["title"]

    # median of the probe is 222 ms, a hundred times that is 22 s
    assert "".join(title).endswith("s (log)")
    assert "ms" not in "".join(title)


@pytest.mark.parametrize(
    ("n", "klass"),
    [(1, "1+"), (2, "1+"), (3, "3+"), (29, "10+"), (30, "30+"), (999, "300+"), (10**6, "1000+")],
)
def test_a_heat_class_is_what_its_label_says(n: int, klass: str) -> None:
    assert timeline.heat_class(n) == klass


def test_empty_cells_of_the_heat_map_are_not_drawn() -> None:
    chart = sample.heat()
    cells = (*chart.datasets["cells"], {"t": 1, "t2": 2, "lo": 500.0, "hi": 600.0, "n": 0})

    drawn = layers(charts.draw(with_rows(chart, "cells", cells)).spec)[1]["data"]["values"]  # type: ignore[arg-type]

    assert len(drawn) == len(chart.datasets["cells"])


def test_bars_of_demand_start_at_zero_and_never_on_a_log_axis() -> None:
    scale = charts.draw(sample.demand()).spec["layer"][0]["encoding"]["x"]["scale"]

    assert scale["domain"][0] == 0
    assert "type" not in scale


def test_a_column_or_an_option_that_no_chart_knows_is_refused_by_name() -> None:
    chart = replace(sample.demand(), options={"tilte": "x"})
    broken = with_rows(chart, "parts", ({"case": "a", "part": "lock", "msec": 3},))

    with pytest.raises(ValueError, match=r"no option 'tilte'.*column 'ms' is missing.*no column 'msec'"):
        charts.draw(broken)


def test_parts_of_demand_beyond_the_two_that_findings_may_name_are_refused_by_name() -> None:
    def named(*parts: str) -> Chart:
        return with_rows(
            sample.demand(), "parts", tuple({"case": "a", "part": part, "ms": 3} for part in parts)
        )

    charts.draw(named("waiting for a lock", "waiting for tea"))
    with pytest.raises(ValueError, match="no room for coffee"):
        charts.draw(named("waiting for a lock", "waiting for tea", "coffee"))


def test_names_that_are_too_long_lose_what_all_of_them_share() -> None:
    names = [f"alone workers=1 hash=threads users={users}" for users in (5, 20)]

    assert list(words.cut_names(names).values()) == ["users=5", "users=20"]
    assert list(words.cut_names(["a users=5", "a users=20"]).values()) == [
        "a users=5",
        "a users=20",
    ]  # they fit


def test_csv_has_every_row_and_no_formula() -> None:
    chart = sample.published()
    rows = tuple({**row, "case": f"=cmd|{i}"} for i, row in enumerate(chart.datasets["rows"]))

    lines = charts.as_csv(with_rows(chart, "rows", rows)).splitlines()

    assert len(lines) == 1 + len(rows)
    assert lines[1].startswith("rows,'=cmd|0,1,1")


def test_small_multiples_share_their_scales() -> None:
    panels = charts.draw(sample.small_multiples()).spec["concat"]

    scales = {
        json.dumps([v["layer"][0]["encoding"][c]["scale"] for v in p["vconcat"] for c in ("x", "y")])
        for p in panels
    }
    assert len(panels) == 6
    assert len(scales) == 1


def test_png_carries_its_headline_because_it_leaves_the_page() -> None:
    titled = charts.spec(sample.density(), titled=True)

    assert "One request in ten" in " ".join(titled["title"]["text"])
