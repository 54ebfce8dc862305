"""`loadlens.hit`: the same numbers and the same mistakes as the command, as objects."""

from __future__ import annotations

import csv
import inspect
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import loadlens
from loadlens.api.keywords import LEFT_OUT, OPTIONS, keywords_of
from loadlens.api.notebook import html
from loadlens.cli import app
from loadlens.errors import ExitCode, LoadlensError, UsageError
from loadlens.report.write.result import Result
from loadlens.run.single_load import HitDone
from tests.unit.api.conftest import URL
from tests.unit.report.write import hit_result

Plant = Callable[[dict[str, Any]], None]


def command(*words: str) -> Any:
    return CliRunner().invoke(app, ["hit", URL, *words])


def test_the_result_holds_what_json_prints(plant: Plant, capfd: pytest.CaptureFixture[str]) -> None:
    plant(hit_result.result())

    made = loadlens.hit(URL, connections=100, seed=1, objective="p99<30ms")

    assert capfd.readouterr() == ("", "")
    printed = command("--json", "-c", "100", "--seed", "1", "--objective", "p99<30ms")
    assert made.to_dict() == json.loads(printed.stdout)
    assert made.exit_code == printed.exit_code == ExitCode.OBJECTIVE
    assert made.objectives[0].word == "missed"


def test_the_frame_of_figures_is_the_csv(plant: Plant, tmp_path: Path) -> None:
    plant(hit_result.result())

    made = loadlens.hit(URL, out=f"csv={tmp_path / 'a.csv'}")

    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    frame = made.figures.to_dicts()
    assert [row["metric"] for row in frame] == [row["metric"] for row in rows]
    for column in ("value", "low", "high"):
        assert [row[column] for row in frame] == [float(r[column]) if r[column] else None for r in rows]


def test_figures_have_the_names_of_objectives(plant: Plant) -> None:
    plant(hit_result.result())

    made = loadlens.hit(URL)

    # The planted result: p99 39 ms (35.4 to 43.6), p99.9 undecided.
    assert (made.p99.value, made.p99.low, made.p99.high) == (0.0390, 0.0354, 0.0436)
    assert made.figure("response_time.p99").text == made.p99.text
    assert made.p99 < "50ms"
    assert not made.p99 < "40ms"
    assert not made.p99 > "40ms"
    assert made.p999.value is None
    assert made.p999.reason.startswith("10 above it")
    assert made.distribution["count"].to_list() == [10, 120_000, 100_000, 23_902]


def test_a_figure_that_is_not_there_is_refused_with_the_nearest(plant: Plant) -> None:
    plant(hit_result.result())

    with pytest.raises(UsageError, match="no figure 'throughputs'") as refused:
        loadlens.hit(URL).figure("throughputs")

    assert refused.value.hint == "did you mean throughput?"


def test_an_invalid_load_proves_nothing(plant: Plant) -> None:
    law = "due 244012 = issued 244012 + dropped 0 + waiting 0; issued 244012 != answered 243911 + ..."
    plant(hit_result.result(law_holds=False, law=law))

    made = loadlens.hit(URL)

    assert not made.is_valid
    assert made.exit_code is ExitCode.INVALID
    assert not made.p50 < "1h"


def test_ctrl_c_ends_the_program_and_not_only_the_load(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(hit_result.result())
    done = HitDone(hit_result.result(), None, ExitCode.INTERRUPTED)
    monkeypatch.setattr("loadlens.run.single_load.run_hit", lambda *_, **__: done)

    with pytest.raises(KeyboardInterrupt):
        loadlens.hit(URL)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"rate": "fast"}, ["--rate", "fast"]),
        ({"connections": 0}, ["--connections", "0"]),
        ({"objective": ["p98<1s"]}, ["--objective", "p98<1s"]),
        ({"check": "nothing"}, ["--check", "nothing"]),
        ({"header": ["A"]}, ["--header", "A"]),
    ],
)
def test_a_mistake_raises_the_line_of_the_command(
    keywords: dict[str, Any], words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr("sys.argv", ["loadlens", "hit", URL, *words])

    with pytest.raises(LoadlensError) as refused:
        loadlens.hit(URL, **keywords)

    from loadlens.cli import run_verb

    assert run_verb() == refused.value.code == ExitCode.USAGE
    assert capsys.readouterr().err == f"loadlens: {refused.value}\n"


@pytest.mark.parametrize(
    ("keywords", "message", "hint"),
    [
        ({"rat": 5}, "hit has no keyword 'rat'", "did you mean rate?"),
        ({"quiet": True}, "hit has no keyword 'quiet'", "help(loadlens.hit)"),
        ({"connections": True}, "connections takes text, not True", "help(loadlens.hit)"),
        ({"insecure": "yes"}, "insecure takes True or False, not 'yes'", "help(loadlens.hit)"),
        ({"threads": 1.5}, "threads takes a whole number, not 1.5", "help(loadlens.hit)"),
    ],
)
def test_a_keyword_that_no_flag_is_or_takes_is_refused(
    keywords: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as refused:
        loadlens.hit(URL, **keywords)

    assert (refused.value.message, refused.value.hint) == (message, hint)


def test_no_url_is_refused() -> None:
    with pytest.raises(UsageError, match="no URL"):
        loadlens.hit()


@pytest.mark.parametrize("verb", OPTIONS)
def test_keywords_are_the_flags(verb: str) -> None:
    made = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    flags = {
        next(flag for flag in option.opts if flag.startswith("--")).removeprefix("--").replace("-", "_")
        for option in made.params
        if option.param_type_name == "option" and not option.hidden and option.name not in LEFT_OUT
    }

    assert keywords_of(OPTIONS[verb]).keys() == flags - {"help"}


@pytest.mark.parametrize("verb", OPTIONS)
def test_help_shows_every_keyword_and_no_default_differs(verb: str) -> None:
    function = getattr(loadlens, verb)
    signature = inspect.signature(function).parameters
    defaults = OPTIONS[verb](**{name: () for name in ("targets",) if verb in ("explain", "capacity")})

    for name, keyword in keywords_of(OPTIONS[verb]).items():
        assert f"\n    {name}: " in function.__doc__
        assert signature[name].default == getattr(defaults, keyword.field)


def test_a_notebook_shows_headline_picture_and_table(plant: Plant) -> None:
    plant(hit_result.result())

    made = loadlens.hit(URL)

    shown = made._repr_html_()
    assert f"<b>{made.headline}</b>" in shown
    assert 'src="data:image/svg+xml;base64,' in shown
    assert re.search(r"<td[^>]*>p99[^<]*</td><td[^>]*>39.0 ms</td><td[^>]*>35.4–43.6</td>", shown)


def test_a_notebook_shows_markup_of_others_as_text() -> None:
    shown = html(Result("<b>", ("<script>", "<i>"), (), (), subject="load"), ())

    assert not re.findall(r"<(?:script|i)>", shown)
    assert "&lt;script&gt;" in shown


def test_a_chart_is_saved_as_a_drawing(plant: Plant, tmp_path: Path) -> None:
    plant(hit_result.result())
    (chart,) = loadlens.hit(URL).charts

    chart.save(tmp_path / "a.svg")

    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    assert chart.spec()["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
