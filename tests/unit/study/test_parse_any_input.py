"""Any input at all gives a definition or faults with places: never a traceback.

`LOADLENS_EXAMPLES=n` tries more of it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadlens import engine
from loadlens.errors import DefinitionErrors
from loadlens.study import lint, parse, plan
from loadlens.study.definition import Faults
from loadlens.study.parse import yaml_tree as study_yaml
from loadlens.study.parse.keys_study import STUDY
from tests.unit.study.plain_tree import plain
from tests.unit.study.test_parse import EVERYTHING, keys_of_the_format


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studies") / "everything"
    shutil.copytree(EVERYTHING, folder)
    return folder


def definition_or_faults(home: Path, raw: bytes) -> None:
    """Read, plan, check; anything but an expected fault with places fails the test."""
    (home / "study.yaml").write_bytes(raw)
    try:
        definition = parse.read(home)
        for quick in (False, True):
            study = plan.plan(definition, quick=quick, read_due_times=engine.read_due_times)
            assert len(plan.order(study)) == sum(case.trials for case in study.cases)
            assert plan.duration(study).seconds > 0
            lint.faults(study, cores=2)
    except DefinitionErrors as caught:
        faults = caught.faults
    else:
        return
    assert faults
    assert all(fault.message and re.match(r".+:\d+", fault.where or "") for fault in faults)


_EXAMPLES = int(os.environ.get("LOADLENS_EXAMPLES", "25"))
_FUZZ = settings(max_examples=_EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@_FUZZ
@given(raw=st.binary(max_size=400))
def test_any_bytes_give_a_definition_or_faults(home: Path, raw: bytes) -> None:
    definition_or_faults(home, raw)


@_FUZZ
@given(data=st.data())
def test_a_study_with_any_bytes_in_it_gives_a_definition_or_faults(home: Path, data: st.DataObject) -> None:
    raw = (EVERYTHING / "study.yaml").read_bytes()
    for _ in range(data.draw(st.integers(1, 4))):
        begin = data.draw(st.integers(0, len(raw)))
        end = min(begin + data.draw(st.integers(0, 8)), len(raw))
        raw = raw[:begin] + data.draw(st.one_of(st.binary(max_size=6), st.sampled_from(_BYTES))) + raw[end:]

    definition_or_faults(home, raw)


# Not UTF-8, a surrogate, control characters, marks of other encodings, a direction, ends of lines, the last.
_BYTES = [
    b"\xff", b"\xed\xa0\x80", b"\x1b[31m", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", "\u202e".encode(),
    "\u2028".encode(), b"\x85", b"\r", b"\t", b"\x7f", "\U0010ffff".encode(),
]  # fmt: skip

_LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12),
    st.sampled_from(["$users", "$port", "$db.url", "{{uuid}}", "$", "$$", "web", "20s", "30%", "1k", "http://x:y/"]),
)  # fmt: skip
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(sorted(set(keys_of_the_format()))), inner, max_size=4),
        st.dictionaries(st.text(max_size=8), inner, max_size=2),
    ),
    max_leaves=12,
)


@_FUZZ
@given(key=st.sampled_from(list(STUDY.keys)), tree=_TREES)
def test_any_content_of_a_key_gives_a_definition_or_faults(home: Path, key: str, tree: Any) -> None:
    whole = study_yaml.load((EVERYTHING / "study.yaml").read_bytes(), "study.yaml", Faults())
    assert whole is not None

    definition_or_faults(home, json.dumps({**plain(whole), key: tree}, allow_nan=True).encode())


@_FUZZ
@given(data=st.data())
def test_a_study_with_slips_gives_a_definition_or_faults(home: Path, data: st.DataObject) -> None:
    words = re.split(r"(\W)", (EVERYTHING / "study.yaml").read_text())
    spares = [
        "{",
        "}",
        "[",
        "]",
        ":",
        "&x",
        "*x",
        "<<",
        "!!str",
        "$x",
        "'",
        "\n",
        "  ",
        "-1",
        "0",
        "~",
        "1e9",
        "é",
    ]
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(words) - 1))
        words[place] = data.draw(st.sampled_from([*spares, *words]))

    definition_or_faults(home, "".join(words).encode())
