"""Input of other tools that is nearly right becomes a study that can be read, or one line that says why not.

A failure names its seed, which `LOADLENS_SEED=n` replays; `LOADLENS_INPUTS=n` looks at more.
"""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from loadlens.cli.init import InitOptions, draft_of, refuse_unreadable
from loadlens.draft import usable
from loadlens.draft.write import text_of
from loadlens.errors import LoadlensError
from loadlens.study import parse
from tests.unit.record.test_any_bytes import WORDS, inputs, mutated

ORIGIN = "http://127.0.0.1:8080"
HEADERS = [{"name": "Accept", "value": "*/*"}, {"name": "Authorization", "value": "Bearer x"}]
BODY = {"mimeType": "application/json", "text": '{"a": 1}', "params": []}
HAR = {
    "log": {
        "entries": [
            {"request": {"method": "GET", "url": f"{ORIGIN}/a?q=1", "headers": HEADERS}},
            {
                "request": {"method": "POST", "url": f"{ORIGIN}/b", "headers": [], "postData": BODY},
                "response": {"status": 201},
            },
        ]
    }
}
OPENAPI = {
    "openapi": "3.0.0",
    "servers": [{"url": f"{ORIGIN}/v1"}],
    "paths": {
        "/items/{id}": {
            "get": {
                "parameters": [
                    {"name": "id", "in": "path", "schema": {"type": "integer", "minimum": 1}},
                    {"name": "q", "in": "query", "required": True, "schema": {"enum": ["a", "b"]}},
                ],
                "responses": {"200": {}},
            }
        },
        "/items": {
            "post": {
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/I"}}}
                }
            }
        },
    },
    "components": {
        "schemas": {"I": {"type": "object", "properties": {"a": {"type": "number", "default": 1.5}}}}
    },
}
POSTMAN = {
    "variable": [{"key": "base", "value": ORIGIN}],
    "item": [
        {"name": "g", "request": {"method": "GET", "url": {"raw": "{{base}}/a?x=1"}, "header": []}},
        {
            "name": "p",
            "request": {"method": "POST", "url": "{{base}}/b", "body": {"mode": "raw", "raw": "{}"}},
        },
    ],
}
CURL = rb"""curl -X POST 'http://127.0.0.1:8080/a?b=c' -H 'Accept: */*' --data-raw $'{"a": "\u00e9"}' \
  -u me:secret -b 'a=b; c=d' --compressed
curl -k -G http://127.0.0.1:8080/s --data-urlencode 'q=a b' -d x=1 -A agent
"""
TEXTS = {
    "har": json.dumps(HAR).encode(),
    "openapi": json.dumps(OPENAPI).encode(),
    "postman": json.dumps(POSTMAN).encode(),
    "curl": CURL,
}
VALUES: tuple[Any, ...] = (
    None,
    True,
    1,
    -1.5,
    "",
    "x",
    "\u00e9\n",
    "{{a}}",
    "{b",
    "$x",
    "\ud800",
    "\0",
    [],
    {},
    [None],
    {"$ref": "#"},
)


def changed(draw: random.Random, node: Any) -> None:
    """Change one value somewhere in a tree, or take it out."""
    places = list(node) if isinstance(node, dict) else list(range(len(node)))
    if not places:
        return
    place = draw.choice(places)
    if isinstance(node[place], dict | list) and draw.random() < 0.8:
        changed(draw, node[place])
    elif draw.random() < 0.3:
        del node[place]
    else:
        node[place] = copy.deepcopy(draw.choice(VALUES))


def content_of(kind: str, seed: int) -> bytes:
    draw = random.Random(seed)
    if kind == "curl" or draw.random() < 0.4:
        return mutated(
            seed, TEXTS[kind], [*WORDS, b"'", b"\\", b"-d", b"http://[", b"@/dev/null", b"{{x}}", b"$"]
        )
    tree = json.loads(TEXTS[kind])
    for _ in range(draw.randint(1, 4)):
        changed(draw, tree)
    return json.dumps(tree).encode()


@pytest.mark.parametrize("kind", TEXTS)
def test_any_input_becomes_a_study_or_one_line(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "input"
    made = 0
    for seed in inputs(150):
        file.write_bytes(content_of(kind, seed))
        try:
            draft = usable(draft_of(InitOptions(kind=kind, url=ORIGIN if seed % 3 else None, file=str(file))))
            text = text_of(draft)
            refuse_unreadable(text, draft.source)
        except LoadlensError as fault:
            sentences = [fault.message]
        except Exception as fault:
            raise AssertionError(f"LOADLENS_SEED={seed}") from fault
        else:
            assert parse.read_text(text, file).experiments
            sentences = list(draft.left_out)
            made += 1
        assert not any("\n" in sentence for sentence in sentences), f"LOADLENS_SEED={seed}"
    assert made
