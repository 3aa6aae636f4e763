"""Generates the classes of the results from the schema of the core.

python tools/result_types.py          rewrites python/nandlab/result_types.py
python tools/result_types.py check    fails when that file is out of date
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict, cast

from nandlab import _core

TARGET = Path(__file__).parents[1] / "python" / "nandlab" / "result_types.py"

_HEAD = '''"""What is in `summary.json`, `power.json` and a row of `life.parquet`, typed.

Written by tools/result_types.py from what the core declares; `make result-types` writes this file anew.
"""

from typing import Literal

from nandlab.record import Record
'''

_WIDTH = 120
_PLAIN = {"integer": "int", "number": "float", "string": "str", "boolean": "bool"}
_UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "j": "joules"}


class Schema(TypedDict, total=False):
    """The part of JSON Schema that the core uses."""

    type: str | list[str]
    description: str
    unit: str
    #: The cause of a flash operation in words.
    words: str
    properties: dict[str, Schema]
    patternProperties: dict[str, Schema]
    additionalProperties: Schema
    required: list[str]
    items: Schema
    anyOf: list[Schema]
    oneOf: list[Schema]
    const: str
    enum: list[str]


def generate(schema_text: str) -> str:
    """The source text of the module."""
    whole = json.loads(schema_text)
    definitions: dict[str, Schema] = whole.pop("$defs")
    classes = _Writer(definitions).classes({whole["title"]: cast(Schema, whole)})
    return _HEAD + "".join([_causes(definitions["ByCause"]), *classes])


def _causes(by_cause: Schema) -> str:
    lines = [f'    "{name}": "{cause["words"]}",' for name, cause in by_cause["properties"].items()]
    head = "#: What a flash operation is done for, by the name of its cause."
    return "\n".join(["", head, "CAUSES = {", *lines, "}", ""])


class _Writer:
    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions
        self._written: dict[str, str] = {}

    def classes(self, first: dict[str, Schema]) -> Iterable[str]:
        """The classes, each after those that it names: annotations that are no strings load faster."""
        groups = {name: schema for name, schema in self._definitions.items() if "properties" in schema}
        for name, schema in (first | groups).items():
            self._write(name, schema)
        return self._written.values()

    def _write(self, name: str, schema: Schema) -> None:
        if name in self._written:
            return
        lines = ["", "", f"class {name}(Record, frozen=True):", *_docstring(schema["description"]), ""]
        fields = schema["properties"]
        required = set(schema.get("required", ()))
        for key in sorted(fields, key=lambda key: key not in required):
            field = fields[key]
            if "properties" in field:
                # A group of counters has a class of its own.
                kind = name.removesuffix("Summary") + key.capitalize()
                field = {"description": f"The counters under `{key}`.", **field}
                self._write(kind, field)
            else:
                kind = self._type(field)
            if key not in required:
                kind = kind if kind.endswith("None") else f"{kind} | None"
                kind += " = None"
            lines += [f"    {key}: {kind}", *_docstring(_description(field))]
        self._written[name] = "\n".join(lines) + "\n"

    def _type(self, schema: Schema) -> str:
        if reference := cast(dict[str, str], schema).get("$ref"):
            name = reference.rsplit("/", 1)[-1]
            target = self._definitions[name]
            if "properties" not in target:
                return self._type(target)
            self._write(name, target)
            return name
        if choices := schema.get("anyOf"):
            return " | ".join(self._type(choice) for choice in choices)
        if choices := schema.get("oneOf"):
            return f"Literal[{', '.join(json.dumps(choice['const']) for choice in choices)}]"
        if names := schema.get("enum"):
            return f"Literal[{', '.join(map(json.dumps, names))}]"
        kinds = schema["type"]
        if isinstance(kinds, list):
            return " | ".join("None" if kind == "null" else self._type({**schema, "type": kind}) for kind in kinds)
        if kinds == "null":
            return "None"
        if kinds == "array":
            return f"tuple[{self._type(schema['items'])}, ...]"
        if kinds == "object":
            if "patternProperties" not in schema:
                return f"dict[str, {self._type(schema['additionalProperties'])}]"
            (values,) = schema["patternProperties"].values()
            return f"dict[int, {self._type(values)}]"
        return _PLAIN[kinds]


def _description(schema: Schema) -> str:
    """The description, with the unit unless the description contains it."""
    text, unit = re.sub(r"\bnull\b", "None", schema["description"]), schema.get("unit", "")
    unit = _UNITS.get(unit, unit)
    if not unit or unit.lower() in text.lower():
        return text
    return f"{text} A share." if unit == "share" else f"{text} In {unit}."


def _docstring(text: str) -> list[str]:
    first, *rest = text.split("\n\n")
    if not rest and len(first) <= _WIDTH - 10 and "\n" not in first:
        return [f'    """{first}"""']
    lines = textwrap.wrap(f'"""{first}', _WIDTH - 4)
    for paragraph in rest:
        lines += ["", *textwrap.wrap(paragraph, _WIDTH - 4)]
    return [f"    {line}" if line else "" for line in (*lines, '"""')]


def main() -> None:
    """Write the module, or check it."""
    text = generate(_core.result_schema())
    if sys.argv[1:] == ["check"]:
        if TARGET.read_text(encoding="utf-8") != text:
            sys.exit(f"{TARGET} is out of date: run `make result-types`")
        return
    TARGET.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
