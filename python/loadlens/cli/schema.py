"""`loadlens schema`: the JSON Schema of study files."""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.cli.options import Example, verb


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """Options of `schema`: none."""


@verb(
    SchemaOptions,
    Example("loadlens schema > loadlens.schema.json", "the first line of a study refers to it"),
)
def schema(given: SchemaOptions) -> None:
    """Print the JSON Schema of study files, for completion and checks in an editor.

    Example: loadlens schema > loadlens.schema.json, which the first line of a study from `init` refers to.
    """
    import json

    from loadlens.study.parse import reference

    print(json.dumps(reference.schema(), indent=2, ensure_ascii=False))
