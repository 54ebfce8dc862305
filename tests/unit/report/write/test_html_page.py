"""The page: complete, safe, readable without script, and nothing on it is empty."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest

from loadlens.model.report import Report
from loadlens.report.write import html
from loadlens.report.write import view as views
from loadlens.report.write.html import explore, pictures
from tests.golden import assert_as_reviewed
from tests.unit.report.write import sample_charts, sample_report
from tests.unit.report.write.parsed import Node, parse

MB = 1_000_000
REPORTS: dict[str, Callable[[], Report]] = {
    "sample": sample_report.sample,
    "many": sample_report.many,
    "one": sample_report.one,
    "minimal": sample_report.minimal,
    "hostile": lambda: sample_report.hostile(sample_report.sample()),
}


@cache
def source(name: str) -> str:
    return html.page(REPORTS[name]())


@cache
def tree(name: str) -> Node:
    return parse(source(name))


every = pytest.mark.parametrize("name", REPORTS)


@every
def test_page_asks_for_nothing_from_anywhere(name: str) -> None:
    page = tree(name)

    addresses = [
        n.attributes[a]
        for n in page.walk()
        for a in ("href", "src", "srcset", "xlink:href", "action")
        if a in n.attributes
    ]
    assert all(address.startswith(("#", "data:text/csv;")) for address in addresses)
    assert (
        page.all(
            "link", "img", "iframe", "object", "embed", "form", "base", "video", "audio", "foreignobject"
        )
        == []
    )
    style = source(name).split("<style>")[1].split("</style>")[0]
    assert "@import" not in style
    assert "url(" not in style


@every
def test_policy_allows_the_one_script_of_the_page_and_nothing_else(name: str) -> None:
    page = tree(name)

    (script,) = page.all("script")
    (policy,) = [
        m.attributes["content"]
        for m in page.all("meta")
        if m.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest(script)}'" in policy
    assert "unsafe-eval" not in policy
    assert not [a for n in page.walk() for a in n.attributes if a.startswith("on")]


def test_hostile_text_shows_as_text_in_every_place() -> None:
    page = tree("hostile")

    assert page.all("img") == []
    assert len(page.all("script")) == 1
    shown = sample_report.HOSTILE.replace("\u202e", "\ufffd").replace("\x1b", "\ufffd")
    assert page.all("h1")[0].text == shown
    assert page.text.count("<script>alert(1)") > 100
    assert "\u202e" not in source("hostile")
    assert "\x1b" not in source("hostile")


@every
def test_every_link_has_its_target_and_every_id_is_there_once(name: str) -> None:
    page = tree(name)

    ids = [n.attributes["id"] for n in page.walk() if "id" in n.attributes]
    links = {n.attributes["href"][1:] for n in page.all("a") if n.attributes["href"].startswith("#")}
    if name != "hostile":  # there all anchors are the same text
        assert len(ids) == len(set(ids))
    assert links <= set(ids)


@every
def test_headings_are_in_order(name: str) -> None:
    levels = [int(n.tag[1]) for n in tree(name).all("h1", "h2", "h3", "h4")]

    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@every
def test_no_cell_is_empty_and_none_is_a_dash(name: str) -> None:
    cells = [cell for row in tree(name).all("tbody") for cell in row.all("td", "th")]

    assert all(cell.text not in ("", "-", "–", "—", "None", "nan") for cell in cells)


@every
def test_every_head_of_a_table_says_what_it_heads(name: str) -> None:
    assert all(cell.attributes.get("scope") in ("col", "row", "colgroup") for cell in tree(name).all("th"))


@every
def test_every_figure_has_headline_alternative_and_caption(name: str) -> None:
    for figure in tree(name).all("figure"):
        (picture,) = figure.all(class_="picture")
        assert picture.attributes["role"] == "img"
        assert figure.all("h2", "h3", "h4")[0].text in picture.attributes["aria-label"] or name == "hostile"
        assert figure.all("figcaption")[0].text


@every
def test_every_picture_is_hidden_from_the_accessibility_tree_and_has_no_size_of_type_of_its_own_font(
    name: str,
) -> None:
    for svg in tree(name).all("svg"):
        assert svg.attributes["aria-hidden"] == "true"
        assert not [n for n in svg.walk() if "font-family" in n.attributes or "role" in n.attributes]


@every
def test_scrolling_regions_can_be_reached_by_keyboard_and_are_named(name: str) -> None:
    for region in tree(name).all(class_="scroll"):
        assert region.attributes["tabindex"] == "0"
        assert region.attributes["aria-label"]


@every
def test_sizes_stay_within_their_limits(name: str) -> None:
    # 1.5 MB for one case, 3 MB for 15, 4 MB for 36
    limit = {"one": 1.5, "minimal": 1.5, "sample": 3, "hostile": 3, "many": 4}[name] * MB

    assert len(source(name).encode()) <= limit


def test_same_report_gives_the_same_page() -> None:
    assert html.page(sample_report.one()) == html.page(sample_report.one())


def test_answer_stands_before_everything_else() -> None:
    main = tree("sample").all("main")[0]

    order = [
        n.tag if n.tag != "section" else n.attributes["id"] for n in main.children if isinstance(n, Node)
    ]
    assert order[0] == "header"
    assert order[1:] == [
        "objectives", "findings", "cases", "charts", "predictions", "details",
        "accounting", "setup", "environment", "limits", "published", "appendix", "footer",
    ]  # fmt: skip


def test_the_first_screen_is_the_answer_its_pictures_and_what_to_do() -> None:
    (header,) = tree("sample").all("header")

    assert header.all("h1")[0].text.startswith("It stops everything.")
    assert [figure.attributes["id"] for figure in header.all("figure")] == ["chart-load", "chart-demand"]
    assert [term.text for term in header.all("dt")] == ["capacity", "fix", "who waits", "trust", "next"]
    (trust,) = [d for d in header.all("dd") if d.all("details")]
    assert "objective missed" in trust.text.partition("books balance")[0]  # the worst comes first
    assert header.all("code")[0].text == "loadlens run studies/register"


def test_the_first_finding_is_open_and_the_explained_one_is_under_its_cause() -> None:
    findings = tree("sample").all("details", class_="finding")

    assert ["open" in f.attributes for f in findings] == [True, False, False, False]
    (explained,) = findings[0].all("details", class_="explained")
    assert "more users only wait" in explained.text


def test_suspected_findings_are_folded_and_give_no_advice() -> None:
    (fold,) = [d for d in tree("sample").all("details") if d.text.startswith("Not confirmed: 1 suspected")]
    (suspected,) = fold.all("details", class_="finding")

    assert "Block 2 may have shared its CPU" in suspected.text
    assert "Do" not in [term.text for term in suspected.all("dt")]
    assert "open" not in fold.attributes


def test_chips_lead_to_charts_and_charts_back_to_findings() -> None:
    page = tree("sample")

    chips = [a.attributes["href"] for a in page.all("a", class_="chip")]
    assert "#chart-bystander" in chips
    (figure,) = page.all("figure", id="chart-bystander")
    assert "#finding-eventloop.blocked" in [
        a.attributes["href"] for a in figure.all("figcaption")[0].all("a")
    ]


def test_a_chip_without_a_chart_is_no_link() -> None:
    chips = tree("sample").all("span", class_="chip")

    assert "82 % of probes late" in [chip.text for chip in chips]


def test_metric_of_the_matrix_is_chosen_without_script() -> None:
    (matrix,) = tree("sample").all(class_="matrix")
    inputs = matrix.all("input", type="radio")
    labels = {label.attributes["for"] for label in matrix.all("label")}

    assert [i.attributes["id"] for i in inputs if "checked" in i.attributes] == [inputs[0].attributes["id"]]
    assert {i.attributes["id"] for i in inputs} == labels
    assert len(inputs) == len(sample_report.METRICS)
    # every choice has its rule
    assert all(
        f"input:nth-of-type({k}):checked~.scroll .v{k}" in source("sample") for k in range(1, len(inputs) + 1)
    )


def test_states_of_cases_have_their_own_looks() -> None:
    cells = {cell.text: cell.attributes["class"] for cell in tree("sample").all("td", class_="case")}

    assert cells["■ invalid"] == "case bad"
    assert cells["▨ not run"] == "case unknown"
    assert sum("unjudged" in look for look in cells.values()) == 5
    assert any("▲ 2.1 % failed" in text for text in cells)
    assert any("undecided needs 21 s" in text for text in cells)


def test_an_invalid_case_shows_no_value_that_could_be_taken_for_one() -> None:
    (cell,) = [c for c in tree("sample").all("td", class_="case") if "bad" in c.attributes["class"]]

    assert not re.search(r"\d", cell.text)


def test_knee_is_an_edge_and_is_said() -> None:
    knees = tree("sample").all("td", class_="knee")

    assert len(knees) == 2
    assert all(knee.text.endswith("knee after this") for knee in knees)


def test_shade_follows_the_log_of_the_value() -> None:
    matrix = sample_report.matrix()

    steps = views._shades(matrix, "response_time.mean")

    # 218 ms is the smallest and 4,210 ms the largest of the table
    assert steps["workers=1,users=1"] == 1
    assert steps["workers=1,users=20"] == 7
    # 941 ms is at log(941/218)/log(4210/218) = 0.49 of the way: step 4 of 7
    assert steps["workers=1,users=5"] == 4
    assert "workers=2,users=15" not in steps  # invalid


def test_an_impossible_figure_is_struck_out_with_the_identity_that_says_so() -> None:
    (row,) = [r for r in tree("sample").all("tr") if "327 in flight" in r.text]

    assert "■ impossible" in row.text
    assert row.all("s")[0].text == "13.4 ms"


def test_values_of_an_unused_trial_are_struck_out_and_its_reason_stands_beside() -> None:
    rows = tree("sample").all("section", id="details")[0].all("tr")
    (row, *_) = [r for r in rows if "invalid" in r.text]

    assert len(row.all("s", class_="invalid")) == 3
    assert "reset not verified" in row.text


def test_books_that_do_not_balance_are_open() -> None:
    def is_open(report: Report) -> bool:
        fold = parse(html.page(report)).all("section", id="accounting")[0].all("details")[0]
        return "open" in fold.attributes

    broken = sample_report.one()
    sound = replace(broken, accounting=broken.accounting[:2])

    assert is_open(broken)
    assert not is_open(sound)


def test_one_case_is_a_row_of_figures_and_its_detail_is_open() -> None:
    page = tree("one")

    assert page.all("input", type="radio") == []
    assert "open" in page.all("details", id="case-only")[0].attributes
    assert "95 % interval, or why not" in page.all("section", id="cases")[0].text


def test_nothing_measured_is_a_page_that_says_so() -> None:
    text = tree("minimal").text

    assert "nothing could be assessed" in text
    assert "No limit was recorded" in text
    assert tree("minimal").all("section", id="cases") == []


def test_controls_that_need_script_are_hidden_without_it() -> None:
    page = tree("sample")

    assert "hidden" in page.all("button", id="theme")[0].attributes
    assert "hidden" in page.all(id="page-tools")[0].attributes


def test_charts_of_at_most_eight_cases_are_drawn_and_the_page_says_so() -> None:
    report = sample_report.many()
    crowded = replace(
        report,
        charts=(),
        details=tuple(replace(d, charts=report.details[0].charts[1:]) for d in report.details[:10]),
    )

    page = parse(html.page(crowded))

    assert len(page.all("figure")) == 8
    assert page.text.count("1 chart of this case not drawn") == 2


def test_a_drawing_with_more_than_shapes_and_text_is_refused() -> None:
    with pytest.raises(ValueError, match="shapes and text only"):
        pictures.inline('<svg><image href="x"/></svg>', "a")


def test_numbers_in_the_text_of_a_drawing_keep_their_digits() -> None:
    drawn = pictures.inline(
        '<svg class="marks"><path d="M1.23456,2"/><text font-family="x">0.12345</text></svg>', "a"
    )

    assert drawn == '<svg aria-hidden="true" focusable="false"><path d="M1.23,2"/><text>0.12345</text></svg>'


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (("case", "workers=1,users=20"), "case-workers=1,users=20"),
        (("finding", "eventloop.blocked"), "finding-eventloop.blocked"),
        (("case", "a b\"'<>#"), "case-a-b"),
        (("case", "日本"), "case-x"),
    ],
)
def test_anchors_are_stable_and_may_stand_in_an_address(parts: tuple[str, ...], name: str) -> None:
    assert views.anchor(*parts) == name


def test_no_spec_can_end_the_element_that_it_stands_in() -> None:
    chart = sample_report.hostile(sample_charts.ladder())

    specs = explore.specs([("a", chart)])

    assert "<" not in specs
    assert "</script><script>" in json.dumps(json.loads(specs)["a"])


def test_charts_can_be_explored_where_asked_for() -> None:
    page = html.page(sample_report.one(), explore=True)

    specs, bundle, script = parse(page).all("script")
    assert specs.attributes["type"] == "application/json"
    assert list(json.loads("".join(map(str, specs.children)))) == [
        "chart-quantiles",
        "chart-heat",
        "chart-demand",
    ]
    policy = page.split("script-src ")[1].split('"')[0]
    assert [digest(bundle) in policy, digest(script) in policy, digest(specs) in policy] == [
        True,
        True,
        False,
    ]
    assert "unsafe-eval" not in policy
    assert len(page.encode()) <= 1.5 * MB


def digest(script: Node) -> str:
    return base64.b64encode(hashlib.sha256("".join(map(str, script.children)).encode()).digest()).decode()


def test_structure_of_the_page_is_as_reviewed() -> None:
    assert_as_reviewed("report-structure.txt", "\n".join(outline(tree("sample"))) + "\n")


def outline(node: Node, depth: int = 0) -> list[str]:
    """Sections, headings, folds and rows with their texts: what a reader meets, in order."""
    lines: list[str] = []
    for child in node.children:
        if not isinstance(child, Node) or child.tag in ("svg", "style", "script"):
            continue
        names = {"section", "details", "figure", "nav", "header", "footer"}
        inner = depth
        if child.tag in names:
            what = child.attributes.get("id") or child.attributes.get("class", "")
            lines.append(
                f"{'  ' * depth}{child.tag} {what}{' open' if 'open' in child.attributes else ''}".rstrip()
            )
            inner = depth + 1
        if child.tag in ("h1", "h2", "h3", "h4", "summary", "p", "li", "dt", "dd", "figcaption", "pre"):
            lines.append(f"{'  ' * depth}{child.tag}: {child.text}")
            continue
        if child.tag == "tr":
            lines.append(f"{'  ' * depth}| {' | '.join(cell.text for cell in child.all('th', 'td'))}")
            continue
        lines += outline(child, inner)
    return lines
