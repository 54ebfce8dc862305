"""Builds in a copy of the service's folder, with the real tools."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import urllib.request
from pathlib import Path

import pytest

from loadlens.errors import TestbedError
from loadlens.model.topology import Build, Entry, Ready, Service
from loadlens.testbed import build, prepare, staging
from tests.end_to_end.testbed_cases import bed_of

APP = """
import { createServer } from "node:http";
import { word } from "greeting";
createServer((_, answer) => answer.end(word)).listen(Number(process.argv[2]), "127.0.0.1");
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A Node service with one dependency, which needs no registry."""
    made = tmp_path / "service"
    (made / "greeting").mkdir(parents=True)
    (made / "greeting" / "package.json").write_text(
        json.dumps({"name": "greeting", "version": "1.0.0", "type": "module", "exports": "./index.js"})
    )
    (made / "greeting" / "index.js").write_text('export const word = "hello";')
    (made / "package.json").write_text(
        json.dumps({"name": "app", "type": "module", "dependencies": {"greeting": "file:./greeting"}})
    )
    (made / "app.js").write_text(APP)
    return made


def service(home: Path) -> Service:
    return Service(
        "api",
        start="node app.js $port",
        dir=str(home),
        build=Build("node", "package.json"),
        ready=Ready("/", within_s=20.0),
    )


def said(bed_folder: Path, made: Service) -> str:
    with bed_of(made, folder=bed_folder, marker=f"test-{secrets.token_hex(6)}") as bed:
        bed.start()
        target = bed.target(Entry("api"))
        with urllib.request.urlopen(f"http://{target.authority}/", timeout=5) as response:
            return str(response.read().decode())


needs_node = pytest.mark.skipif(shutil.which("npm") is None, reason="no npm here")


@needs_node
def test_a_node_service_runs_in_a_copy_and_its_own_folder_stays_as_it_is(tmp_path: Path, home: Path) -> None:
    before = sorted(path.relative_to(home) for path in home.rglob("*"))

    first = said(tmp_path, service(home))
    (home / "greeting" / "index.js").write_text('export const word = "good day";')
    second = said(tmp_path, service(home))

    assert (first, second) == ("hello", "good day")
    assert sorted(path.relative_to(home) for path in home.rglob("*")) == before
    assert len(list((tmp_path / "cache" / "node").glob("*.json"))) == 2


@needs_node
def test_a_failed_build_speaks_with_the_tools_words_and_leaves_nothing_that_counts(
    tmp_path: Path, home: Path
) -> None:
    (home / "package.json").write_text('{"name": "app", "dependencies": {"greeting": "file:./nowhere"}}')
    (home / "app.js").write_text('import "no-such-package";')
    (home / "package-lock.json").write_text("{")

    with pytest.raises(TestbedError, match="build of api failed") as raised:
        prepare([service(home)], cache=tmp_path / "cache", folder=tmp_path)

    assert "npm" in raised.value.message
    assert raised.value.hint is not None
    assert list((tmp_path / "cache" / "node").glob("*.json")) == []


@needs_node
def test_a_half_made_entry_that_nobody_could_remove_is_made_anew(tmp_path: Path, home: Path) -> None:
    # as a machine leaves it whose power failed: the folder is there, its seal is not
    digest = staging.digest_of(home, "node", (build._version("node", os.environ),), "api")
    entry = tmp_path / "cache" / "node" / digest
    entry.mkdir(parents=True)
    (entry / "half-built").touch()

    made = prepare([service(home)], cache=tmp_path / "cache", folder=tmp_path).environment("api")

    assert made.folder == entry
    assert entry.with_suffix(".json").exists()
    assert not (entry / "half-built").exists()
    assert (entry / "node_modules" / "greeting").exists()


@pytest.mark.skipif(shutil.which("mix") is None, reason="no mix here")
def test_a_project_whose_registry_cannot_be_reached_is_refused_in_the_words_of_mix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # nothing listens there
    made = tmp_path / "service"
    made.mkdir()
    (made / "mix.exs").write_text(
        "defmodule A.MixProject do\n  use Mix.Project\n"
        '  def project, do: [app: :a, version: "1.0.0", deps: [{:jason, "~> 1.4"}]]\nend\n'
    )
    needs_hex = Service("api", start="mix run --no-halt", dir=str(made), build=Build("mix", "mix.exs"))

    with pytest.raises(TestbedError, match="build of api failed") as raised:
        prepare([needs_hex], cache=tmp_path / "cache", folder=tmp_path)

    assert "Could not install Hex" in raised.value.message
    assert "Hex registry" in (raised.value.hint or "")
    assert [path.suffix for path in (tmp_path / "cache" / "mix").iterdir()] == [".lock"]


POM = """
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>app</groupId>
  <artifactId>app</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source>
    <maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <build><finalName>app</finalName></build>
</project>
"""
JAVA = """
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;

public class App {
    public static void main(String[] words) throws Exception {
        InetSocketAddress place = new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0]));
        HttpServer server = HttpServer.create(place, 0);
        server.createContext("/", exchange -> {
            byte[] word = "GREETING".getBytes();
            exchange.sendResponseHeaders(200, word.length);
            exchange.getResponseBody().write(word);
            exchange.close();
        });
        server.start();
    }
}
"""
needs_maven = pytest.mark.skipif(
    shutil.which("mvn") is None or shutil.which("javac") is None, reason="no Maven or no JDK here"
)


def in_java(home: Path, text: str) -> Service:
    sources = home / "src" / "main" / "java"
    sources.mkdir(parents=True, exist_ok=True)
    (home / "pom.xml").write_text(POM)
    (sources / "App.java").write_text(text)
    return Service(
        "api",
        start="java -cp target/app.jar App $port",
        dir=str(home),
        build=Build("maven", "pom.xml"),
        ready=Ready("/", within_s=60.0),
    )


@needs_maven
def test_a_java_service_is_packaged_once_in_a_copy_and_says_how_far_it_is(tmp_path: Path) -> None:
    home = tmp_path / "service"
    made = in_java(home, JAVA.replace("GREETING", "hello"))
    lines: list[str] = []

    prepare([made], cache=tmp_path / "cache", on_line=lines.append, folder=tmp_path)
    shown = len(lines)
    answer = said(tmp_path, made)
    prepare([made], cache=tmp_path / "cache", on_line=lines.append, folder=tmp_path)

    assert answer == "hello"
    assert any("maven-jar-plugin" in line or "jar:" in line for line in lines)  # Maven's own words
    assert len(lines) == shown  # the second build is the first
    assert not (home / "target").exists()


@needs_maven
def test_a_java_service_that_does_not_compile_is_refused_in_the_compilers_words(tmp_path: Path) -> None:
    made = in_java(tmp_path / "service", JAVA.replace('"GREETING"', "greeting"))

    with pytest.raises(TestbedError, match="build of api failed") as raised:
        prepare([made], cache=tmp_path / "cache", folder=tmp_path)

    assert "App.java:[10," in raised.value.message
    assert "variable greeting" in raised.value.message
    assert "pom.xml" in (raised.value.hint or "")
    assert list((tmp_path / "cache" / "maven").glob("*.json")) == []


def test_a_java_service_names_every_program_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = in_java(tmp_path / "service", JAVA)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(
        TestbedError, match=r"lacks mvn \(for api\), java \(for api\), javac \(for api\)"
    ) as raised:
        prepare([made], cache=tmp_path / "cache", folder=tmp_path)

    assert raised.value.hint == "apt-get install maven default-jre-headless default-jdk-headless"


@pytest.mark.parametrize(
    ("project", "fetches"),
    [
        ("deps: []", False),
        ('deps: [{:jason, "~> 1.4"}]', True),
        ('{:phoenix, "== 1.7.23"},', True),
        ('{ :mine, git: "https://example.test/mine.git" }', True),
        ('[{:api, "/items"}, {:ok, "yes"}]', False),
    ],
)
def test_only_a_project_with_dependencies_fetches_any(tmp_path: Path, project: str, fetches: bool) -> None:
    (tmp_path / "mix.exs").write_text(project)

    commands = staging.KINDS["mix"].commands(tmp_path)

    assert (("mix", "deps.get", "--only", "prod") in commands) is fetches
    assert commands[-1] == ("mix", "compile")


def test_the_digest_follows_names_content_and_tools_but_not_what_a_build_makes(home: Path) -> None:
    def digest(versions: tuple[str, ...] = ("v20",)) -> str:
        return staging.digest_of(home, "node", versions, "api")

    first = digest()
    (home / "node_modules" / "x").mkdir(parents=True)
    (home / "node_modules" / "x" / "index.js").write_text("1")
    with_modules = digest()
    other_tool = digest(("v22",))
    (home / "app.js").rename(home / "main.js")

    assert with_modules == first
    assert len({first, other_tool, digest()}) == 3
