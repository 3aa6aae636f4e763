"""The generated parts of the reference: spec keys, policies, commands, results, notes, trace formats.

A page of docs/reference names a part by `<!-- generated: NAME -->`.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import nandlab
from nandlab import result_types, shipped, tables, trace
from nandlab.cli.app import COMMANDS, Parser, make_parser
from nandlab.comparison.metrics import METRICS

ROOT = Path(__file__).parents[1]
CRATES = ROOT / "crates"

Schema = dict[str, Any]

_TIME = "^[0-9]+(\\.[0-9]+)? ?(ns|us|ms|s|min|h|d)$"
_SIZE = "^[0-9]+(\\.[0-9]+)? ?([kKMGT]?B|[KMGT]iB)$"


# Text.


def cell(text: object) -> str:
    """Text for a cell of a Markdown table."""
    return " ".join(str(text).split()).replace("|", "\\|")


def code(text: object) -> str:
    """Text as code in a cell of a Markdown table; several lines are one."""
    return f"`{cell(text)}`" if str(text) else ""


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    heads = list(head)
    lines = [heads, ["---"] * len(heads), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def definitions(rows: Iterable[tuple[str, Iterable[str]]]) -> str:
    """A Markdown definition list, which fits a narrow screen: each term with its paragraphs."""
    text = []
    for term, paragraphs in rows:
        shown = [paragraph for paragraph in paragraphs if paragraph] or ["&nbsp;"]
        text.append("\n\n".join([f"{term}\n:   {shown[0]}", *(f"    {paragraph}" for paragraph in shown[1:])]))
    # Only the cells of a table need a bar escaped.
    return "\n\n".join(text).replace("\\|", "|") + "\n"


def _paragraphs(doc: str) -> str:
    """A docstring as Markdown: indented parts become code blocks."""
    lines: list[str] = []
    fenced = False
    for line in inspect.cleandoc(doc).split("\n"):
        indented = line.startswith("    ")
        if indented and not fenced:
            lines += ["", "```text"]
            fenced = True
        elif line and not indented and fenced:
            while lines[-1] == "":
                lines.pop()
            lines += ["```", ""]
            fenced = False
        lines.append(line[4:] if fenced else line)
    return "\n".join([*lines, "```"] if fenced else lines).strip() + "\n"


# The spec.


class Key(NamedTuple):
    """A key of the spec."""

    name: str
    values: str
    default: str
    description: str


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) and abs(value) >= 10_000 else f"{value:g}"


def _range(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    left = f"above {_number(above)}" if above is not None else f"from {_number(low)}" if low is not None else ""
    right = f"below {_number(below)}" if below is not None else f"to {_number(high)}" if high is not None else ""
    return " ".join(part for part in (left, right) if part)


def kinds(schema: Schema) -> list[str]:
    """What a value may be, in words; the alternatives apart."""
    if "anyOf" in schema:
        found = [kind for part in schema["anyOf"] for kind in kinds(part)]
        return list(dict.fromkeys(found))
    if "const" in schema:
        return [code(json.dumps(schema["const"]))]
    if "enum" in schema:
        return [code(json.dumps(value)) for value in schema["enum"]]
    kind = schema.get("type")
    if kind == "object":
        inner = schema.get("properties", {})
        if (
            list(inner) == schema.get("required")
            and len(inner) == 1
            and inner[next(iter(inner))].get("type") == "object"
        ):
            # A policy with parameters is named by its constant too.
            (name,) = inner
            return [f"`{name} = {{ ... }}`"] if inner[name].get("required") else []
        return ["`{ " + ", ".join(inner) + " }`"]
    if kind == "array":
        count = schema.get("maxItems")
        many = f", at most {count}" if count else ""
        return [f"list of {' or '.join(kinds(schema.get('items', {})))}{many}"]
    if kind == "string":
        pattern = schema.get("pattern", "")
        return ["time" if pattern == _TIME else "size" if pattern == _SIZE else _quantity(pattern)]
    if kind in ("integer", "number"):
        return [f"{'whole number' if kind == 'integer' else 'number'} {_range(schema)}".strip()]
    return ["`true` or `false`"] if kind == "boolean" else [str(kind or "any value")]


def _quantity(pattern: str) -> str:
    units = re.search(r"\(([^()]*)\)\$$", pattern)
    return f"quantity in {units.group(1).replace('|', ', ')}" if units else "text"


def keys(schema: Schema, prefix: str = "") -> Iterator[Key]:
    """The keys of a schema of objects, in its order, with the parameters of policies after the key of the policy."""
    for name, inner in schema.get("properties", {}).items():
        full = f"{prefix}{name}"
        if inner.get("type") == "object" and "description" not in inner:
            yield from keys(inner, f"{full}.")
            continue
        default = inner.get("default")
        text = "" if default is None else json.dumps(default) if not isinstance(default, dict) else _inline(default)
        yield Key(full, ", ".join(kinds(inner)), text, inner.get("description", ""))
        yield from _parameters(inner, f"{full}.")


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_inline(entry)}" for key, entry in value.items()) + " }"
    return json.dumps(value)


def _parameters(schema: Schema, prefix: str) -> Iterator[Key]:
    """The keys inside the alternatives of a value that are tables."""
    seen: set[str] = set()
    for part in schema.get("anyOf", []):
        if part.get("type") == "object":
            for key in keys({"properties": part.get("properties", {})}, prefix):
                if key.name not in seen:
                    seen.add(key.name)
                    yield key
        elif "anyOf" in part:
            yield from _parameters(part, prefix)
        elif part.get("type") == "array" and part.get("items", {}).get("type") == "object":
            yield from keys(part["items"], f"{prefix.removesuffix('.')}[].")


def origins(toml: str) -> dict[str, str]:
    """The origin of each value of a resolved spec: the text in parentheses at the end of its line."""
    found: dict[str, str] = {}
    section = ""
    for line in toml.splitlines():
        head = re.fullmatch(r"\[(.+)\]", line)
        if head:
            section = f"{head.group(1)}."
        entry = re.match(r"(?:# )?(\w+) = ", line)
        comment = line.rsplit("  # ", 1)[-1] if entry else ""
        if entry and comment.endswith(")"):
            found[section + entry.group(1)] = _last_parentheses(comment)
    return found


def _last_parentheses(text: str) -> str:
    depth = 0
    for place in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[place], 0)
        if depth == 0:
            return text[place + 1 : -1]
    return text


def spec_keys() -> list[Key]:
    """Every key of a spec."""
    return list(keys(cast(Schema, json.loads(nandlab.schema()))))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text and text[-1] not in ".:!?" else f"{text[:1].upper()}{text[1:]}"


def spec_part() -> str:
    """Every key: what it may be, its default, its meaning, and the source of the default."""
    default = origins(nandlab.load("[drive]\n").to_toml())
    sections: dict[str, list[tuple[str, list[str]]]] = {}
    for key in spec_keys():
        source = re.sub(r"^default(; )?", "", default.get(key.name, "")).replace("not set", "")
        anchor = f'<a id="{key.name}"></a>'
        facts = [f"*Values:* {key.values}."] if key.values else []
        facts += [f"*Default:* {code(key.default)}."] if key.default else []
        facts += [f"*Source:* {cell(source)}."] if source else []
        row = (anchor + code(key.name), [_sentence(cell(key.description)), " ".join(facts)])
        sections.setdefault(key.name.split(".")[0] if "." in key.name else "", []).append(row)
    text = []
    for name, rows in sections.items():
        title = f"`[{name}]` {{ #{name} }}" if name else "The whole run"
        text += [f"## {title}\n", definitions(rows)]
    return "\n".join(text)


def policies_part() -> str:
    """The policies of every slot."""
    slots: dict[str, list[tuple[str, list[str]]]] = {}
    for row in nandlab.policies():
        slots.setdefault(row["slot"], []).append((code(row["name"]), [_sentence(cell(row["description"]))]))
    return "\n".join(f"## `{slot}`\n\n{definitions(rows)}" for slot, rows in slots.items())


def presets_part() -> str:
    """The files of the presets."""
    text = []
    for name, description in nandlab.presets():
        source = (shipped.PRESETS / f"{name}.toml").read_text().strip()
        text += [f"## `{name}`\n", f"{description[:1].upper()}{description[1:]}.\n", f"```text\n{source}\n```\n"]
    return "\n".join(text)


def examples_part() -> str:
    """The files of the examples."""
    text = []
    for item in shipped.items():
        if item.kind == "example":
            source = item.path.read_text(encoding="utf-8").strip()
            text += [f"## `{item.name}`\n", f"{item.description}.\n", f"```text\n{source}\n```\n"]
        elif item.kind == "trace":
            text += [f"## `{item.path.name}`\n", f"{item.description}.\n"]
    return "\n".join(text)


# Commands and Python.


def commands() -> dict[str, str]:
    """The help text of each command, by its name."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "88"
    try:
        return dict(_helps(make_parser(COMMANDS)))
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def _helps(parser: Parser) -> Iterator[tuple[str, str]]:
    yield parser.prog, parser.format_help().strip()
    for _, inner in sorted(parser.commands.items()):
        yield from _helps(inner)


def commands_part() -> str:
    """Each command with its help."""
    return "\n".join(f"## `{name}`\n\n```text\n{text}\n```\n" for name, text in commands().items())


def python_part() -> str:
    """The names of the package."""
    text = []
    for name in nandlab.__all__:
        if name.startswith("__"):
            continue
        value = getattr(nandlab, name)
        if inspect.ismodule(value):
            text += [f"## `nandlab.{name}`\n", _paragraphs(value.__doc__ or "")]
            for inner in value.__all__:
                text += [f"### `nandlab.{name}.{inner}`\n", *_callable(inner, getattr(value, inner))]
            continue
        text += [f"## `nandlab.{name}`\n", *_callable(name, value)]
    return "\n".join(text)


def _signature(name: str, value: Callable[..., object]) -> str:
    try:
        shown = str(inspect.signature(value))
    except (TypeError, ValueError):
        return name
    shown = shown.replace("nandlab._core.", "").replace("nandlab.", "").replace("'", "")
    if len(name + shown) > 96 and "(" in shown:
        inner, end = shown[1:].rsplit(")", 1) if "->" not in shown else shown[1:].rsplit(") ->", 1)
        parts = _split(inner)
        shown = "(\n" + "".join(f"    {part},\n" for part in parts) + ")" + (f" ->{end}" if "->" in shown else end)
    return name + shown


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()]


def _fields(value: type) -> Iterator[tuple[str, list[str]]]:
    """The fields of a class with their types, and with the comments `#:` before them."""
    with contextlib.suppress(OSError, TypeError):
        source = inspect.getsource(value)
        for found in re.finditer(r"((?:^    #: ?.*\n)*)^    ([a-z]\w*): ([^=\n]+?)(?: =.*)?$", source, re.MULTILINE):
            about = re.sub(r"^    #: ?", "", found.group(1), flags=re.MULTILINE)
            yield code(f"{found.group(2)}: {found.group(3)}"), [cell(about)]


def _callable(name: str, value: Any) -> list[str]:
    doc = _paragraphs(inspect.getdoc(value) or "")
    if inspect.isclass(value) and issubclass(value, BaseException):
        bases = ", ".join(base.__name__ for base in value.__bases__)
        return [f"Subclass of `{bases}`. {doc}"]
    if not inspect.isclass(value):
        return [f"```text\n{_signature(name, value)}\n```\n", doc]
    text = [doc]
    rows: list[tuple[str, list[str]]] = []
    for member, found in vars(value).items():
        if member.startswith("_"):
            continue
        about = cell((inspect.getdoc(found) or "").split("\n\n")[0])
        if isinstance(found, (classmethod, staticmethod)):
            found = found.__func__
        if callable(found):
            try:
                signature = str(inspect.signature(found)).replace("nandlab.", "").replace("'", "")
                signature = re.sub(r"^\((self|cls|\$self|type)(, )?(/, |/)?", "(", signature)
            except (TypeError, ValueError):
                signature = "(...)"
            rows.append((code(member + signature), [about]))
        elif about and not about.startswith("Alias for field"):
            rows.append((code(member), [about]))
    rows = [*_fields(value), *rows]
    return [*text, definitions(rows)] if rows else text


# Results.


def results_part() -> str:
    """The values of `summary.json`, `power.json` and `life.parquet`, from the classes of the results."""
    source = inspect.getsource(result_types)
    text = []
    classes = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}
    for name, node in classes.items():
        text += [f"## `{name}`\n", _paragraphs(ast.get_docstring(node) or "")]
        rows = []
        for entry, after in zip(node.body, [*node.body[1:], None], strict=True):
            if not isinstance(entry, ast.AnnAssign) or not isinstance(entry.target, ast.Name):
                continue
            about = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                about = inspect.cleandoc(str(after.value.value))
            kind = ast.unparse(entry.annotation)
            inner = next((other for other in classes if re.search(rf"\b{other}\b", kind)), None)
            shown = f"[`{cell(kind)}`](#{inner.lower()})" if inner else code(kind)
            rows.append((f"{code(entry.target.id)}: {shown}", [cell(about)]))
        text.append(definitions(rows))
    return "\n".join(text)


def tables_part() -> str:
    """The columns of the Parquet files, from a small run."""
    spec = """
[drive]
channels = 1
chips_per_channel = 1
blocks_per_plane = 32
pages_per_block = 16
op = 0.25

[workload]
synthetic = { requests = 1000, read_fraction = 0.5, size = "4KiB", address = "uniform" }

[output]
requests = true
"""
    result = nandlab.run(spec)
    text = []
    for name, row in tables.TABLES.items():
        columns = getattr(result, name).schema.items()
        text += [f"## `{name}.parquet`\n", f"One row for each {row}.\n"]
        text.append(table(["column", "type"], ([code(column), code(kind)] for column, kind in columns)))
    return "\n".join(text)


def metrics_part() -> str:
    """The metrics that a comparison puts into words."""
    rows = []
    for metric in METRICS:
        expression = metric.expression.text
        rows.append(
            [
                code(metric.name),
                cell(metric.words),
                metric.unit.replace("us", "µs"),
                code("" if expression == metric.name else expression),
            ]
        )
    return table(["metric", "in words", "unit", "expression"], rows)


def study_metrics_part() -> str:
    """The further names that the expressions of a study may use."""
    from nandlab.study import metrics

    functions = (metrics.steady, metrics.exposure, metrics.settings)
    return "\n".join(
        f"**{function.__name__}**: {_paragraphs(inspect.getdoc(function) or '')}" for function in functions
    )


# Notes and trace formats, from the sources of the core.


class NoteInfo(NamedTuple):
    """A note of the core."""

    code: str
    severity: str
    when: str


def notes() -> list[NoteInfo]:
    """Every note of the core, with the comment of its function."""
    found = []
    for path in sorted([*CRATES.glob("nandlab/src/*/notes.rs"), CRATES / "nandlab-trace/src/notes.rs"]):
        source = path.read_text().split("#[cfg(test)]")[0]
        for match in re.finditer(r'Note::(error|warning|info)\(\s*"([a-z0-9-]+)"', source):
            head = list(re.finditer(r"((?:^/// ?.*\n)+)(?:pub\(crate\) )?fn ", source[: match.start()], re.MULTILINE))
            if not head:
                raise ValueError(f"{path}: the note {match.group(2)} has no comment")
            comment = re.sub(r"^/// ?", "", head[-1].group(1), flags=re.MULTILINE)
            when = comment.split("`requests`:")[0]
            found.append(NoteInfo(match.group(2), match.group(1), " ".join(when.split())))
    order = ["error", "warning", "info"]
    return sorted(found, key=lambda note: (order.index(note.severity), note.code))


def notes_part() -> str:
    """The notes of a result."""
    return definitions((f"{code(note.code)} ({note.severity})", [cell(note.when)]) for note in notes())


def trace_formats_part() -> str:
    """The trace formats with their columns, units and traps, from the comments of their readers."""
    formats = CRATES / "nandlab-trace/src/format"
    rows = (formats / "rows.rs").read_text()
    comments = re.findall(r"((?:^///.*\n)+)pub\(super\) static (\w+): FormatInfo", rows, re.MULTILINE)
    sources = {name.lower(): re.sub(r"^/// ?", "", comment, flags=re.MULTILINE) for comment, name in comments}
    for name, _ in trace.formats():
        if name in sources:
            continue
        source = (formats / f"{name.replace('-', '_')}.rs").read_text()
        lines = [line[3:].removeprefix(" ") for line in source.splitlines() if line.startswith("//!")]
        sources[name] = "\n".join(lines)
    return "\n".join(f"## `{name}`\n\n{sources[name]}\n" for name, _ in trace.formats())


def profiles_part() -> str:
    """The profiles of workloads."""
    return table(["profile", "requests"], ([code(row["name"]), f"{row['requests']:,}"] for row in trace.profiles()))


#: The generated parts, by the name in `<!-- generated: NAME -->`.
PARTS: dict[str, Callable[[], str]] = {
    "spec": spec_part,
    "policies": policies_part,
    "presets": presets_part,
    "examples": examples_part,
    "commands": commands_part,
    "python": python_part,
    "results": results_part,
    "tables": tables_part,
    "metrics": metrics_part,
    "study-metrics": study_metrics_part,
    "notes": notes_part,
    "trace-formats": trace_formats_part,
    "profiles": profiles_part,
}
