"""OpenAPI 3 and Swagger 2, JSON or YAML: one request per operation, with values from the description."""

from __future__ import annotations

import json
import re
from typing import Any, Final
from urllib.parse import quote

from loadlens.draft import METHODS, Draft, Request, query_of
from loadlens.errors import UsageError
from loadlens.study.definition import Faults
from loadlens.study.parse import yaml_tree
from loadlens.study.tree import Leaf, Node, Tree

_OF_FORMAT: Final = {
    "uuid": "{{uuid}}",
    "date": "2024-01-31",
    "date-time": "2024-01-31T12:00:00Z",
    "email": "a@b.example",
}
_DEEPEST: Final = 6
_MOST_NODES: Final = 1_000_000  # after every alias is expanded


def read(text: str, source: str, base: str | None) -> Draft:
    """A request for every operation but those that delete.

    Args:
        text: The description.
        source: Its name.
        base: The URL of the service, in place of the one in the description.

    Raises:
        UsageError: It is no description, or names no server.
    """
    spec = _read(text, source)
    if not isinstance(spec, dict) or not isinstance(spec.get("paths"), dict):
        raise UsageError("not an OpenAPI description: it has no paths", where=source)
    reader = _Reader(spec)
    server = _server(spec)
    root = base.rstrip("/") if base is not None else server.rstrip("/")
    if base is not None and not re.match(r"https?://[^/]+/.", base):
        root += re.sub(r"^https?://[^/]+", "", server).rstrip("/")
    if not re.match(r"https?://", root):
        raise UsageError(
            "the description names no server", where=source, hint="loadlens init URL --from openapi FILE"
        )
    requests, left_out = [], []
    for path, operations in spec["paths"].items():
        for method in METHODS:
            operation = operations.get(method.lower())
            if operation is None:
                continue
            if method == "DELETE":
                left_out.append(f"DELETE {path}: it would remove data")
                continue
            shared = [*operations.get("parameters", ()), *operation.get("parameters", ())]
            requests.append(reader.request(method, root, path, operation, shared, left_out))
    return Draft(tuple(requests), tuple(left_out), source)


def _read(text: str, source: str) -> object:
    """The content of a description: JSON, or else YAML.

    Raises:
        UsageError: It is neither.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        faults = Faults()
        tree = yaml_tree.load(text.encode(), source, faults, len(text) * 4, _MOST_NODES)
    if tree is not None:
        try:
            return _plain(tree)
        except RecursionError:
            raise UsageError("nested too deep", where=source) from None
    fault = faults.first()
    raise UsageError(f"neither JSON nor YAML that can be read: {fault.message}", where=fault.where)


def _plain(node: Node) -> Any:
    if isinstance(node, Leaf):
        return node.value
    if isinstance(node, Tree):
        return {key: _plain(item) for key, item in node.items.items()}
    return [_plain(item) for item in node.items]


def _server(spec: dict[str, Any]) -> str:
    if "host" in spec or "basePath" in spec:  # Swagger 2
        scheme = (spec.get("schemes") or ["http"])[0]
        return (
            f"{scheme}://{spec['host']}{spec.get('basePath', '')}"
            if "host" in spec
            else str(spec["basePath"])
        )
    server = (spec.get("servers") or [{"url": ""}])[0]
    url = str(server.get("url", ""))
    for name, variable in (server.get("variables") or {}).items():
        url = url.replace(f"{{{name}}}", str(variable.get("default", "")))
    return url


class _Reader:
    """Values for parameters and bodies, references followed."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec

    def request(
        self, method: str, root: str, path: str, operation: Any, parameters: list[Any], left_out: list[str]
    ) -> Request:
        query: list[tuple[str, str]] = []
        headers: list[tuple[str, str]] = []
        body = None
        for parameter in map(self._followed, parameters):
            place, name = parameter.get("in"), parameter.get("name", "")
            value = _as_text(self._value(parameter, parameter.get("schema", parameter)))
            if place == "path":
                path = path.replace(f"{{{name}}}", value if "{{" in value else quote(value, safe=""))
            elif place == "query" and parameter.get("required"):
                query.append((name, value))
            elif place == "header" and parameter.get("required"):
                headers.append((name, value))
            elif place == "body":
                body = json.dumps(self._value(parameter, parameter.get("schema", {})))
                headers.append(("Content-Type", "application/json"))
        content = self._followed(operation.get("requestBody") or {}).get("content", {})
        kind = next((kind for kind in content if "json" in kind), None)
        if kind is not None:
            body = json.dumps(self._value(content[kind], content[kind].get("schema", {})))
            headers.append(("Content-Type", kind))
        elif content:
            left_out.append(f"the body of {method} {path}: {', '.join(content)}")
        for name in [n for each in operation.get("security", self._spec.get("security", ())) for n in each][
            :1
        ]:
            headers += self._credentials(name, query, left_out)
        url = root + path + (f"?{query_of(query)}" if query else "")
        return Request(method, url, tuple(headers), body)

    def _credentials(
        self, name: str, query: list[tuple[str, str]], left_out: list[str]
    ) -> list[tuple[str, str]]:
        schemes = self._spec.get("components", {}).get("securitySchemes") or self._spec.get(
            "securityDefinitions", {}
        )
        scheme = self._followed(schemes.get(name, {}))
        if scheme.get("type") == "apiKey" and scheme.get("in") == "query":
            query.append((scheme["name"], "x"))
        elif scheme.get("type") == "apiKey" and scheme.get("in") == "header":
            return [(scheme["name"], "x")]
        elif scheme.get("type") in ("http", "oauth2", "openIdConnect", "basic"):
            return [("Authorization", "x")]
        else:
            left_out.append(f"credentials {name}")
        return []

    def _followed(self, node: Any, depth: int = 0) -> dict[str, Any]:
        if isinstance(node, dict) and "$ref" in node and depth < _DEEPEST:
            target: Any = self._spec
            for part in str(node["$ref"]).removeprefix("#/").split("/"):
                target = (
                    target.get(part.replace("~1", "/").replace("~0", "~"), {})
                    if isinstance(target, dict)
                    else {}
                )
            return self._followed(target, depth + 1)
        return node if isinstance(node, dict) else {}

    def _value(self, holder: dict[str, Any], schema: Any, depth: int = 0) -> Any:
        """An example, a default, or the least value that the schema describes."""
        examples = holder.get("examples")
        if isinstance(examples, dict) and examples:
            return self._followed(next(iter(examples.values()))).get("value")
        schema = self._followed(schema)
        for part in (holder, schema):
            for key in ("example", "default", "const"):
                if key in part:
                    return part[key]
        for key in ("examples", "enum"):
            if isinstance(schema.get(key), list) and schema[key]:
                return schema[key][0]
        for key in ("allOf", "oneOf", "anyOf"):
            if schema.get(key):
                parts = [
                    self._value({}, part, depth + 1) for part in schema[key][: None if key == "allOf" else 1]
                ]
                if all(isinstance(part, dict) for part in parts):
                    return {name: value for part in parts for name, value in part.items()}
                return parts[0]
        kind = schema.get("type") or ("object" if "properties" in schema else "string")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind == "object":
            wanted = schema.get("required") or list(schema.get("properties", {}))
            fields = schema.get("properties", {}) if depth < _DEEPEST else {}
            return {name: self._value({}, fields[name], depth + 1) for name in wanted if name in fields}
        if kind == "array":
            return [self._value({}, schema.get("items", {}), depth + 1)] if depth < _DEEPEST else []
        if kind in ("integer", "number"):
            return schema.get("minimum", 1)
        if kind == "boolean":
            return True
        return _OF_FORMAT.get(schema.get("format", ""), "a" * max(1, min(schema.get("minLength", 1), 64)))


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)
