"""The README's first command, as `tools/wheel.py` finds it, and what the image's build sees of the source."""

from __future__ import annotations

import re
import tomllib

import pytest
from tools.wheel import ROOT, CheckError, first_command

README = """
`loadlens text` is no block.

```
pip install loadlens-0.1.0.whl
make demo
```

```console
$ loadlens explain URL
The pool is too small.
```

```
loadlens demo 'pool too small'   # half a minute
loadlens doctor
```
"""


def test_the_first_command_is_the_first_line_of_a_block_that_calls_loadlens() -> None:
    assert first_command(README) == ["loadlens", "demo", "pool too small"]


def test_a_readme_without_a_command_is_a_fault() -> None:
    with pytest.raises(CheckError, match="no block of code"):
        first_command("```\nmake demo\n```\n")


def test_our_readme_has_a_first_command() -> None:
    assert first_command((ROOT / "README.md").read_text())[0] == "loadlens"


def test_all_that_a_wheel_is_built_from_reaches_the_build_of_the_image() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    maturin = project["tool"]["maturin"]
    sources = {maturin["python-source"], maturin["data"], maturin["manifest-path"].split("/")[0]}
    texts = {project["project"]["readme"], *project["project"]["license-files"]}
    dockerfile = (ROOT / "Dockerfile").read_text()
    run = set(re.findall(r"(?:tools|requirements)/[\w.]+", dockerfile))

    sent = set(re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))

    assert {"tools/wheel.py", "requirements/wheel.txt", "requirements/run.txt"} == run
    for name in sources | texts | {"Cargo.toml", "Cargo.lock", "tools/wheel.py", "requirements"}:
        assert name in sent
        assert (ROOT / name).exists()
