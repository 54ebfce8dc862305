"""The reference of the study file, from the same description that checks it.

`python -m loadlens.study.parse.reference docs/reference` writes study.md and study.schema.json; a test
compares both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from loadlens.model.study import EXTREMES, METRICS, STATISTICS, TIMES
from loadlens.study.parse.keys_load import Item
from loadlens.study.parse.keys_study import STUDY
from loadlens.study.parse.schema import Block, Many, Named, OrText, Schema, Shape, Short
from loadlens.study.parse.values import SHARED_SCHEMAS

_INTRODUCTION: Final = """\
# The study file

A study says what is started, what is asked of it, in which cases, and what has been published about it. It is
YAML 1.2, read strictly: an unknown key is a fault, and so is a key that this version cannot run yet. All
faults are shown together, each with its line, its key path and one thing to try. `loadlens check STUDY` shows
them, the cases, their order and how long the run will take, and runs nothing.

`study.schema.json` next to this page is the same as a JSON Schema, for completion and checks in an editor.

The shortest study is three lines. It asks for `/` with 1, 4 and 16 users, three times each:

```yaml
entry: http://127.0.0.1:8080
load:
  users: [1, 4, 16]
```

This one starts its service, says what users do, and has two experiments:

```yaml
schema: 1
study: pages
question: How many users can one page server take?
services:
  web:
    start: python -m http.server $port --bind $host
    ready:
      get: /
entry: web
scenarios:
  read:
    - get: /
      expect: 200
  missing:
    get: /nowhere
    expect: 404
probes:
  page:
    get: /
    rate: 20/s
trials: 3
experiments:
  ladder:
    mix: read
    load:
      users: [1, 4, 16, 64]
      think: 1s
      duration: 20s
  page:
    mix: $page
    load:
      rate: 200/s
      duration: 20s
    factors:
      page: [read, missing]
quick:
  trials: 1
  experiments:
    ladder:
      load:
        users: [1, 16]
        duration: 8s
```

A scenario is a list of steps; one step, or the path of a GET, may stand alone. A list in a `load` is a
factor: `users: [1, 4]` is short for `users: $users` with `factors: {users: [1, 4]}`. A study of one
experiment may have its `load`, `mix` and `factors` at the top instead of under `experiments`.

## Quantities

| what | written |
| --- | --- |
| duration | `500ms` `30s` `2m` `1h30m`; a bare number is seconds |
| count | `100` `1k` `2.5M` |
| rate | `50` `20/s` `3000/m` `15k/min`; always the total |
| share | `30%` `0.3` |

## Names

`$name` is filled when the study is planned: a param, or a factor with the level of the case. A name that is
the whole value keeps its type; inside a text it becomes text. `$$` is a dollar. Levels of factors win
over `quick`, which wins over `params`; `--set NAME=VALUE` wins over all and pins a factor of that name to one
level.

In `build: {run: }`, `setup`, `start`, `env`, `server_times: {file: }` and in `reset` there are also
`$host`, `$port` (the first one), `$port.NAME`, `$scratch` (a folder of this trial), `$replica`, and
`$SERVICE.url`, `$SERVICE.host`, `$SERVICE.port` of other services.

`{{...}}` is filled for each request: generators such as `{{uuid}}`, and values that earlier steps extract.
Inside `json:` a value that is one `{{...}}` keeps its JSON type.

## Cases

Factors are crossed in the order they stand in. A level is a value (`users: [1, 5]` sets `$users`) or has a
name and binds several params (`jvm: {cold: {warmup: 0s}, warm: {warmup: 60s}}`). A factor that no `$name`
uses is a fault. `hold_out` adds cases that are predicted before they are run, at the end: its levels are
crossed with the other factors, which `where` restricts. Anchors and merge keys (`<<: *matrix`) carry an
experiment over.

`quick` changes a load key by key; everything else that it names replaces what stands in the experiment, so
`hold_out: {}` and `probes: {}` mean none.
"""

_PLAIN_METRICS: Final = [metric for metric in METRICS if metric.partition(".")[0] not in TIMES]
_METRICS: Final = f"""\
## Metrics

Objectives and claims speak of {", ".join(f"`{metric}`" for metric in _PLAIN_METRICS)}, and of
{", ".join(f"`{time}`" for time in TIMES)},
with one of {", ".join(f"`.{name}`" for name in STATISTICS)};
of the first two also with {", ".join(f"`.{name}`" for name in EXTREMES)}.
`response_time` runs from due to done, `service_time` from sent to done, both at the client; `server_time`
is what the service logged. `failed.share` counts requests without a whole answer, `unexpected.share` answers
with an unexpected status, `unsuccessful.share` both, `ab_failed.share` what ApacheBench calls failed:
requests without a whole answer, and answers whose body is not as long as that of the first one, whatever
their status. In an objective that is a text, `p99` is `response_time.p99`, `rate` is `throughput` and
`failed` is `unsuccessful.share`.
`load.elapsed`, `load.answers`, `load.time_per_answer`, `load.received_bytes` and `load.received_rate` are of
the whole load, heads of answers included, as the likes of ab print them; not of one with a warm-up.
"""


def schema() -> Schema:
    """The JSON Schema of a study file, draft 2020-12."""
    blocks = {
        block.what.replace(" ", "_"): block.definition() for block in _blocks(STUDY) if block is not STUDY
    }
    top = STUDY.definition()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:loadlens:study:1",
        "title": "Loadlens study",
        **top,
        "anyOf": [{"required": ["load"]}, {"required": ["experiments"]}],
        "$defs": {**SHARED_SCHEMAS, **dict(sorted(blocks.items()))},
    }


def page() -> str:
    """The reference page, Markdown."""
    return (
        "\n".join([_INTRODUCTION, *(_section(block) for block in _blocks(STUDY)), _METRICS]).rstrip() + "\n"
    )


def _blocks(shape: Shape) -> Iterator[Block]:
    """Every block below a shape, each once, in the order of the file."""
    seen: list[Block] = []

    def walk(each: Shape) -> None:
        if isinstance(each, Named | Many):
            walk(each.item)
        elif isinstance(each, Short | OrText):
            walk(each.block)
        elif isinstance(each, Item):
            for block in each.blocks:
                walk(block)
        elif isinstance(each, Block) and each not in seen:
            seen.append(each)
            for key in each.keys.values():
                walk(key.shape)

    walk(shape)
    return iter(seen)


def _section(block: Block) -> str:
    title = "The top level" if block is STUDY else block.what[0].upper() + block.what[1:]
    lines = [f"## {title}", "", block.doc, "", "| key | value | default | |", "| --- | --- | --- | --- |"]
    for name, key in block.keys.items():
        default = "required" if key.required else _code(key.default)
        lines.append(f"| `{name}` | {key.shape.words} | {default} | {key.doc} |".replace("|  |", "| |"))
    if block.refused:
        later = ", ".join(f"`{name}`" for name in block.refused)
        lines += ["", f"Part of the format, refused by this version: {later}."]
    return "\n".join([*lines, ""])


def _code(default: str) -> str:
    """A default that can be typed as code, one that is said in words as it is."""
    return default if not default or " " in default else f"`{default}`"


def write(folder: Path) -> None:
    """Write both files."""
    (folder / "study.md").write_text(page(), encoding="utf-8")
    text = json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
    (folder / "study.schema.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
