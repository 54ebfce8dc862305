"""The examples of the documentation are what Loadlens reads: every study, and every command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer
from tools import examples

from loadlens.cli import app
from loadlens.cli.run import planned_study
from loadlens.errors import UsageError
from loadlens_compat.ab import verb as ab
from loadlens_compat.hey import verb as hey
from loadlens_compat.wrk import verb as wrk

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "studies").glob("*/README.md")),
]
FOREIGN = {"ab": ab.FLAGS, "hey": hey.FLAGS, "wrk": wrk.FLAGS}
LINE = re.compile(r"^(?:\$ |- run: |run: |- )?(?:sudo |[A-Z_]+=\S+ )*(loadlens .*)$")
IN_TEXT = re.compile(r"(?<!`)`(loadlens [^`\n]+)`(?!`)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def command_lines(page: Path) -> Iterator[list[str]]:
    """Yield the words of every command line that begins with loadlens, up to a pipe or a redirection."""
    text = page.read_text(encoding="utf-8")
    lines = []
    for block in reversed(examples.blocks(text)):
        if block.exit_code != 2:  # those show a mistake
            joined = re.sub(r"\\\n\s*", "", block.text).splitlines()
            lines += [match[1] for line in joined if (match := LINE.match(line.strip()))]
        text = text[: block.place[0]] + text[block.place[1] :]
    for line in (*lines, *IN_TEXT.findall(text)):
        reader = shlex.shlex(line, posix=True, punctuation_chars="|>;&")
        reader.whitespace_split = True
        words = list(reader)
        end = next((number for number, word in enumerate(words) if set(word) <= set("|>;&")), len(words))
        yield ["hit" if word == "VERB" else word for word in words[1:end]]


def parse(words: list[str]) -> None:
    """Read a command line as the program does, and run nothing; a fault is an exception."""
    if words and words[0] in FOREIGN:
        flags = FOREIGN[words[0]]
        allowed = {f"-{flag.name}" for flag in flags} | {f"--{flag.long}" for flag in flags if flag.long}
        own = words[: words.index("--")] if "--" in words else words
        for word in (word for word in own if word.startswith("-")):
            assert any(word == flag or (flag == word[:2] and flag[1] != "-") for flag in allowed), word
        return
    group = typer.main.get_command(app)
    assert isinstance(group, click.Group)
    try:
        context = group.make_context("loadlens", list(words))
        name, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None
        command.make_context(name, list(rest), parent=context)
    except (typer.Exit, click.exceptions.Exit, click.MissingParameter):
        return  # --help and --version; a command in a sentence, without its URL


@pytest.mark.parametrize("page", [page for page in PAGES if any(command_lines(page))], ids=name_of)
def test_every_command_line_is_one_that_loadlens_reads(page: Path) -> None:
    faults = []
    for words in command_lines(page):
        try:
            parse(words)
        except (click.UsageError, UsageError, AssertionError) as fault:
            faults.append(f"loadlens {shlex.join(words)}: {fault}")

    assert faults == []


def studies(page: Path) -> list[examples.Block]:
    """Return the blocks that hold a whole study: with an entry, and a load or experiments."""
    return [
        block
        for block in examples.blocks(page.read_text(encoding="utf-8"))
        if block.language == "yaml"
        and re.search(r"^entry:", block.text, re.MULTILINE)
        and re.search(r"^(load|experiments):", block.text, re.MULTILINE)
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if studies(page)], ids=name_of)
def test_every_study_is_one_that_check_accepts(page: Path, tmp_path: Path) -> None:
    examples.write_files(page.read_text(encoding="utf-8"), tmp_path)
    for name in ("ca.pem", "client.pem", "client.key"):
        (tmp_path / name).touch()

    for number, block in enumerate(studies(page)):
        study = tmp_path / (block.title or f"study-{number}.yaml")
        study.write_text(block.text, encoding="utf-8")
        planned_study(study, quick=False, settings=(), variants=())
