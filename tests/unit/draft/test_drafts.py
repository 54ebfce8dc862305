"""Requests of other tools become studies, and what then arrives at a server is what the input says."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from loadlens import engine
from loadlens.cli.init import InitOptions, draft_of
from loadlens.draft import Draft, Request, curl, path_of, usable
from loadlens.draft.write import text_of
from loadlens.errors import UsageError
from loadlens.model.study import PlannedTrial
from loadlens.model.workload import Closed, Target
from loadlens.run import engine_plan
from loadlens.study import lint, parse, plan
from loadlens.study.definition import Definition

Arrived = tuple[str, str, dict[str, str], str]


class Server(ThreadingHTTPServer):
    """Keeps the requests that arrive."""

    def __init__(self) -> None:
        self.arrived: list[Arrived] = []
        super().__init__(("127.0.0.1", 0), Keeper)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Keeper(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.arrived.append((self.command, self.path, headers, body))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        yield made
        made.shutdown()


def written(tmp_path: Path, *words: str) -> tuple[Path, str]:
    """Run `loadlens init`; the study, and what it says about it."""
    out = tmp_path / "out.yaml"
    command = [sys.executable, "-m", "loadlens", "init", *words, "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    return out, done.stderr


def one_round(study_file: Path, server: Server) -> list[Arrived]:
    """What one user sends in one iteration of the study."""
    study = plan.plan(parse.read(study_file), templates=engine)
    assert [fault for fault in lint.faults(study, cores=2) if not fault.is_note] == []
    case = replace(study.cases[0], workload=Closed(1, iterations=1), probes=(), warmup_ns=0, duration_ns=None)
    server.arrived.clear()
    port = server.server_port
    made = engine_plan.plan_of(PlannedTrial(case, 1, 1, 1), Target("127.0.0.1", port, f"127.0.0.1:{port}"))
    run = engine.Run(made)
    run.start()
    assert run.wait(20)
    run.result()
    return server.arrived


def sent(arrived: Arrived, *headers: str) -> tuple[str, str, dict[str, str], str]:
    """A request with some of its headers."""
    method, path, given, body = arrived
    return method, path, {name: given[name] for name in headers}, body


def test_a_url_is_asked_once_and_becomes_a_study_that_runs(tmp_path: Path, server: Server) -> None:
    url = f"http://127.0.0.1:{server.server_port}/orders?sort=up"

    study, said = written(tmp_path, url)

    assert [arrived[:2] for arrived in server.arrived] == [("GET", "/orders?sort=up")]
    assert "It answered 200 when this file was written." in study.read_text()
    assert f"next: loadlens check {study}" in said
    assert [arrived[:2] for arrived in one_round(study, server)] == [("GET", "/orders?sort=up")]


def test_a_url_with_a_secret_is_asked_with_it_and_nothing_shows_it(tmp_path: Path, server: Server) -> None:
    secret = "0f1e2d3c4b5a"
    url = f"http://shop:{secret}@127.0.0.1:{server.server_port}/orders?token={secret}"

    study, notes = written(tmp_path, url)
    dead = f"http://shop:{secret}@127.0.0.1:1/orders?token={secret}"
    command = [sys.executable, "-m", "loadlens", "init", dead, "-o", str(tmp_path / "no.yaml")]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)

    assert [arrived[:2] for arrived in server.arrived] == [("GET", f"/orders?token={secret}")]
    assert refused.returncode == 3
    assert "no answer from" in refused.stderr
    assert not [text for text in (study.read_text(), notes, refused.stderr) if secret in text]


def test_a_study_is_not_overwritten_without_force(tmp_path: Path, server: Server) -> None:
    url = f"http://127.0.0.1:{server.server_port}/"
    study, _ = written(tmp_path, url)
    study.write_text("mine")

    with pytest.raises(AssertionError, match="--force"):
        written(tmp_path, url)
    assert study.read_text() == "mine"
    assert written(tmp_path, url, "--force")[0].read_text() != "mine"


@pytest.mark.parametrize(
    "quoted", [r"\x4b\x4 \u00e9 \101\1018 \d \e\?\'\\ \u12z", r"\a\b\f\n\r\t\v\E\"\x", "\\\u4e2d"]
)
def test_escapes_are_undone_as_a_shell_does(quoted: str) -> None:
    shell = ["bash", "-c", f"printf %s $'{quoted}'"]
    printed = subprocess.run(shell, capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}).stdout

    (request,) = curl.read(f"curl http://127.0.0.1/ --data-raw $'{quoted}'", "a.sh").requests

    assert request.body == printed.decode()


def test_a_curl_line_arrives_as_curl_would_send_it(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = f"http://127.0.0.1:{server.server_port}"
    body = '{"name":"O\'Brien","price":"$5","password":"hunter2"}'
    quoted = body.replace("'", r"\'")
    (tmp_path / "a.sh").write_text(
        f"curl '{origin}/orders?x=1&token=abc' \\\n  -X PUT -H 'Authorization: Bearer s3cr3t' \\\n"
        f"  -H 'Content-Type: application/json' -sS --data-raw $'{quoted}'\n"
        f"curl -u 'alice:pw' {origin}/plain -d a=1 -d b=2 && curl -I {origin}/head\n"
    )

    study, said = written(tmp_path, "--from", "curl", "a.sh")

    text = study.read_text()
    assert not [secret for secret in ("s3cr3t", "hunter2", "abc", "pw") if secret in text]
    assert "1 HEAD requests" in said
    secrets = {"AUTHORIZATION": "Bearer s3cr3t", "TOKEN": "abc", "PASSWORD": "hunter2", "PASSWORD_2": "pw"}
    for name, value in secrets.items():
        assert f"export {name} " in said
        monkeypatch.setenv(name, value)
    first, second = one_round(study, server)
    of_json = {"authorization": "Bearer s3cr3t", "content-type": "application/json"}
    assert sent(first, *of_json) == ("PUT", "/orders?x=1&token=abc", of_json, body)
    of_form = {
        "authorization": "Basic YWxpY2U6cHc=",  # printf alice:pw | base64
        "content-type": "application/x-www-form-urlencoded",
    }
    assert sent(second, *of_form) == ("POST", "/plain", of_form, "a=1&b=2")


def test_the_requests_of_a_har_file_arrive_in_their_order(tmp_path: Path, server: Server) -> None:
    origin = f"http://127.0.0.1:{server.server_port}"

    def entry(method: str, url: str, **more: Any) -> dict[str, Any]:
        headers = [{"name": ":authority", "value": "x"}, {"name": "X-Shop", "value": "7: 'a' #b"}]
        return {
            "request": {"method": method, "url": url, "headers": headers, **more},
            "response": {"status": 200},
        }

    post = {"mimeType": "text/plain", "text": "line one\nline two: {a} é"}
    entries = [
        entry("GET", f"{origin}/a"),
        entry("GET", "https://cdn.example/x.js"),
        entry("POST", f"{origin}/a", postData=post),
    ]
    (tmp_path / "shop.har").write_text(json.dumps({"log": {"entries": entries}}))

    study, said = written(tmp_path, "--from", "har", "shop.har")

    assert "1 requests to https://cdn.example" in said
    shop = {"x-shop": "7: 'a' #b"}
    assert [sent(each, "x-shop") for each in one_round(study, server)] == [
        ("GET", "/a", shop, ""),
        ("POST", "/a", shop, "line one\nline two: {a} é"),
    ]


def test_a_postman_collection_keeps_folders_variables_and_credentials(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = {
        "variable": [{"key": "base", "value": f"http://127.0.0.1:{server.server_port}"}],
        "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "s3cr3t"}]},
        "item": [
            {
                "name": "folder",
                "item": [{"name": "list", "request": {"method": "GET", "url": "{{base}}/list"}}],
            },
            {
                "name": "make",
                "event": [{"listen": "test"}],
                "request": {
                    "method": "POST",
                    "url": {"raw": "{{base}}/make/{{shop}}"},
                    "header": [{"key": "X-Off", "value": "1", "disabled": True}],
                    "auth": {"type": "noauth"},
                    "body": {"mode": "urlencoded", "urlencoded": [{"key": "a b", "value": "1&2"}]},
                },
            },
        ],
    }
    (tmp_path / "c.json").write_text(json.dumps(collection))

    study, said = written(tmp_path, "--from", "postman", "c.json")

    assert "s3cr3t" not in study.read_text()
    assert "scripts of make" in said
    monkeypatch.setenv("AUTHORIZATION", "Bearer s3cr3t")
    monkeypatch.setenv("SHOP", "oslo")
    listed, made = one_round(study, server)
    assert sent(listed, "authorization") == ("GET", "/list", {"authorization": "Bearer s3cr3t"}, "")
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert sent(made, "content-type") == ("POST", "/make/oslo", kind, "a%20b=1%262")
    assert {"x-off", "authorization"}.isdisjoint(made[2])


OPENAPI = """\
openapi: 3.0.3
servers: [{url: /v1}]
paths:
  /items:
    get: {parameters: [{name: limit, in: query, required: true, schema: {type: integer, minimum: 10}}]}
    post:
      requestBody:
        content: {application/json: {schema: {$ref: "#/components/schemas/Item"}}}
  /items/{id}:
    parameters: [{name: id, in: path, required: true, schema: {type: string, example: a/b}}]
    get: {security: [{key: []}]}
    delete: {}
components:
  securitySchemes: {key: {type: apiKey, in: header, name: X-Api-Key}}
  schemas:
    Item:
      type: object
      required: [name, tags]
      properties: {name: {type: string, enum: [pen]}, tags: {type: array, items: {type: boolean}}, more: {}}
"""


def test_each_operation_of_an_openapi_description_is_asked_with_its_examples(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "api.yaml").write_text(OPENAPI)

    study, said = written(tmp_path, f"http://127.0.0.1:{server.server_port}", "--from", "openapi", "api.yaml")

    assert "DELETE /items/{id}: it would remove data" in said
    monkeypatch.setenv("X_API_KEY", "k")
    listed, made, read = one_round(study, server)
    assert sent(listed) == ("GET", "/v1/items?limit=10", {}, "")
    kind = {"content-type": "application/json"}
    assert sent(made, "content-type") == ("POST", "/v1/items", kind, '{"name": "pen", "tags": [true]}')
    assert sent(read, "x-api-key") == ("GET", "/v1/items/a%2Fb", {"x-api-key": "k"}, "")


@pytest.mark.slow
def test_the_request_of_a_wrk_script_is_what_wrk_would_send(tmp_path: Path, server: Server) -> None:
    (tmp_path / "post.lua").write_text(
        'wrk.method = "POST"\nwrk.body = "a=" .. 6 * 7\nwrk.headers["X-Shop"] = "oslo"\n'
    )
    url = f"http://127.0.0.1:{server.server_port}/form"

    study, said = written(tmp_path, url, "--from", "wrk.lua", "post.lua")

    assert "left out" not in said
    assert [sent(each, "x-shop") for each in one_round(study, server)] == [
        ("POST", "/form", {"x-shop": "oslo"}, "a=42")
    ]


def test_a_command_is_started_on_the_port_that_the_study_chooses(tmp_path: Path) -> None:
    study, _ = written(
        tmp_path, "http://127.0.0.1:8080/a", "--start", f"{sys.executable} -m http.server 8080"
    )

    case = plan.plan(parse.read(study)).cases[0]
    assert case.services[0].start == f"{sys.executable} -m http.server $port"
    assert case.entry.service == "app"
    assert case.scenarios[0].steps[0].path == "/a"


@pytest.mark.parametrize(
    "value", ["a: b", "# c", "{x}", "- y", "yes", "5", "tab\tend", "$x $$", "é\u2028", "a:"]
)
def test_every_value_is_read_back_as_it_was(tmp_path: Path, value: str) -> None:
    request = Request("POST", "http://h/a?q=$1", (("X-A", value.replace("\t", " ")),), value)
    (tmp_path / "s.yaml").write_text(text_of(usable(Draft((request,), source="a test"))))

    step = plan.plan(parse.read(tmp_path / "s.yaml")).cases[0].scenarios[0].steps[0]

    assert (step.path, dict(step.headers)["X-A"], step.body.text) == (
        "/a?q=$1",
        value.replace("\t", " "),
        value,
    )


@pytest.mark.parametrize("kind", ["har", "openapi", "curl", "postman"])
@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"log": 5, "item": 5, "paths": 5}', '{"paths": {"/a": 5}}', "curl '"]
)
def test_what_is_not_of_the_format_is_refused_in_a_sentence(tmp_path: Path, kind: str, text: str) -> None:
    (tmp_path / "f").write_text(text)

    with pytest.raises(UsageError):
        usable(draft_of(InitOptions(url=str(tmp_path / "f"), kind=kind)))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("har", '{"log": {"entries": [{"request": {"method": "GET", "url": [null]}}]}}'),
        ("curl", "~curl http://127.0.0.1/"),
        ("postman", '{"item": ' + "[" * 100_000),
        ("openapi", "[" * 10_000),
    ],
    ids=["har", "curl", "postman", "openapi"],
)
def test_what_is_not_of_the_format_is_refused_with_another_server_too(
    tmp_path: Path, kind: str, text: str
) -> None:
    (tmp_path / "f").write_text(text)

    with pytest.raises(UsageError):
        usable(draft_of(InitOptions(url="http://127.0.0.1", file=str(tmp_path / "f"), kind=kind)))


def study_of(tmp_path: Path, line: str) -> tuple[Definition, Draft]:
    file = tmp_path / "line.txt"
    file.write_text(line)
    draft = usable(draft_of(InitOptions(kind="curl", url=None, file=str(file))))
    return parse.read_text(text_of(draft), file), draft


def test_an_insecure_line_of_curl_is_a_study_that_trusts_any_certificate(tmp_path: Path) -> None:
    secure, _ = study_of(tmp_path, "curl https://127.0.0.1/")
    insecure, _ = study_of(tmp_path, "curl -k https://127.0.0.1/")
    plain, _ = study_of(tmp_path, "curl -k http://127.0.0.1/")

    assert "insecure: true" in insecure.text
    assert "tls" not in secure.text + plain.text


def test_a_header_of_credentials_wins_over_a_user_as_in_curl(tmp_path: Path) -> None:
    study, _ = study_of(tmp_path, "curl -u me:secret -H 'Authorization: Bearer x' http://127.0.0.1/")

    assert "Authorization" in study.text
    assert "auth:" not in study.text


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("HTTP://127.0.0.1/a", "/a"),
        ("http://127.0.0.1/a b/\u00e9?q={1}&r={{uuid}}", "/a%20b/%C3%A9?q=%7B1%7D&r={{uuid}}"),
    ],
)
def test_what_may_not_stand_in_a_path_is_percent_encoded(tmp_path: Path, url: str, path: str) -> None:
    _, draft = study_of(tmp_path, f"curl '{url}'")

    assert path_of(draft.requests[0].url) == path


def test_requests_that_no_study_can_hold_are_left_out(tmp_path: Path) -> None:
    lines = ("-H 'a b: 1'", "-H $'a: b\\x01'", "--data-raw $'\\x00'", "-d ok")

    study, draft = study_of(tmp_path, "\n".join(f"curl http://127.0.0.1/ {flags}" for flags in lines))

    assert draft.left_out == (
        "1 requests with a header that HTTP has no such name for",
        "1 requests with a control character in the URL, a header or a user",
        "1 requests with a NUL or half a surrogate pair",
    )
    assert "body: ok" in study.text


def test_a_port_that_is_no_number_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not an http or https URL"):
        study_of(tmp_path, "curl http://127.0.0.1:8a/")
