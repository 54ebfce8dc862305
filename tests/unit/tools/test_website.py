"""Pages that are written for GitHub become pages of the site."""

from __future__ import annotations

from pathlib import Path

from tools import docs, website


def test_what_is_nested_in_a_list_is_indented_by_four_spaces_a_level() -> None:
    text = "1. Write it:\n\n   ```python\n   a\n     b\n   ```\n   and\n2. Test it:\n   - once\n     more\n"

    expected = (
        "1. Write it:\n\n    ```python\n    a\n      b\n    ```\n    and\n"
        "2. Test it:\n    - once\n        more\n"
    )
    assert website.indented(text) == expected


def test_a_list_is_parted_from_the_paragraph_above_it() -> None:
    assert website.indented("Two things:\n- a\n- b\n\nDone\n") == "Two things:\n\n- a\n- b\n\nDone\n"


def test_code_outside_lists_stays_as_it_is() -> None:
    text = "```yaml\na:\n  - b\n  - c\n```\n"

    assert website.indented(text) == text


def test_llms_txt_has_a_line_for_every_page_of_the_contents() -> None:
    entries = [entry for section in docs.contents().values() for entry in section]

    rows = [line for line in docs.llms().splitlines() if line.startswith("- ")]

    assert len(rows) == len(entries) > 40
    assert docs.llms().startswith("# Loadlens\n\n> ")


def test_the_whole_text_has_every_page() -> None:
    entries = [entry for section in docs.contents().values() for entry in section]

    full = docs.llms_full()

    assert [entry.uri for entry in entries if f"<!-- {entry.uri} -->" not in full] == []


def test_a_page_outside_docs_has_a_place_in_the_site() -> None:
    study = docs.Entry("Register", docs.ROOT / "studies" / "register" / "README.md", "a study")

    assert study.uri == "studies/register.md"
    assert docs.Entry("Cli", Path(docs.DOCS / "reference" / "cli.md"), "").uri == "reference/cli.md"
