"""YAML as the engine reads it, against a second reader: values, lines and places."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from ruamel.yaml.error import ReusedAnchorWarning
from ruamel.yaml.events import ScalarEvent

from loadlens.yaml_events import YamlFault, events

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path
    for folder in ("studies", "tests/data", "docs", "catalogue", ".github")
    for path in (ROOT / folder).rglob("*.y*ml")
    if "node_modules" not in path.parts
)


def of_engine(text: str) -> list[tuple[str, bool, str]]:
    """Value, whether it is plain, and the text from where it begins."""
    return [
        (event.text, event.style == "plain", text[event.begin :])
        for event in events(text)
        if event.kind == "scalar"
    ]


def of_other(text: str) -> list[tuple[str, bool, str]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReusedAnchorWarning)
        return [
            (event.value, event.style is None, text[event.start_mark.index :])
            for event in YAML(typ="safe", pure=True).parse(text)
            if isinstance(event, ScalarEvent) and (event.value or event.style is not None)
        ]


def test_the_files_of_this_repository_are_read_as_by_another_reader() -> None:
    assert len(FILES) > 100
    for path in FILES:
        text = path.read_text()

        seen = [each for each in of_engine(text) if each[0] or not each[1]]

        assert seen == of_other(text), path


@pytest.mark.parametrize(
    "text",
    [
        "a: |\n  one\n\n  two\nb: 1\n",
        "a: >-\n  one\n  two\n\n# c\nb: 1\n",
        "# a | b\n- | # c > d\n\n  one\n- x\n",
        "- |2\n   one\n",
        "a: &x |\n  v\nb: *x\n",
        "a: |\n  x",
        "a: |\n\nb: 1\n",
        "a: 'x\n\n  y' # it's\nb: \"\\u00e9\\n\"\n",
        '{"a":1, "b": [x, "y"]}\n',
        "a: é 😀 # ü\nb: 1\r\nc: 2\n",
    ],
)
def test_blocks_and_quotes_are_read_and_placed_as_by_another_reader(text: str) -> None:
    seen = [each for each in of_engine(text) if each[0] or not each[1]]

    assert [(value, is_plain) for value, is_plain, _ in seen] == [each[:2] for each in of_other(text)]
    for (value, _, rest), (_, _, other) in zip(seen, of_other(text), strict=True):
        assert rest == other or not value


def test_a_quoted_value_ends_with_its_quote() -> None:
    text = "a: 'x\n\n  y' # it's\n"
    (_, quoted) = (event for event in events(text) if event.kind == "scalar")

    assert text[quoted.begin : quoted.end] == "'x\n\n  y'"


@pytest.mark.parametrize(
    ("text", "line"), [("a: 1\nb: [1", 2), ("a:\n  b\n\tc: 1\n", 3), ("a: b: c", 1), ("a: 1\n\nb: \a\n", 3)]
)
def test_a_fault_has_its_line(text: str, line: int) -> None:
    with pytest.raises(YamlFault) as caught:
        list(events(text))

    assert caught.value.line == line
