"""A study file -> a Definition, or all of its faults with their lines.

`yaml.py` reads the text, `shape.py` is the vocabulary that `keys_*.py` describe the format in, `links.py`
and `results.py` see that the parts fit together. What the lab cannot run yet is refused by name.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from loadlens.study.definition import Definition, Faults, Place
from loadlens.study.parse import links, placeholders, results
from loadlens.study.parse.keys_study import STUDY
from loadlens.study.parse.schema import MISSING, At
from loadlens.study.parse.yaml_tree import MOST_BYTES, Tree, load

STUDY_FILE: Final = "study.yaml"

__all__ = ["STUDY_FILE", "read"]


def read(path: Path) -> Definition:
    """The study in a file, or in a folder that holds `study.yaml`.

    Raises:
        DefinitionErrors: All faults of the file, each with its line, its key path and a hint.
    """
    faults = Faults()
    file = path / STUDY_FILE if path.is_dir() else path
    definition = _read(file, faults)
    faults.raise_any()
    assert definition is not None, "a file without faults gives a definition"
    return definition


def _read(file: Path, faults: Faults) -> Definition | None:
    place = Place(str(file), 1)
    try:
        with file.open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        faults.add(
            f"the study cannot be read: {reason.lower()}", place, "a study file, or a folder with study.yaml"
        )
        return None
    tree = load(raw, str(file), faults)
    if tree is None:
        return None
    if not isinstance(tree, Tree):
        faults.add("a study is a mapping of keys", Place(str(file), tree.line), "begin with `schema: 1`")
        return None
    names = placeholders.names_of(tree)
    definition = STUDY.read(tree, At(str(file), names, faults))
    if definition is MISSING:
        return None
    assert isinstance(definition, Definition)
    definition = replace(
        definition, place=place, folder=str(file.resolve().parent), text=raw.decode("utf-8-sig")
    )
    links.check(definition, tree, names, faults)
    return results.check(definition, tree, faults)
