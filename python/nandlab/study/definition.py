"""A study file, read and checked: what runs there are to be, what is drawn, what is claimed."""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from nandlab._types import Problem
from nandlab.errors import OutputError, os_error_text
from nandlab.spec import set_arguments
from nandlab.study import toml_lines
from nandlab.study.expression import MAX_LENGTH, Expression, ExpressionError
from nandlab.study.problems import MAX_PROBLEMS, StudyError, near, problem, shown

#: Columns of the results table that are no metric and no grid axis.
LABELS = ("part", "variant", "workload")
KINDS = ("line", "bar", "cdf", "effects")
#: How two runs are compared by an effect: m(on) / m(off) - 1, or m(on) - m(off).
SCALES = ("ratio", "difference")
#: How the replicates of an effect become one number.
EFFECT_REDUCTIONS = ("mean", "median", "min", "max")
#: The variant with no factor on.
NO_FACTOR = "none"
MAX_FACTORS = 6
REDUCTIONS = ("only", "mean", "geomean", "median", "min", "max", "sum")
#: Of a study file: entries of one table or list, signs of a name and of a text, and the runs that it describes.
MAX_ENTRIES = 1000
MAX_NAME = 100
MAX_TEXT = 10_000
MAX_RUNS = 10_000
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
#: What may name a file or a folder.
_SAFE = re.compile(r"[\w-][\w.-]*")
#: Spec keys that hold a path; the content of the file counts, not its name.
PATH_KEYS = ("workload.trace", "precondition.load", "reliability.rber.table")


@dataclass(frozen=True)
class Override:
    """One key of the spec that the study sets."""

    key: str
    value: Any
    line: int | None

    @property
    def argument(self) -> str:
        return set_arguments({self.key: self.value})[0]


@dataclass(frozen=True)
class Choice:
    """A variant, a workload, or a point of a grid axis: a name and what it sets."""

    name: str
    title: str
    value: Any
    sets: tuple[Override, ...]
    line: int | None = None
    #: Numbers that expressions may use.
    facts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Factor:
    """Something that is off or on; the study has a variant for each combination."""

    #: A letter.
    name: str
    title: str
    off: tuple[Override, ...]
    on: tuple[Override, ...]
    line: int | None


@dataclass(frozen=True)
class Part:
    """A block of the study: variants x workloads x grid."""

    name: str
    title: str
    variants: tuple[Choice, ...]
    workloads: tuple[Choice, ...]
    grid: Mapping[str, tuple[Choice, ...]]
    sets: tuple[Override, ...]


@dataclass(frozen=True)
class Where:
    """Which rows: allowed values by column."""

    columns: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    lines: Mapping[str, int | None] = field(default_factory=dict)

    def matches(self, row: Mapping[str, Any]) -> bool:
        return all(row.get(name) in values for name, values in self.columns.items())

    def merged(self, other: Where) -> Where:
        return Where({**self.columns, **other.columns}, {**self.lines, **other.lines})


@dataclass(frozen=True)
class Reference:
    """A curve that is computed, to stand beside the measured ones."""

    name: str
    expression: Expression
    where: Where


@dataclass(frozen=True)
class Figure:
    id: str
    title: str
    caption: str
    kind: str
    metric: Expression
    over: str
    series: tuple[str, ...]
    panels: str | None
    where: Where
    normalised_to: str | None
    reduce: str
    #: Whether the mean over all places is drawn as one more.
    mean: bool
    log_x: bool
    log_y: bool
    x_title: str
    y_title: str
    references: tuple[Reference, ...]
    line: int | None
    #: Of effects.
    scale: str = "ratio"


@dataclass(frozen=True)
class Measure:
    """How a number is taken out of the results."""

    metric: Expression
    where: Where
    reduce: str
    normalised_to: str | None
    line: int | None
    #: One factor, or two for their interaction: the number is an effect on the metric, on this scale.
    effect: tuple[str, ...] = ()
    scale: str = "ratio"

    def text(self) -> str:
        rows = ", ".join(
            f"{name} = {' | '.join(str(value) for value in values)}" for name, values in self.where.columns.items()
        )
        if self.effect:
            over = "effect" if self.reduce == "mean" else f"{self.reduce} of the effect"
            return f"{over} of {':'.join(self.effect)} on {self.metric.text} ({self.scale})" + (
                f" where {rows}" if rows else ""
            )
        over = "" if self.reduce == "only" else f"{self.reduce} of "
        relative = f" relative to {self.normalised_to}" if self.normalised_to else ""
        return f"{over}{self.metric.text}{relative}" + (f" where {rows}" if rows else "")


@dataclass(frozen=True)
class Claim:
    id: str
    figure: str
    what: str
    #: `None`: only the direction is claimed.
    value: float | None
    relative: float | None
    absolute: float | None
    direction: str | None
    baseline: float | Measure | None
    source: str
    measure: Measure
    deviation: str
    line: int | None


@dataclass(frozen=True)
class Definition:
    """A study."""

    #: As the user named the file.
    path: str
    name: str
    title: str
    question: str
    notes: str
    base_text: str
    base_data: Mapping[str, Any]
    #: Name of the base in messages and its directory.
    base_name: str
    base_path: str
    base_dir: Path
    base_sets: tuple[Override, ...]
    factors: tuple[Factor, ...]
    parts: tuple[Part, ...]
    axes: tuple[str, ...]
    #: Columns and facts that expressions may name, with those of runs that the small size leaves out.
    names: frozenset[str]
    smoke: bool
    smoke_sets: tuple[Override, ...]
    #: What `{name}` in an override stands for, where no axis of that name says otherwise.
    values: Mapping[str, Any]
    metrics: Mapping[str, Expression]
    metric_lines: Mapping[str, int | None]
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    text: str
    titles: Mapping[tuple[str, Any], str]


def read(path: Path, *, smoke: bool = False) -> Definition:
    """Read a study file; raises `StudyError` with everything that is wrong, `OutputError` when it cannot be read."""
    try:
        text = toml_lines.read_text(path)
        data, lines = toml_lines.parse(text)
    except OSError as error:
        raise OutputError(os_error_text("read", path, error)) from None
    except toml_lines.TomlError as error:
        told = shown(error.detail or error)
        raise StudyError([problem(str(path), error.line, "", told, error.remedy)]) from None
    except ValueError as error:
        raise OutputError(f"{path}: {error}; a study is TOML in UTF-8") from None
    _check_size(str(path), data, lines)
    if "study" not in data:
        what = "a spec, not a study" if {"drive", "workload", "gc"} & data.keys() else "no study"
        remedy = "write [study] with title, question and base; `nandlab run` runs a spec"
        raise StudyError([problem(str(path), None, "", f"this is {what}: it has no [study]", remedy)])
    return _Reader(path, text, data, lines, smoke).read()


def _check_size(origin: str, data: dict[str, Any], lines: Mapping[toml_lines.Path, int]) -> None:
    """Refuse what no study needs, before time and memory go into it."""

    def look(value: Any, path: toml_lines.Path) -> None:
        if isinstance(value, (dict, list)):
            if len(value) > MAX_ENTRIES:
                refuse(path, f"{len(value):,} entries; the limit is {MAX_ENTRIES:,}", "give fewer, or make two studies")
            for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
                if isinstance(key, str) and (len(key) > MAX_NAME or _CONTROL.search(key)):
                    refuse((*path, key), "not a name", f"at most {MAX_NAME} signs, and no control characters")
                look(entry, (*path, key))
        elif isinstance(value, str):
            if len(value) > MAX_TEXT:
                remedy = f"write less; an expression has at most {MAX_LENGTH:,}"
                refuse(path, f"a text of {len(value):,} signs; the limit is {MAX_TEXT:,}", remedy)
            if _CONTROL.search(value):
                refuse(path, "a control character", "a text has no others than the ends of its lines")
        elif isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                refuse(path, "a number beyond 64 bits", "write a smaller one")
        elif isinstance(value, float):
            if not math.isfinite(value):
                refuse(path, "a number that is not finite", "write a finite one")
        else:
            refuse(path, "a date or time", "write a number or a text")

    def refuse(path: toml_lines.Path, message: str, remedy: str) -> NoReturn:
        found = path
        while found and found not in lines:
            found = found[:-1]
        raise StudyError([problem(origin, lines.get(found), ".".join(map(str, path)), message, remedy)])

    look(data, ())


class _Table:
    """A table being read: what is taken is checked, what is left over is refused."""

    def __init__(self, reader: _Reader, data: Mapping[str, Any], path: toml_lines.Path) -> None:
        self.reader = reader
        self.data = data
        self.path = path
        self.known: list[str] = []

    def line(self, *keys: str | int) -> int | None:
        path = (*self.path, *keys)
        while path and path not in self.reader.lines:
            path = path[:-1]
        return self.reader.lines.get(path)

    def say(self, keys: tuple[str | int, ...], message: str, remedy: str) -> None:
        name = ".".join(str(part) for part in (*self.path, *keys))
        self.reader.problems.append(problem(str(self.reader.path), self.line(*keys), name, message, remedy))
        if len(self.reader.problems) >= MAX_PROBLEMS:
            self.reader.refuse()

    def take(
        self, key: str, kinds: type | tuple[type, ...], wanted: str, default: Any = None, *, must: bool = False
    ) -> Any:
        self.known.append(key)
        if key not in self.data:
            if must:
                self.say((key,), "missing", f"give {wanted}")
            return default
        value = self.data[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            self.say((key,), f"{_kind(value)} where {wanted} is wanted", f"write {wanted}")
            return default
        return value

    def text(self, key: str, default: str = "", *, must: bool = False) -> str:
        value: str = self.take(key, str, "a text", default, must=must)
        if must and key in self.data and isinstance(self.data[key], str) and not value.strip():
            self.say((key,), "empty", "write a text")
        return value

    def flag(self, key: str) -> bool:
        value: bool = self.take(key, bool, "true or false", False)
        return value

    def choice(self, key: str, choices: Iterable[str], default: str) -> str:
        value = self.text(key, default)
        names = list(choices)
        if value not in names:
            self.say((key,), f'unknown value "{shown(value)}"', near(value, names))
            return default
        return value

    def table(self, key: str) -> _Table:
        return _Table(self.reader, self.take(key, dict, "a table", {}), (*self.path, key))

    def tables(self, key: str) -> list[_Table]:
        found = []
        for index, entry in enumerate(self.take(key, list, f"tables, [[{key}]]", [])):
            if isinstance(entry, dict):
                found.append(_Table(self.reader, entry, (*self.path, key, index)))
            else:
                self.say((key, index), f"{_kind(entry)} where a table is wanted", f"write it as [[{key}]]")
        return found

    def named(self, key: str) -> list[tuple[str, _Table]]:
        outer = self.table(key)
        found = []
        for name, entry in outer.data.items():
            if isinstance(entry, dict):
                found.append((name, _Table(self.reader, entry, (*outer.path, name))))
            else:
                outer.say((name,), f"{_kind(entry)} where a table is wanted", f"write [{key}.{shown(name)}]")
        return found

    def names(self, key: str, known: Iterable[str]) -> list[str] | None:
        """A list of names out of those that there are."""
        listed = self.take(key, list, "a list of names", None)
        if listed is None:
            return None
        names = dict.fromkeys(known)
        for index, name in enumerate(listed):
            if not isinstance(name, str) or name not in names:
                self.say((key, index), f'there is no "{shown(name)}"', near(name, names))
        return [name for name in listed if isinstance(name, str) and name in names]

    def expression(self, key: str, *, must: bool = False) -> Expression | None:
        text = self.take(
            key, str, 'a metric, such as "waf" or "flash.program.gc / flash.program.host"', None, must=must
        )
        if text is None:
            return None
        try:
            return Expression.parse(text)
        except ExpressionError as error:
            self.say((key,), str(error), error.remedy)
            return None

    def sets(self, key: str = "set") -> tuple[Override, ...]:
        return self.table(key).as_sets()

    def as_sets(self) -> tuple[Override, ...]:
        """Keys of a spec: quoted dotted keys as they are; a section written as a table, key by key."""
        found = []
        for key, value in self.data.items():
            if isinstance(value, dict) and "." not in key:
                found += [Override(f"{key}.{name}", entry, self.line(key, name)) for name, entry in value.items()]
            else:
                found.append(Override(key, value, self.line(key)))
        return tuple(self.reader.placed(override) for override in found)

    def done(self) -> None:
        for key in self.data:
            if key not in self.known:
                self.say((key,), "unknown key", near(key, self.known))


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a yes or no"
    for kind, name in ((str, "a text"), (int, "a number"), (float, "a number"), (list, "a list"), (dict, "a table")):
        if isinstance(value, kind):
            return name
    return f"a {type(value).__name__}"


class _Reader:
    def __init__(
        self, path: Path, text: str, data: dict[str, Any], lines: dict[toml_lines.Path, int], smoke: bool
    ) -> None:
        self.path = path
        self.text = text
        self.lines = lines
        self.problems: list[Problem] = []
        self.smoke = smoke
        self.root = _Table(self, data, ())
        self.base_dir = path.parent.absolute()
        self.titles: dict[tuple[str, Any], str] = {}
        self.values: dict[str, Any] = {}
        self.factors: tuple[Factor, ...] = ()

    def placed(self, override: Override) -> Override:
        """A relative path in a study counts from the study's directory; the spec counts from its base's."""
        if override.key not in PATH_KEYS or not isinstance(override.value, str):
            return override
        written = os.path.expandvars(override.value)
        if missing := re.search(r"\$\{?(\w+)", written):
            name = shown(missing[1])
            self.problems.append(
                problem(
                    str(self.path),
                    override.line,
                    override.key,
                    f"the environment has no {name}",
                    f"export {name}=FOLDER, the folder with these files",
                )
            )
            return override
        override = Override(override.key, written, override.line)
        if os.path.isabs(written):
            return override
        there = os.path.normpath(os.path.join(self.path.parent.absolute(), override.value))
        return Override(override.key, os.path.relpath(there, self.base_dir), override.line)

    def read(self) -> Definition:
        root = self.root
        study = root.table("study")
        title = study.text("title", self.path.stem, must=True)
        question = study.text("question", must=True)
        notes = study.text("notes")
        base_text, base_data, base_name, base_path, base_sets = self.base(root, study)
        name = self.safe(study, "name", study.text("name", self.own_name()))
        study.done()

        values = root.table("values")
        for key in values.data:
            self.values[key] = values.take(key, (int, float, str), "a number or a text")
            if len(str(self.values[key])) > MAX_LENGTH:
                values.say((key,), f"more than {MAX_LENGTH:,} signs", "write less")
        variants = [self.named_choice("variant", key, table) for key, table in root.named("variants")]
        self.factors = tuple(self.factor(key, table) for key, table in root.named("factors"))
        variants += self.combinations(root, [choice.name for choice in variants])
        workloads = [self.workload(key, table) for key, table in root.named("workloads")]
        variants = variants or [Choice("base", "base", "base", ())]
        workloads = workloads or [Choice("base", "base", "base", ())]
        grid = self.grid(root.table("grid"))
        parts = self.parts(root, variants, workloads, grid)
        # A part without variants counts too: what it has is looked through.
        count = sum(
            math.prod(max(len(found), 1) for found in (p.variants, p.workloads, *p.grid.values())) for p in parts
        )
        if count > MAX_RUNS:
            root.say(("grid",), f"more than {MAX_RUNS:,} runs", "give fewer axes, values or parts, or make two studies")
            self.refuse()
        all_axes = list(dict.fromkeys(axis for part in parts for axis in part.grid))
        smoke_sets: tuple[Override, ...] = ()
        smoke = root.table("smoke")
        if self.smoke or smoke.data:
            smaller, smoke_sets, smoke_values = self.smoke_parts(smoke, parts)
            if self.smoke:
                parts = smaller
                self.values |= smoke_values
        axes = list(dict.fromkeys(axis for part in parts for axis in part.grid))
        there = {column: _values_of(column, parts) for column in [*LABELS, *all_axes]}

        metrics: dict[str, Expression] = {}
        metric_table = root.table("metrics")
        for key in metric_table.data:
            if key in there:
                metric_table.say((key,), "a column of this name is there already", "choose another name")
            expression = metric_table.expression(key)
            if expression is not None:
                metrics[key] = expression
        figures = [self.figure(table, there) for table in root.tables("figures")]
        self.unique(root, "figures", [figure.id for figure in figures])
        claims = [
            claim
            for table in root.tables("claims")
            if (claim := self.claim(table, there, {figure.id: figure for figure in figures})) is not None
        ]
        self.unique(root, "claims", [claim.id for claim in claims])
        root.done()
        if self.problems:
            self.refuse()
        return Definition(
            path=str(self.path),
            name=name,
            title=title,
            question=question,
            notes=notes,
            base_text=base_text,
            base_data=base_data,
            base_name=base_name,
            base_path=base_path,
            base_dir=self.base_dir,
            base_sets=base_sets,
            factors=self.factors,
            parts=tuple(parts),
            axes=tuple(axes),
            names=frozenset(there).union(*(choice.facts for choice in [*variants, *workloads])),
            smoke=self.smoke,
            smoke_sets=smoke_sets if self.smoke else (),
            values=self.values,
            metrics=metrics,
            metric_lines={key: metric_table.line(key) for key in metrics},
            figures=tuple(figures),
            claims=tuple(claims),
            text=self.text,
            titles=self.titles,
        )

    def refuse(self) -> NoReturn:
        raise StudyError(sorted(self.problems, key=lambda entry: entry["line"] or 0))

    def unique(self, root: _Table, key: str, ids: list[str]) -> None:
        for index, name in enumerate(ids):
            if name in ids[:index]:
                root.say((key, index, "id"), f'"{shown(name)}" is there already', "give each an id of its own")

    # ---------------------------------------------------------------------------------------------------------- runs

    def own_name(self) -> str:
        """What the study is called that says nothing: as its file, or as the folder of a study.toml."""
        path = Path(os.path.abspath(self.path))
        own = path.parent.name if path.stem == "study" else path.stem
        return re.sub(r"[^\w.-]+", "-", own).lstrip(".")[:MAX_NAME] or "study"

    def safe(self, table: _Table, key: str, name: str) -> str:
        """A name that becomes one of a file or a folder: it must not lead elsewhere."""
        if not _SAFE.fullmatch(name) or len(name.encode()) > MAX_NAME:
            table.say(
                (key,),
                f'"{shown(name)}" cannot name a file',
                f"letters, digits, - and _, and points but for the first sign; at most {MAX_NAME} bytes",
            )
        return name

    def base(self, root: _Table, study: _Table) -> tuple[str, Mapping[str, Any], str, str, tuple[Override, ...]]:
        file = study.text("base", "")
        inline = root.table("base")
        if file and inline.data:
            study.say(("base",), "a base file is named, and [base] is there as well", "keep one of the two")
        if not file:
            if "base" not in self.root.data and not study.data.get("base"):
                study.say(("base",), "missing", 'name a spec, base = "base.toml", or write its keys under [base]')
            return "", {}, "study", str(self.path), inline.as_sets()
        path = self.path.parent / file
        self.base_dir = path.parent.absolute()
        # What is in the file is not told: it may be any that the user can read.
        try:
            text = toml_lines.read_text(path)
            return text, toml_lines.parse(text)[0], path.name, str(path), ()
        except OSError as error:
            told = os_error_text("read", shown(path, 200), error)
            study.say(("base",), told, "a relative path counts from the study's directory")
        except toml_lines.TomlError as error:
            told = f"the base spec is no spec: {shown(path, 200)}:{error.line}: {error}"
            study.say(("base",), told, error.remedy)
        except ValueError as error:
            study.say(("base",), f"cannot read {shown(path, 200)}: {error}", "a spec is a file of TOML in UTF-8")
        return "", {}, path.name, str(path), ()

    def named_choice(self, column: str, name: str, table: _Table) -> Choice:
        title = table.text("title", name)
        sets = table.sets()
        facts = self.facts(table)
        table.done()
        self.titles[(column, name)] = title
        return Choice(name, title, name, sets, table.line(), facts)

    def factor(self, name: str, table: _Table) -> Factor:
        if len(name) != 1 or not name.isalpha():
            table.say(
                (), f'"{shown(name)}" is no letter', "variants are named by the letters that are on: write [factors.A]"
            )
        if "on" not in table.data:
            table.say(("on",), "missing", 'give the keys of the spec that it sets, on = { "gc.victim" = "fifo" }')
        title = table.text("title", name)
        factor = Factor(name, title, table.sets("off"), table.sets("on"), table.line())
        table.done()
        return factor

    def combinations(self, root: _Table, there: list[str]) -> list[Choice]:
        """A variant for every combination of the factors, those with few on first."""
        if not self.factors:
            return []
        if len(self.factors) > MAX_FACTORS:
            root.say(
                ("factors",),
                f"{len(self.factors)} factors make {2 ** len(self.factors)} variants",
                f"give {MAX_FACTORS} or fewer",
            )
            return []
        found = []
        for size in range(len(self.factors) + 1):
            for chosen in itertools.combinations(self.factors, size):
                name = "".join(factor.name for factor in chosen) or NO_FACTOR
                if name in there:
                    root.say(("variants", name), "the factors make a variant of this name", "choose another name")
                sets = [override for f in self.factors for override in (f.on if f in chosen else f.off)]
                self.titles[("variant", name)] = name
                found.append(Choice(name, name, name, tuple(sets)))
        return found

    def facts(self, table: _Table) -> dict[str, float]:
        inner = table.table("facts")
        return {key: inner.take(key, (int, float), "a number", 0.0) for key in inner.data}

    def workload(self, name: str, table: _Table) -> Choice:
        title = table.text("title", name)
        sets = list(table.sets())
        facts = self.facts(table)
        for key in table.data:
            if key not in ("title", "set", "facts"):
                table.known.append(key)
                sets.append(self.placed(Override(f"workload.{key}", table.data[key], table.line(key))))
        self.titles[("workload", name)] = title
        return Choice(name, title, name, tuple(sets), table.line(), facts)

    def grid(self, table: _Table) -> dict[str, tuple[Choice, ...]]:
        axes: dict[str, tuple[Choice, ...]] = {}
        for axis, listed in table.data.items():
            if axis in LABELS:
                table.say((axis,), "a column of this name is there already", "choose another name for the axis")
                continue
            if not isinstance(listed, list) or not listed:
                table.say(
                    (axis,), f"{_kind(listed)} where a list of values is wanted", f'write "{shown(axis)}" = [ ... ]'
                )
                continue
            points = [self.point(table, axis, index, entry) for index, entry in enumerate(listed)]
            values = [repr(point.value) for point in points]
            for index, value in enumerate(values):
                if value in values[:index]:
                    table.say(
                        (axis, index), f"{shown(repr(points[index].value))} is there already", "name each value once"
                    )
            axes[axis] = tuple(points)
        return axes

    def point(self, table: _Table, axis: str, index: int, entry: Any) -> Choice:
        if isinstance(entry, dict) and ("value" in entry or "set" in entry):
            inner = _Table(self, entry, (*table.path, axis, index))
            value = inner.take("value", (int, float, str), "a number or a text", str(index), must=True)
            title = inner.text("title", str(value))
            sets = inner.sets()
            inner.done()
        elif axis in self.values and isinstance(entry, (int, float, str)):
            value, sets, title = entry, (), str(entry)
        else:
            sets = (self.placed(Override(axis, entry, table.line(axis, index))),)
            value = entry if isinstance(entry, (int, float, str)) else set_arguments({"x": entry})[0][2:]
            title = str(value)
        self.titles[(axis, value)] = title
        return Choice(str(value), title, value, sets, table.line(axis, index))

    def parts(
        self, root: _Table, variants: list[Choice], workloads: list[Choice], grid: dict[str, tuple[Choice, ...]]
    ) -> list[Part]:
        named = root.named("parts")
        if not named:
            return [Part("all", "all", tuple(variants), tuple(workloads), grid, ())]
        parts = []
        for name, table in named:
            title = table.text("title", name)
            wanted = table.names("variants", [choice.name for choice in variants])
            offered = table.names("workloads", [choice.name for choice in workloads])
            own = self.grid(table.table("grid")) if "grid" in table.data else grid
            table.known.append("grid")
            sets = table.sets()
            table.done()
            self.titles[("part", name)] = title
            parts.append(
                Part(
                    name,
                    title,
                    tuple(choice for choice in variants if wanted is None or choice.name in wanted),
                    tuple(choice for choice in workloads if offered is None or choice.name in offered),
                    own,
                    sets,
                )
            )
        return parts

    def smoke_parts(self, table: _Table, parts: list[Part]) -> tuple[list[Part], tuple[Override, ...], dict[str, Any]]:
        """The same study, small: fewer variants, workloads and points, and overrides on top."""
        kept = table.names("parts", [part.name for part in parts])
        variants = table.names("variants", dict.fromkeys(c.name for part in parts for c in part.variants))
        workloads = table.names("workloads", dict.fromkeys(c.name for part in parts for c in part.workloads))
        sets = table.sets()
        grid = table.table("grid")
        other = table.table("values")
        smaller_values = {key: other.take(key, (int, float, str), "a number or a text") for key in other.data}
        for key in smaller_values:
            if key not in self.values:
                other.say((key,), "no value of this name", near(key, self.values))
        table.done()
        wanted: dict[str, list[Any]] = {}
        for axis, values in grid.data.items():
            points = _values_of(axis, parts)
            if not points:
                grid.say((axis,), "no axis of this name", near(axis, {a: None for part in parts for a in part.grid}))
            elif not isinstance(values, list):
                grid.say((axis,), f"{_kind(values)} where a list is wanted", "list the values to keep")
            else:
                for index, value in enumerate(values):
                    if value not in points:
                        grid.say(
                            (axis, index),
                            f"{shown(repr(value))} is no value of this axis",
                            near(value, map(str, points)),
                        )
                wanted[axis] = values
        smaller = [
            Part(
                part.name,
                part.title,
                tuple(c for c in part.variants if variants is None or c.name in variants),
                tuple(c for c in part.workloads if workloads is None or c.name in workloads),
                {
                    axis: tuple(p for p in points if axis not in wanted or p.value in wanted[axis])
                    for axis, points in part.grid.items()
                },
                part.sets,
            )
            for part in parts
            if kept is None or part.name in kept
        ]
        return smaller, sets, smaller_values

    # -------------------------------------------------------------------------------------------- figures and claims

    def where(self, table: _Table, there: Mapping[str, list[Any]], key: str = "where") -> Where:
        inner = table.table(key)
        allowed: dict[str, tuple[Any, ...]] = {}
        for name, value in inner.data.items():
            if name not in there:
                inner.say((name,), "no column of this name", near(name, there))
                continue
            values = tuple(value) if isinstance(value, list) else (value,)
            for one in values:
                if one not in there[name] and not self.smoke:
                    told = f"{shown(repr(one))} is no value of {shown(name)}"
                    inner.say((name,), told, near(one, map(str, there[name])))
            allowed[name] = values
        return Where(allowed, {name: inner.line(name) for name in allowed})

    def variant_name(self, table: _Table, key: str, there: Mapping[str, list[Any]]) -> str | None:
        value: str | None = table.take(key, str, "the name of a variant", None)
        if value is not None and value not in there["variant"] and not self.smoke:
            table.say((key,), f'there is no variant "{shown(value)}"', near(value, there["variant"]))
            return None
        return value

    def figure(self, table: _Table, there: Mapping[str, list[Any]]) -> Figure:
        name = self.safe(table, "id", table.text("id", "figure", must=True))
        kind = table.choice("kind", KINDS, "line")
        metric = table.expression("metric", must=True) or Expression.parse("0")
        if kind == "cdf":
            ops = [f"latency_us.{op}" for op in ("read", "write", "trim", "flush")]
            if "metric" in table.data and metric.text not in ops:
                table.say(("metric",), f'a cdf is of a latency, not of "{shown(metric.text)}"', near(metric.text, ops))
            over = metric.text
        elif kind == "effects":
            over = "effect"
            others = ("over", "series", "reduce", "normalised_to", "mean", "log_x", "log_y", "x_title", "reference")
            for key in others:
                if key in table.data:
                    table.say((key,), "a figure of effects has none", "leave it out")
            if not self.factors:
                table.say(("kind",), "the study has no factors", "write [factors.A] with off and on")
        else:
            over = table.text("over", must=True)
            if over and over not in there:
                table.say(("over",), f'no column "{shown(over)}"', near(over, there))
        series_given = table.take("series", (str, list), "the name of a column, or a list of them", None)
        series = [series_given] if isinstance(series_given, str) else series_given
        if series is None:
            series = ["workload"] if over == "variant" else ["variant"]
        for index, column in enumerate(series):
            if not isinstance(column, str) or column not in there:
                keys = ("series", index) if isinstance(series_given, list) else ("series",)
                table.say(keys, f'no column "{shown(column)}"', near(column, there))
        panels = table.take("panels", str, "the name of a column", None)
        if panels is not None and panels not in there:
            table.say(("panels",), f'no column "{shown(panels)}"', near(panels, there))
        references = []
        for inner in table.tables("reference"):
            expression = inner.expression("expression", must=True)
            label = inner.text("name", must=True)
            where = self.where(inner, there)
            inner.done()
            if expression is not None:
                references.append(Reference(label, expression, where))
        relative = self.variant_name(table, "normalised_to", there)
        if "scale" in table.data and kind != "effects":
            table.say(("scale",), f"a {kind} has none", 'leave it out, or kind = "effects"')
        if table.data.get("mean") is True and kind != "bar":
            table.say(("mean",), f"a {kind} has no place for it", 'leave it out, or kind = "bar"')
        figure = Figure(
            id=name,
            title=table.text("title", must=True),
            caption=table.text("caption"),
            kind=kind,
            metric=metric,
            over=over,
            series=tuple(series),
            panels=panels,
            where=self.where(table, there),
            normalised_to=relative,
            reduce=table.choice("reduce", REDUCTIONS, "mean"),
            mean=table.flag("mean"),
            log_x=table.flag("log_x"),
            log_y=table.flag("log_y"),
            x_title=table.text("x_title", over),
            y_title=table.text("y_title", f"{metric.text} / {relative}" if relative else metric.text),
            references=tuple(references),
            line=table.line(),
            scale=table.choice("scale", SCALES, "ratio"),
        )
        table.done()
        return figure

    def claim(self, table: _Table, there: Mapping[str, list[Any]], figures: Mapping[str, Figure]) -> Claim | None:
        before = len(self.problems)
        figure_id = table.text("figure", must=True)
        figure = figures.get(figure_id)
        if figure is None and figure_id:
            table.say(("figure",), f'there is no figure "{shown(figure_id)}"', near(figure_id, figures))
        what = table.text("what", must=True)
        name = table.text("id", f"{figure_id}-{table.path[-1]}")
        value = table.take("value", (int, float), "a number", None)
        has_value = "value" in table.data
        if not has_value and "direction" not in table.data:
            table.say(("value",), "missing", "give a number; or a direction alone, where no number is reported")
        source = table.text("source", must=True)
        tolerance = table.take("tolerance", dict, "{ relative = 0.02 } or { absolute = 0.1 }", {}, must=has_value)
        if not has_value and "tolerance" in table.data:
            table.say(("tolerance",), "a tolerance without a value", "give the value, or leave the tolerance out")
        inner = _Table(self, tolerance, (*table.path, "tolerance"))
        relative = inner.take("relative", (int, float), "a number", None)
        absolute = inner.take("absolute", (int, float), "a number", None)
        inner.done()
        if (relative is None) == (absolute is None) and isinstance(table.data.get("tolerance"), dict):
            table.say(("tolerance",), "one of relative and absolute is wanted", "write { relative = 0.02 }")
        for key, number in (("relative", relative), ("absolute", absolute)):
            if number is not None and number < 0:
                inner.say((key,), f"{number} is below 0", "a tolerance is 0 or more")
        direction: str | None = table.take("direction", str, '"above" or "below"', None)
        if direction is not None and direction not in ("above", "below"):
            table.say(("direction",), f'unknown value "{shown(direction)}"', near(direction, ("above", "below")))
        measure = self.measure(table, "measure", there, figure)
        baseline = self.baseline(table, there, figure, measure)
        if direction is not None and baseline is None and "baseline" not in table.data:
            table.say(
                ("direction",),
                "above or below what?",
                "give baseline = 1.0, or baseline = { where = { variant = ... } }, or a figure that is normalised",
            )
        deviation = table.text("deviation")
        table.done()
        if len(self.problems) > before or measure is None:
            return None
        if direction is None and value is not None and isinstance(baseline, (int, float)) and value != baseline:
            direction = "above" if value > baseline else "below"
        return Claim(
            id=name,
            figure=figure_id,
            what=what,
            value=None if value is None else float(value),
            relative=relative,
            absolute=absolute,
            direction=direction,
            baseline=baseline,
            source=source,
            measure=measure,
            deviation=deviation,
            line=table.line(),
        )

    def baseline(
        self, table: _Table, there: Mapping[str, list[Any]], figure: Figure | None, measure: Measure | None
    ) -> float | Measure | None:
        given = table.take("baseline", (int, float, dict), "a number, or { where = ... }", None)
        if isinstance(given, dict):
            base = self.measure(table, "baseline", there, figure)
            if base is None or measure is None or "where" not in given:
                return base
            # The baseline is the same measurement elsewhere.
            return Measure(
                base.metric if "metric" in given else measure.metric,
                measure.where.merged(self.where(_Table(self, given, (*table.path, "baseline")), there)),
                base.reduce if "reduce" in given else measure.reduce,
                measure.normalised_to,
                base.line,
                base.effect if "effect" in given else measure.effect,
                measure.scale,
            )
        if given is not None:
            return float(given)
        if figure is not None and figure.kind == "effects":
            return 0.0
        return 1.0 if measure is not None and measure.normalised_to is not None else None

    def measure(self, table: _Table, key: str, there: Mapping[str, list[Any]], figure: Figure | None) -> Measure | None:
        inner = table.table(key)
        own = inner.expression("metric")
        where = self.where(inner, there)
        is_effect = figure is not None and figure.kind == "effects"
        reduce = inner.choice("reduce", *((EFFECT_REDUCTIONS, "mean") if is_effect else (REDUCTIONS, "only")))
        relative = self.variant_name(inner, "normalised_to", there)
        effect = self.effect(inner)
        # A baseline's is that of its measure when not given.
        if is_effect and not effect and key == "measure":
            inner.say(("effect",), "missing", 'say which: measure = { effect = "A" }, or "A:B" for an interaction')
        if effect and not is_effect:
            inner.say(("effect",), "the figure of this claim shows no effects", "name a figure of effects")
        if is_effect and relative is not None:
            inner.say(("normalised_to",), "an effect is relative already", "leave it out")
        inner.done()
        if figure is None:
            return None
        if figure.kind == "cdf" and own is None:
            inner.say((), "a cdf has no single number", 'say which: measure = { metric = "latency_us.read.p99" }')
            return None
        return Measure(
            own or figure.metric,
            figure.where.merged(where),
            reduce,
            relative if relative is not None else figure.normalised_to,
            inner.line(),
            effect,
            figure.scale,
        )

    def effect(self, table: _Table) -> tuple[str, ...]:
        """`"A"`, or `"A:B"`."""
        text = table.take("effect", str, 'a factor, "A", or two, "A:B"', None)
        if text is None:
            return ()
        names = tuple(text.split(":"))
        known = [factor.name for factor in self.factors]
        for name in names:
            if name not in known:
                table.say(("effect",), f'there is no factor "{shown(name)}"', near(name, known))
        if len(names) > 2 or len(set(names)) < len(names):
            table.say(("effect",), f'"{shown(text)}" is neither a factor nor a pair', 'write "A", or "A:B"')
        return names


def _values_of(column: str, parts: list[Part]) -> list[Any]:
    found: dict[Any, None] = {}
    for part in parts:
        if column == "part":
            found[part.name] = None
        elif column in ("variant", "workload"):
            found.update((c.name, None) for c in (part.variants if column == "variant" else part.workloads))
        else:
            found.update((point.value, None) for point in part.grid.get(column, ()))
    return list(found)
