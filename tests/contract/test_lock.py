"""The locked packages are what pyproject.toml asks for; `make lock` writes them again."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS, GROUPS = PYPROJECT["project"]["optional-dependencies"], PYPROJECT["dependency-groups"]
TO_RUN = [*PYPROJECT["project"]["dependencies"], *EXTRAS["lab"], *GROUPS["build"]]
WANTED = {
    "run.txt": TO_RUN,
    "dev.txt": [*TO_RUN, *EXTRAS["fleet"], *EXTRAS["dev"]],
    "wheel.txt": GROUPS["wheel"],
    "site.txt": GROUPS["site"],
}


def locked(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / name).read_text()
    pins = re.findall(r"^(\S+)==(\S+)", text, re.MULTILINE)
    return {canonicalize_name(package): version for package, version in pins}


@pytest.mark.parametrize(("name", "wanted"), WANTED.items())
def test_every_requirement_is_locked_at_a_version_that_it_allows(name: str, wanted: list[str]) -> None:
    pins = locked(name)

    for requirement in map(Requirement, wanted):
        version = pins.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in requirements/{name}: run `make lock`"
        assert requirement.specifier.contains(version), f"{requirement}, locked {version}: run `make lock`"


def test_running_and_developing_use_the_same_versions() -> None:
    assert locked("run.txt").items() <= locked("dev.txt").items()


def test_building_the_site_changes_no_package_of_the_environment() -> None:
    dev, site = locked("dev.txt"), locked("site.txt")

    assert {name: site[name] for name in site.keys() & dev.keys()}.items() <= dev.items()


@pytest.mark.parametrize("name", WANTED)
def test_the_lock_names_no_package_index(name: str) -> None:
    assert "://" not in (ROOT / "requirements" / name).read_text()
