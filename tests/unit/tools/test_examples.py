"""The marks of console blocks in the documentation."""

from __future__ import annotations

from pathlib import Path

from tools import examples

PAGE = """# A page

```yaml title="a.yaml"
entry: http://127.0.0.1:8080
```

<!-- run: exit 99, head 2, exact -->
```console
$ loadlens check a.yaml \\
    --quick
old output
$ loadlens version
```

```console
$ loadlens hit URL
```
"""


def test_a_mark_says_how_a_command_ends_and_what_is_kept() -> None:
    study, marked, shown = examples.blocks(PAGE)

    assert (study.title, study.language, study.is_run) == ("a.yaml", "yaml", False)
    assert (marked.is_run, marked.exit_code, marked.head, marked.is_exact) == (True, 99, 2, True)
    assert (shown.is_run, shown.exit_code, shown.head) == (False, 0, None)


def test_a_block_can_hold_several_commands_and_continued_lines() -> None:
    marked = examples.blocks(PAGE)[1]

    assert examples.commands(marked.text) == ["loadlens check a.yaml --quick", "loadlens version"]


def test_titled_blocks_become_files_next_to_the_shop(tmp_path: Path) -> None:
    examples.write_files(PAGE, tmp_path)

    assert (tmp_path / "a.yaml").read_text() == "entry: http://127.0.0.1:8080\n"
    assert (tmp_path / "shop.py").exists()
