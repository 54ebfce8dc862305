"""Every colour, size of type and form, once: CSS variables, Vega config and rich theme are made from here.

Light to dark is a function: a static chart is drawn once with the light tokens and recoloured by CSS rules
that read its attributes, so one light colour must never need two dark ones. A static chart therefore uses
these exact values only. Contrast: text 4.5, marks 3 (grid and shades excepted); the tests check both.
Slots were chosen for their smallest CIEDE2000 difference under normal vision and the three dichromacies
(Machado, Oliveira and Fernandes 2009).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from loadlens.model.report import State

Theme = Literal["light", "dark"]


@dataclass(frozen=True, slots=True)
class Colour:
    """One use of colour in both themes."""

    light: str
    dark: str

    def on(self, theme: Theme) -> str:
        """The value in a theme."""
        return self.light if theme == "light" else self.dark


PAGE = Colour("#FFFFFF", "#15181D")
PANEL = Colour("#F6F7F9", "#1C2128")
INK = Colour("#1B1F24", "#E8ECF1")
INK_2 = Colour("#57606C", "#A4AEBB")
LINE = Colour("#C9D2DD", "#454E5A")
GRID = Colour("#E3E6EB", "#2E353E")

STATES: Mapping[State, Colour] = {
    "ok": Colour("#0B6B4F", "#5FD3A6"),
    "caution": Colour("#8A5A00", "#F0B64A"),
    "bad": Colour("#A8152B", "#FF8A96"),
    "unknown": INK_2,
}

# Slots 1 to 6 name entities in the order of the study file; the seventh is "the rest".
SLOTS = (
    Colour("#2F7DE1", "#86B4FF"),
    Colour("#A63A0A", "#D9925C"),
    Colour("#00756A", "#3BDFC4"),
    Colour("#40308A", "#8A68EC"),
    Colour("#DE4A94", "#C0607E"),
    Colour("#928E1C", "#EFE15C"),
)
REST = Colour("#9AA4B0", "#6B7684")

RAMP = (
    Colour("#E3EDFA", "#1C2C45"),
    Colour("#BBD4F4", "#204474"),
    Colour("#84B2EB", "#2A62A8"),
    Colour("#4C8DE0", "#4483D2"),
    Colour("#2466B6", "#74A8EE"),
    Colour("#12427F", "#ABCBF8"),
    Colour("#08244A", "#E6F0FF"),
)
# Text on each step of the ramp: ink on the steps near the page, the page's colour on the steps near the ink.
# The themes turn over at different steps, so these serve tables only and are not recoloured in charts.
ON_RAMP = (INK, INK, INK, Colour(INK.light, PAGE.dark), PAGE, PAGE, PAGE)

DIVERGING = (  # worse, somewhat worse, same, somewhat better, better
    Colour("#A63A0A", "#D9925C"),
    Colour("#DB9B78", "#8A6450"),
    Colour("#F3F4F6", "#2E353E"),
    Colour("#8DB8EE", "#4D6FA6"),
    Colour("#2A6BB9", "#86B4FF"),
)

DEMAND_PARTS = (
    "CPU, user",
    "CPU, system",
    "wait for CPU",
    "",  # two parts that findings name
    "",
    "outside the handler",
    "unexplained",
)
DEMAND = (
    Colour("#0F2F63", "#3F74C2"),
    Colour("#2F6FC4", "#86B4FF"),
    Colour("#86B4F0", "#D3E3FB"),
    Colour("#A63A0A", "#D9925C"),
    Colour("#00756A", "#3BDFC4"),
    Colour("#928E1C", "#EFE15C"),
    Colour("#B9C0C9", "#5B6673"),
)

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif'
MONO = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace'


@dataclass(frozen=True, slots=True)
class Type:
    """Size, line height (px) and weight of one use of type."""

    size: int
    line: int
    weight: int = 400


TYPE: Mapping[str, Type] = {
    "h1": Type(26, 32, 600),
    "lead": Type(18, 28),
    "h2": Type(19, 26, 600),
    "h3": Type(16, 24, 600),
    "body": Type(15, 23),
    "table": Type(13, 19),
    "caption": Type(12, 16),
    "axis": Type(11, 16),
}

PAGE_WIDTH_PX = 1120
TEXT_WIDTH_CH = 72


def colours() -> dict[str, Colour]:
    """Every token by its CSS name, without the leading dashes."""
    named: dict[str, Colour] = {
        "page": PAGE,
        "panel": PANEL,
        "ink": INK,
        "ink-2": INK_2,
        "line": LINE,
        "grid": GRID,
    }
    named |= {state: STATES[state] for state in get_args(State)}
    named |= {f"slot-{i}": colour for i, colour in enumerate((*SLOTS, REST), 1)}
    named |= {f"ramp-{i}": colour for i, colour in enumerate(RAMP, 1)}
    named |= {f"diverging-{i}": colour for i, colour in enumerate(DIVERGING, 1)}
    named |= {f"demand-{i}": colour for i, colour in enumerate(DEMAND, 1)}
    return named


def light_to_dark() -> dict[str, str]:
    """Dark colour of every light one.

    Raises:
        ValueError: One light colour has two dark ones, so that a drawn chart could not be recoloured.
    """
    pairs: dict[str, str] = {}
    for name, colour in colours().items():
        if pairs.setdefault(colour.light, colour.dark) != colour.dark:
            raise ValueError(f"{name}: {colour.light} is {pairs[colour.light]} and {colour.dark} in the dark")
    return pairs


def css_variables(theme: Theme) -> str:
    """Declarations `--name:value;` of one theme, to stand inside any rule."""
    named = colours() | {f"on-ramp-{i}": colour for i, colour in enumerate(ON_RAMP, 1)}
    return "".join(f"--{name}:{colour.on(theme)};" for name, colour in named.items())


def css_type() -> str:
    """Declarations of sizes and fonts: `font:var(--h1)` sets size, line height, weight and family."""
    shorthand = "".join(
        f"--{name}:{use.weight} {use.size}px/{use.line}px {FONT};" for name, use in TYPE.items()
    )
    mono = f"--mono:{TYPE['table'].size}px/{TYPE['table'].line}px {MONO};"
    return f"{shorthand}{mono}--page-width:{PAGE_WIDTH_PX}px;--text-width:{TEXT_WIDTH_CH}ch;"


def css_chart_rules(selector: str = ".chart svg") -> str:
    """Rules that let a chart drawn with the light tokens follow the theme of the page around it.

    A presentation attribute loses against any rule, and an attribute selector reads the source, so the
    rules never chain and a chart needs no second drawing.
    """
    names: dict[str, str] = {}
    for name, colour in colours().items():
        names.setdefault(colour.light, name)
    return "".join(
        f'{selector} [{paint}="{light}" i]{{{paint}:var(--{name})}}'
        for light, name in names.items()
        for paint in ("fill", "stroke")
    )


def vega_config(theme: Theme = "light") -> dict[str, Any]:
    """The Vega-Lite config; specs name its styles and hold no colour and no size of their own.

    `range.ordinal` holds the colours of C8, because the schema accepts no name of our own for a range.
    """

    def c(colour: Colour) -> str:
        return colour.on(theme)

    axis = TYPE["axis"].size
    return {
        "background": c(PAGE),
        "font": "system-ui, sans-serif",
        "padding": 4,
        "title": _title_config(theme),
        **_axis_config(theme),
        "header": {
            "labelColor": c(INK),
            "labelFontSize": axis,
            "labelFontWeight": 600,
            "labelAnchor": "start",
            "title": None,
        },
        "legend": {
            "orient": "top",
            "direction": "horizontal",
            "labelColor": c(INK),
            "titleColor": c(INK_2),
            "labelFontSize": axis,
            "titleFontSize": axis,
            "titleFontWeight": 400,
            "offset": 22,
            "symbolStrokeWidth": 2,
        },
        "view": {"stroke": None},
        "range": {
            "category": [c(colour) for colour in (*SLOTS, REST)],
            "ordinal": [c(colour) for colour in DEMAND],
            "ramp": [c(colour) for colour in RAMP],
            "heatmap": [c(colour) for colour in RAMP],
            "diverging": [c(colour) for colour in DIVERGING],
        },
        "mark": {"color": c(SLOTS[0]), "invalid": "break-paths-show-domains"},
        "line": {"strokeWidth": 2},
        "point": {"filled": True, "size": 44, "opacity": 1},
        "rule": {"color": c(SLOTS[0])},
        "style": _vega_styles(theme),
    }


def _axis_config(theme: Theme) -> dict[str, Any]:
    """Quiet axes; the title of a vertical one stands over its panel and is read like a headline."""
    return {
        "axis": {
            "labelColor": INK_2.on(theme),
            "titleColor": INK_2.on(theme),
            "labelFontSize": TYPE["axis"].size,
            "titleFontSize": TYPE["axis"].size,
            "titleFontWeight": 400,
            "domain": False,
            "tickColor": LINE.on(theme),
            "gridColor": GRID.on(theme),
            "tickSize": 4,
            "labelPadding": 4,
        },
        "axisX": {"grid": False, "domain": True, "domainColor": INK_2.on(theme)},
        "axisY": {
            "titleAnchor": "end",
            "titleAngle": 0,
            "titleAlign": "left",
            "titleBaseline": "bottom",
            "titleX": 0,
            "titleY": -6,
            "tickCount": 5,
        },
    }


def _title_config(theme: Theme) -> dict[str, Any]:
    return {
        "anchor": "start",
        "color": INK.on(theme),
        "fontSize": 14,
        "fontWeight": 600,
        "subtitleColor": INK_2.on(theme),
        "subtitleFontSize": TYPE["caption"].size,
        "offset": 8,
    }


def _vega_styles(theme: Theme) -> dict[str, Any]:
    """Form says how we know: solid measured, dashed model, diamond published, triangle predicted."""
    ink, ink_2, bad = INK.on(theme), INK_2.on(theme), STATES["bad"].on(theme)
    size = TYPE["axis"].size
    hollow = {"color": ink, "filled": False, "strokeWidth": 1.5}
    return {
        "band": {"opacity": 0.18},
        "ci": {"strokeWidth": 2},
        "model": {"color": ink, "strokeDash": [5, 3], "strokeWidth": 1.5},
        "modelband": {"color": ink_2, "opacity": 0.14},
        "published": {**hollow, "shape": "diamond", "size": 64},
        "predicted": {**hollow, "shape": "triangle-up", "size": 70},
        "mark": {"color": SLOTS[1].on(theme), "strokeWidth": 1},
        "ref": {"color": ink_2, "strokeWidth": 1, "strokeDash": [1, 3]},
        "shade": {"color": ink_2, "opacity": 0.12},
        "note": {"color": ink, "fontSize": size, "align": "left", "dx": 5},
        "noter": {"color": ink, "fontSize": size, "align": "right", "dx": -5},
        "bad": {"color": bad, "shape": "cross", "size": 80, "filled": True},
    }


def rich_styles(theme: Theme = "dark") -> dict[str, str]:
    """Styles for `rich.theme.Theme`. Body text keeps the terminal's own colour: its background is not ours.

    Glyphs, numbers of the headline and bars are all that is coloured, so they take the theme whose colours
    read on both black and white backgrounds least badly: the caller chooses.
    """
    styles = {f"loadlens.{state}": STATES[state].on(theme) for state in get_args(State)}
    styles |= {f"loadlens.slot.{i}": colour.on(theme) for i, colour in enumerate(SLOTS, 1)}
    styles |= {
        "loadlens.number": f"bold {SLOTS[0].on(theme)}",
        "loadlens.bar": SLOTS[0].on(theme),
        "loadlens.second": "dim",
        "loadlens.heading": "bold",
    }
    return styles
