"""A study file -> a Definition, or all of its faults with their lines.

`yaml_tree.py` reads the text, `schema.py` is the vocabulary that `keys_*.py` describe the format in,
`unknown_keys.py` notes every other key, `short_forms.py` fills in what a short study leaves out,
`links.py` sees that the parts fit together. What the lab cannot run yet is refused by name.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from loadlens import named_pipes
from loadlens.study.definition import Definition, Experiment, Faults, Place
from loadlens.study.parse import links, placeholders, short_forms, unknown_keys
from loadlens.study.parse.keys_load import EXPERIMENT
from loadlens.study.parse.keys_study import STUDY
from loadlens.study.parse.schema import At
from loadlens.study.parse.yaml_tree import MOST_BYTES, load
from loadlens.study.tree import Tree, items_at

STUDY_FILE: Final = "study.yaml"
_MOST_UNKNOWN: Final = 100  # keys; a file with more is no study, and nothing else in it is judged

__all__ = ["STUDY_FILE", "read"]


def read(path: Path) -> Definition:
    """The study in a file, in a folder that holds `study.yaml`, or on standard input (`-`).

    Raises:
        DefinitionErrors: All faults of the file, each with its line, its key path and a hint.
    """
    faults = Faults()
    file = path / STUDY_FILE if path.is_dir() else path
    is_stdin = str(path) == "-"
    definition = _read(None if is_stdin else file, faults)
    faults.raise_any()
    assert definition is not None, "a file without faults gives a definition"
    return definition


def read_text(text: str, file: Path) -> Definition:
    """The study in a text that stands, or will stand, in a file.

    Raises:
        DefinitionErrors: As `read`.
    """
    faults = Faults()
    definition = _parsed(text.encode(), file, faults)
    faults.raise_any()
    assert definition is not None, "a text without faults gives a definition"
    return definition


def _read(path: Path | None, faults: Faults) -> Definition | None:
    file = "stdin" if path is None else str(path)
    try:
        most = MOST_BYTES + 1
        raw = sys.stdin.buffer.read(most) if path is None else named_pipes.read(path, most)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        hint = "a study file, or a folder with study.yaml"
        faults.add(f"the study cannot be read: {reason.lower()}", Place(file, 0), hint)
        return None
    return _parsed(raw, path, faults)


def _parsed(raw: bytes, path: Path | None, faults: Faults) -> Definition | None:
    file = "stdin" if path is None else str(path)
    place = Place(file, 1)
    tree = load(raw, file, faults)
    if tree is None:
        return None
    if not isinstance(tree, Tree):
        faults.add("a study is a mapping of keys", Place(file, tree.line), "begin with `entry: URL`")
        return None
    folder = Path.cwd() if path is None else path.resolve().parent
    at = At(file, str(folder), placeholders.Names(frozenset(), frozenset()), faults)
    if unknown_keys.note(STUDY, tree, at) >= _MOST_UNKNOWN:
        return None
    tree = short_forms.completed(tree, path, at)
    at = replace(at, names=placeholders.names_of(tree))
    fields = STUDY.fields(tree, at)
    links.check(tree, fields.get("params", {}), at)
    if len(faults):
        return None
    return Definition(
        place=place,
        folder=at.folder,
        text=raw.decode("utf-8-sig"),
        tree=tree,
        names=at.names,
        experiments=experiments_of(tree, at),
        **{name: fields[name] for name in _TYPED if name in fields},
        **fields.get("order", {}),
    )


_TYPED: Final = (
    "study",
    "question",
    "params",
    "objectives",
    "published",
    "claims",
    "report",
    "notes",
    "samples",
    "traceparent",
    "hide",
    "fleet",
)


def experiments_of(tree: Tree, at: At) -> dict[str, Experiment]:
    """The experiments of a study with their factors; everything else of them is read case by case."""
    experiments = {}
    for name, node in items_at(tree, "experiments").items():
        if isinstance(node, Tree):
            below = at.below("experiments", name)
            factors = EXPERIMENT.value(node, below, "factors", {})
            hold_out = EXPERIMENT.value(node, below, "hold_out")
            rest = node.without("factors", "hold_out")
            experiments[name] = Experiment(below.place(node.line), rest, factors, hold_out)
    return experiments
