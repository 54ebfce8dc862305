"""Credentials in every place where a user can put one: none is in a record, an output or a message."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.edges.commands import Done, assert_is_clean, possible, run

# Each is unlike the others, so that a leak names its place.
PLACES = [
    "authorization",
    "cookie",
    "apikey",
    "authtoken",
    "partner",
    "query",
    "sig",
    "form",
    "nested",
    "text",
    "param",
    "anchor",
    "env",
    "dburl",
    "header2",
    "option",
    "equals",
    "assigned",
    "setup",
    "reset",
    "comment",
    "check",
    "tokenenv",
    "basicenv",
    "probe",
    "cli",
    "session",
    "shellenv",
    "feature",
]
SECRETS = {place: f"Zq{number:02}{place}Xv9" for number, place in enumerate(PLACES)}

SERVER = """\
import os, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
print("arguments", sys.argv, flush=True)
print("environment", dict(os.environ), flush=True)
class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        print(self.command, self.path, dict(self.headers), body, flush=True)
        said = (self.path + str(dict(self.headers)) + body.decode()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)
    do_GET = do_POST = answer
    def log_message(self, *_): pass
ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Server).serve_forever()
"""
STUDY = """\
# the old login was password: {comment}
study: secrets
hide: [sig, X-Partner]
params: {{key: {param}, shared: &shared {anchor}}}
services:
  api:
    start: python3 server.py --password {option} --api-key={equals}
    setup: sh -c 'ACCESS_TOKEN={assigned} true' --token {setup}
    env: {{PORT: $port, SHARED: $shared, DB_PASSWORD: {env}, DATABASE_URL: "postgres://lab:{dburl}@127.0.0.1/db"}}
    ready: {{get: /}}
entry: api
reset: {{before: trial, run: "true --secret {reset}"}}
scenarios:
  login:
    - name: form
      post: "/form?token={query}&sig={sig}&page=1"
      body: "user=ada&password={form}"
      headers:
        Authorization: Bearer {authorization}
        Cookie: "theme=dark; sid={cookie}"
        X-Api-Key: {apikey}
        X-Auth-Token: {authtoken}
        X-Partner: {partner}
        X-Session: {session}
        Proxy-Authorization: "Basic {header2}"
    - name: json
      post: /json
      json: {{user: ada, login: {{passphrase: {nested}}}, secret: $key, credential: *shared}}
      check: {{json: {{token: {check}}}}}
    - name: text
      post: /text
      body: '{{"user": "ada", "client_secret": "{text}"}}'
      auth: {{bearer: "{{{{env TOKEN}}}}"}}
    - name: basic
      get: /basic
      auth: {{basic: {{user: ada, password: "{{{{env PASSWORD}}}}"}}}}
probes: {{health: {{get: "/health?access_key={probe}"}}}}
load: {{users: 2, duration: 1s, warmup: 0s}}
trials: 1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("secrets")
    (made / "server.py").write_text(SERVER)
    (made / "study.yaml").write_text(STUDY.format(**SECRETS))
    return made


ENVIRONMENT = {
    "TOKEN": SECRETS["tokenenv"],
    "PASSWORD": SECRETS["basicenv"],
    "AWS_SECRET_ACCESS_KEY": SECRETS["shellenv"],
}


def leaks(content: bytes) -> set[str]:
    """Return the places whose secrets stand in some bytes, as they are or encoded."""
    pairs = {place: [secret] for place, secret in SECRETS.items()}
    pairs["basicenv"].append(f"ada:{SECRETS['basicenv']}")
    text = content.decode(errors="replace")
    decoded = " ".join(
        base64.b64decode(word + "=" * (-len(word) % 4)).decode(errors="replace")
        for word in re.findall(r"[A-Za-z0-9+/]{16,}", text)
        if len(word) % 4 != 1
    )
    return {
        place
        for place, forms in pairs.items()
        for form in forms
        if form in text or quote(form, safe="") in text or form in decoded
    }


def leaks_below(folder: Path) -> dict[str, set[str]]:
    leaked = {
        str(path.relative_to(folder)): leaks(path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }
    return {name: places for name, places in leaked.items() if places}


def assert_keeps_them(done: Done) -> None:
    assert_is_clean(done)
    assert leaks(done.stdout.encode()) == set(), done.shown
    assert leaks(done.stderr.encode()) == set(), done.shown


def test_a_study_leaves_no_credential_in_record_reports_and_output(
    folder: Path, forking_settings: dict[str, str]
) -> None:
    given = f"--set feature_token={SECRETS['feature']}"
    refused = run(f"$L run study.yaml -o r {given}", folder, ENVIRONMENT)
    done = run("$L run study.yaml -o r", folder, ENVIRONMENT)

    assert refused.code == 2
    assert_keeps_them(refused)
    assert done.code in possible(0, "$L run study"), done.shown
    assert_keeps_them(done)
    assert leaks_below(folder / "r") == {}
    kept = (folder / "r" / "study.yaml").read_text()
    assert "name: form" in kept
    assert '{user: ada, login: {passphrase: "(hidden)"}' in kept
    assert kept.count("\n") == STUDY.count("\n")
    log = next((folder / "r").rglob("api.log")).read_text()
    assert "POST /json" in log
    for verb in ("show r", "report r --json", "explain r", "explain r --json", "check study.yaml"):
        assert_keeps_them(run(f"$L {verb}", folder, {**forking_settings, **ENVIRONMENT}))


def test_the_study_in_a_record_is_the_study_without_its_credentials(folder: Path) -> None:
    if not (folder / "r").exists():
        run("$L run study.yaml -o r -q", folder, ENVIRONMENT)
    again = run("mkdir again; cp r/study.yaml again; $L check again/study.yaml", folder, ENVIRONMENT)

    # It is whole and readable: only the files next to it are missing.
    assert "not YAML" not in again.stderr, again.shown


HIT = (
    "-X POST -H 'Authorization: Bearer {authorization}' -H 'Cookie: sid={cookie}' -H 'X-Api-Key: {apikey}' "
    "-H 'X-Partner: {partner}' -H 'X-Session: {session}' "
    '-b \'{{"password": "{nested}", "user": "ada"}}\' '
    "--hide sig,X-Partner"
).format(**SECRETS)
QUERY = "?token={query}&sig={sig}&page=1".format(**SECRETS)


def test_a_hit_leaves_no_credential_in_record_files_and_output(
    forking_settings: dict[str, str], tmp_path: Path
) -> None:
    url = forking_settings["U"]
    outputs = "-o r -o json=a.json,csv=a.csv,md=a.md,junit=a.xml --objective 'p99<1h'"
    settings = {"A": f"{url}{QUERY}", "B": f"{url}b{QUERY}"}
    for command in (
        f'$L hit "$A" {HIT} -n 20 {outputs} -v',
        f'$L hit "$A" "$B" {HIT} -n 20 -o r2 --out json=b.json,csv=b.csv,md=b.md,junit=b.xml',
        f'$L hit "$A" {HIT} -n 20 --json --check json:token={SECRETS["check"]}',
        f'$L hit "$A" {HIT} -n 20 --save-study s.yaml -q',
        f'$L hit "$A" {HIT} -n 20 --auth bearer:TOKEN -q -o r3',
        "$L show r",
    ):
        done = run(command, tmp_path, {**forking_settings, **settings, **ENVIRONMENT})
        assert_keeps_them(done)
    assert leaks_below(tmp_path) == {}
    command = json.loads((tmp_path / "r" / "environment.json").read_text())["command"]
    assert "--hide" in command
    assert any("page=1" in word for word in command)


@pytest.mark.parametrize(
    "command",
    [
        '$L hit "http://127.0.0.1:99999/?token={query}"',
        '$L hit "htp://h/?token={query}"',
        "$L hit http://ada:{dburl}@127.0.0.1:1/",
        "$L explain http://ada:{dburl}@127.0.0.1:1/",
        "$L run http://ada:{dburl}@127.0.0.1:1/",
        "$L init http://ada:{dburl}@127.0.0.1:1/",
        "$L history http://ada:{dburl}@127.0.0.1:1/",
        "$L hit $U -H 'Authorization Bearer {authorization}'",
        "$L hit $U -H 'Authorization: Bearer {authorization}' -H 'X-Api-Key {apikey}'",
        "$L hit $U --auth bearer:{tokenenv}",
        '$L hit $U \'{{"password": "{nested}"}}\'',
        "$L hit $U --hide sig -d 5x '?sig={sig}'",
        "$L wrk -t1 -c1 -d1s $U?token={query}",
        "$L ab -n 3 -H 'Cookie: sid={cookie}' $U?token={query}",
        "$L hey -n 3 -c 1 -H 'X-Api-Key: {apikey}' $U?token={query}",
        "$L hey -n 3 -c 1 -H 'X-Api-Key {apikey}' $U",
        "$L init $U?token={query} -o -",
        "echo curl -u ada:{basicenv} -H \"'Cookie: a={cookie}'\" $U | $L init --from curl - -o -",
    ],
)
def test_no_message_repeats_a_credential(
    command: str, forking_settings: dict[str, str], tmp_path: Path
) -> None:
    assert_keeps_them(run(command.format(**SECRETS), tmp_path, forking_settings))


def test_a_service_gets_no_variable_that_is_not_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    start = "--start 'python3 server.py' --budget 15s --no-pid --no-metrics --no-probe -o r"
    settings = {**ENVIRONMENT, "PORT": "18423", "SHOWN": "visible-to-all"}

    done = run(f"$L explain http://127.0.0.1:18423/ {start} --env PORT -q", tmp_path, settings)

    assert done.code == 0, done.shown
    log = "".join(path.read_text() for path in (tmp_path / "r").rglob("*.log"))
    assert "'PATH'" in log
    assert "'HOME'" in log
    assert "SHOWN" not in log
    assert leaks_below(tmp_path / "r") == {}
