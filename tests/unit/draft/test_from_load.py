"""YAML of a saved study, read back by the study's own reader and by another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from loadlens.draft.from_load import _leaf
from loadlens.draft.write import block
from loadlens.study.definition import Faults
from loadlens.study.parse import yaml_tree
from tests.unit.study.plain_tree import plain

TEXT = st.text(max_size=12).filter(lambda text: "\0" not in text)
ODD = ["", "no", "012", "1e3", "~", "a: b", "a #b", "[0]", "{{uuid}}", "- a", "a\nb", "\x7f", "\ufeff"]
WORDS = st.sampled_from([*ODD, "&a", "*a", "? a"])
VALUES = st.recursive(
    st.one_of(TEXT, WORDS, st.integers(-9, 10**9), st.booleans(), st.none(), st.floats(0.001, 1e6)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(TEXT, WORDS).filter(bool), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["entry", "load", "x"]), VALUES, min_size=1))
def test_what_is_written_is_read_back(content: dict[str, object]) -> None:
    text = "\n".join(block(content, leaf=_leaf)) + "\n"
    faults = Faults()

    tree = yaml_tree.load(text.encode(), "study.yaml", faults)

    assert len(faults) == 0, faults.first()
    assert tree is not None
    assert plain(tree) == content
    assert YAML(typ="safe", pure=True).load(text) == content
