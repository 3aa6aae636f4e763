"""Completion of KEY=VALUE: the keys of specs and their values, from the schema and the table of policies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from nandlab import spec


def complete(prefix: str, **_: object) -> list[str]:
    """The settings that begin with `prefix`: keys up to the equals sign, then those with each value that is known."""
    key, equals, _value = prefix.partition("=")
    known = dict(_keys(json.loads(spec.schema()), ""))
    if not equals:
        return [f"{name}=" for name in known if name.startswith(prefix)]
    named = [row["name"] for row in spec.policies() if row["slot"] == key]
    values = dict.fromkeys([*named, *_values(known.get(key, {}))])
    return [found for value in values if (found := f"{key}={value}").startswith(prefix)]


def _keys(node: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The keys of a spec with their parts of the schema; tables in values are values."""
    properties = node.get("properties")
    if node.get("type") == "object" and properties:
        for key, part in properties.items():
            yield from _keys(part, f"{name}.{key}".lstrip("."))
    else:
        yield name, node


def _values(node: Mapping[str, Any]) -> Iterator[str]:
    """The values that a part of the schema names: constants, truth values and the default."""
    if isinstance(node.get("const"), str):
        yield node["const"]
    yield from (value for value in node.get("enum", ()) if isinstance(value, str))
    if node.get("type") == "boolean":
        yield from ("true", "false")
    for part in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _values(part)
    if isinstance(node.get("default"), (int, float, str)) and not isinstance(node.get("default"), bool):
        yield str(node["default"])
