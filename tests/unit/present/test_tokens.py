"""Colours: contrast by the WCAG 2.1 formula, light to dark as a function."""

from __future__ import annotations

from itertools import combinations

import pytest

from loadlens.present import tokens
from loadlens.present.tokens import Colour, Theme

THEMES: tuple[Theme, Theme] = ("light", "dark")


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.1."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_of_black_on_white_is_21_as_wcag_says() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("ground", [tokens.PAGE, tokens.PANEL])
def test_text_has_contrast_4_5_on_page_and_panel(theme: Theme, ground: Colour) -> None:
    texts = (tokens.INK, tokens.INK_2, *tokens.STATES.values())

    assert min(contrast(text.on(theme), ground.on(theme)) for text in texts) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_marks_have_contrast_3_on_the_page(theme: Theme) -> None:
    ratios = [contrast(colour.on(theme), tokens.PAGE.on(theme)) for colour in tokens.SLOTS]

    assert min(ratios) >= 3


@pytest.mark.parametrize("theme", THEMES)
def test_text_on_every_step_of_the_ramp_has_contrast_4_5(theme: Theme) -> None:
    pairs = zip(tokens.ON_RAMP, tokens.RAMP, strict=True)

    assert min(contrast(text.on(theme), ground.on(theme)) for text, ground in pairs) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_ramp_moves_away_from_the_page_with_every_step(theme: Theme) -> None:
    ratios = [contrast(colour.on(theme), tokens.PAGE.on(theme)) for colour in tokens.RAMP]

    assert ratios == sorted(ratios)


def test_every_light_colour_has_one_dark_colour() -> None:
    pairs = tokens.light_to_dark()

    assert set(pairs) == {colour.light for colour in tokens.colours().values()}


def test_two_dark_colours_for_one_light_colour_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "REST", Colour(tokens.SLOTS[0].light, "#123456"))

    with pytest.raises(ValueError, match="slot-7"):
        tokens.light_to_dark()


def test_slots_differ_from_each_other_in_both_themes() -> None:
    for theme in THEMES:
        assert all(a.on(theme) != b.on(theme) for a, b in combinations((*tokens.SLOTS, tokens.REST), 2))


def test_dark_vega_config_is_the_light_one_with_every_colour_mapped() -> None:
    def mapped(part: object) -> object:
        match part:
            case dict():
                return {key: mapped(value) for key, value in part.items()}
            case list():
                return [mapped(value) for value in part]
            case str() if part.startswith("#"):
                return tokens.light_to_dark()[part]
            case _:
                return part

    assert mapped(tokens.vega_config("light")) == tokens.vega_config("dark")


def test_chart_rules_name_every_light_colour_once_for_fill_and_once_for_stroke() -> None:
    rules = tokens.css_chart_rules()

    for light in tokens.light_to_dark():
        assert rules.count(f'[fill="{light}" i]') == 1
        assert rules.count(f'[stroke="{light}" i]') == 1


def test_every_rich_style_can_be_read_by_rich() -> None:
    from rich.style import Style

    for theme in THEMES:
        for style in tokens.rich_styles(theme).values():
            assert Style.parse(style)
