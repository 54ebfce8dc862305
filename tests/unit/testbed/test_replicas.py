"""Plans of replicas before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadlens.model.topology import Service
from loadlens.testbed.build import Prepared
from loadlens.testbed.ports import Ports
from loadlens.testbed.replicas import Replica, Surroundings, lay_out


def planned(start: str, env: tuple[tuple[str, str], ...] = ()) -> Replica:
    home = Path("/study")
    around = Surroundings(Prepared({"api": home}, {}), Path("/scratch"), Path("/logs"), {}, Path("/own"))
    service = Service("api", start=start, ports=(), env=env)
    return lay_out([service], around, Ports())[0]["api"][0]


@pytest.mark.parametrize("program", ["java", "/opt/jdk/bin/java"])
def test_a_jvm_keeps_its_temporary_files_in_the_folder_of_its_replica(program: str) -> None:
    replica = planned(f"{program} -Xmx1g -jar app.jar")

    assert replica.command.argv == (program, "-Djava.io.tmpdir=/own/api", "-Xmx1g", "-jar", "app.jar")


def test_a_folder_that_the_study_names_for_a_jvm_is_kept() -> None:
    replica = planned("java -Djava.io.tmpdir=/mine -jar app.jar")

    assert replica.command.argv == ("java", "-Djava.io.tmpdir=/mine", "-jar", "app.jar")


def test_every_program_finds_its_folder_for_temporary_files_in_its_environment() -> None:
    assert planned("serve").command.env["TMPDIR"] == "/own/api"
    assert planned("serve", env=(("TMPDIR", "/mine"),)).command.env["TMPDIR"] == "/mine"
