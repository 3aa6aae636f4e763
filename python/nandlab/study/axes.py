"""The differences between the runs of a study: variants, workloads, points of the grid, and parts that combine them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from nandlab.spec import set_arguments
from nandlab.study.file import ChoiceTable, FactorTable, Grid, PartTable, PointTable, SmokeTable, StudyFile
from nandlab.study.metrics import is_metric
from nandlab.study.model import COLUMNS, NO_FACTOR, SEED, Choice, Factor, Override, Part
from nandlab.study.problems import near, shown
from nandlab.study.reading import Reading
from nandlab.study.source import Path

MAX_FACTORS = 6

T = TypeVar("T")


@dataclass
class Axes:
    """The differences between the runs of a study."""

    values: Mapping[str, Any]
    factors: tuple[Factor, ...] = ()
    parts: list[Part] = field(default_factory=list)
    titles: dict[tuple[str, Any], str] = field(default_factory=dict)
    #: Names of the facts that variants and workloads define; expressions may use these names.
    facts: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Seeds:
    """The seeds of the replicates."""

    first: int
    #: Replicates of a part that does not say how many; `None`: the parts are not replicated.
    replicates: int | None
    #: The number that the caller wants; a part with fewer replicates of its own keeps its number.
    wanted: int | None = None

    def of(self, part: int | None) -> int | None:
        """The replicates of a part that asks for `part`."""
        if self.wanted is None:
            return part or self.replicates
        return self.wanted if part is None else min(part, self.wanted)


def read_axes(reading: Reading, file: StudyFile, values: Mapping[str, Any], seeds: Seeds) -> Axes:
    """The parts of a study, each with its variants, workloads, grid and seeds."""
    axes = Axes(values)
    variants = [_choice(reading, axes, "variant", name, table) for name, table in _given(file.variants)]
    axes.factors = tuple(_factor(reading, name, table) for name, table in _given(file.factors))
    variants += _combinations(reading, axes, [choice.name for choice in variants])
    workloads = [_choice(reading, axes, "workload", name, table) for name, table in _given(file.workloads)]
    variants = variants or [Choice("base", "base", "base", ())]
    workloads = workloads or [Choice("base", "base", "base", ())]
    grid = _grid(reading, axes, file.grid, ("grid",))
    axes.parts = [
        _part(reading, axes, name, table, variants, workloads, grid, seeds) for name, table in _given(file.parts)
    ]
    if not axes.parts:
        grid = _replicated(reading, axes, grid, seeds, None, ("study", "replicates"))
        axes.parts = [Part("all", "all", tuple(variants), tuple(workloads), grid, ())]
    return axes


def _replicated(
    reading: Reading,
    axes: Axes,
    grid: dict[str, tuple[Choice, ...]],
    seeds: Seeds,
    part: int | None,
    path: Path,
) -> dict[str, tuple[Choice, ...]]:
    """The grid with the seeds of the replicates as its last axis."""
    if SEED in grid:
        if part is not None or seeds.replicates is not None:
            reading.report(path, f"the grid lists the values of {SEED}", "keep the list, or give `replicates`")
        return grid if seeds.wanted is None else {**grid, SEED: grid[SEED][: seeds.wanted]}
    count = seeds.of(part)
    if count is None:
        return grid
    numbers = range(seeds.first, seeds.first + count)
    axes.titles.update(((SEED, number), str(number)) for number in numbers)
    line = reading.line(path)
    points = tuple(Choice(str(n), str(n), n, (Override(SEED, n, line),), line) for n in numbers)
    return {**grid, SEED: points}


def values_of(column: str, parts: list[Part]) -> list[Any]:
    """The values that a column of the results table can have."""
    found: dict[Any, None] = {}
    for part in parts:
        if column == "part":
            found[part.name] = None
        elif column in ("variant", "workload"):
            found.update((c.name, None) for c in (part.variants if column == "variant" else part.workloads))
        else:
            found.update((point.value, None) for point in part.grid.get(column, ()))
    return list(found)


def _given(tables: Mapping[str, T | None] | None) -> list[tuple[str, T]]:
    return [(name, table) for name, table in (tables or {}).items() if table is not None]


def _choice(reading: Reading, axes: Axes, column: str, name: str, table: ChoiceTable) -> Choice:
    """A variant or a workload; the further keys of a workload are keys of the spec's [workload]."""
    path = (f"{column}s", name)
    title = name if table.title is None else table.title
    sets = list(reading.sets(table.set, (*path, "set")))
    for key, value in (table.model_extra or {}).items():
        sets.append(reading.placed(Override(f"workload.{key}", value, reading.line((*path, key)))))
    facts = {key: value for key, value in (table.facts or {}).items() if value is not None}
    axes.facts.update(facts)
    axes.titles[(column, name)] = title
    return Choice(name, title, name, tuple(sets), reading.line(path), facts)


def _factor(reading: Reading, name: str, table: FactorTable) -> Factor:
    path = ("factors", name)
    if len(name) != 1 or not name.isalpha():
        remedy = "write [factors.A]; the letters name the variants"
        reading.report(path, f'expected a letter, found "{shown(name)}"', remedy)
    off, on = reading.sets(table.off, (*path, "off")), reading.sets(table.on, (*path, "on"))
    return Factor(name, name if table.title is None else table.title, off, on, reading.line(path))


def _combinations(reading: Reading, axes: Axes, there: list[str]) -> list[Choice]:
    """A variant for each combination of the factors, ordered by the number of factors that are on."""
    factors = axes.factors
    if not factors:
        return []
    if len(factors) > MAX_FACTORS:
        message = f"{len(factors)} factors make {2 ** len(factors)} variants"
        reading.report(("factors",), message, f"give at most {MAX_FACTORS} factors")
        return []
    found = []
    for size in range(len(factors) + 1):
        for chosen in itertools.combinations(factors, size):
            name = "".join(factor.name for factor in chosen) or NO_FACTOR
            if name in there:
                message = "a combination of the factors has this name"
                reading.report(("variants", name), message, "choose another name")
            sets = [override for f in factors for override in (f.on if f in chosen else f.off)]
            axes.titles[("variant", name)] = name
            found.append(Choice(name, name, name, tuple(sets)))
    return found


def _grid(reading: Reading, axes: Axes, grid: Grid | None, path: Path) -> dict[str, tuple[Choice, ...]]:
    found: dict[str, tuple[Choice, ...]] = {}
    for axis, listed in (grid or {}).items():
        if axis in COLUMNS or is_metric(axis):
            message = "a result of each run has this name" if is_metric(axis) else "a column has this name already"
            reading.report((*path, axis), message, "choose another name for the axis")
            continue
        entries = [(index, entry) for index, entry in enumerate(listed or []) if entry is not None]
        points = [_point(reading, axes, (*path, axis, index), entry) for index, entry in entries]
        seen: set[str] = set()
        for (index, _), point in zip(entries, points, strict=True):
            if repr(point.value) in seen:
                message = f"duplicate value {shown(repr(point.value))}"
                reading.report((*path, axis, index), message, "list each value once")
            seen.add(repr(point.value))
        found[axis] = tuple(points)
    return found


def _point(reading: Reading, axes: Axes, path: Path, entry: object) -> Choice:
    axis = str(path[-2])
    sets: tuple[Override, ...] = ()
    value: Any = entry
    title = None
    if isinstance(entry, PointTable):
        value = str(path[-1]) if entry.value is None else entry.value
        title = entry.title
        sets = reading.sets(entry.set, (*path, "set"))
    elif axis not in axes.values or not isinstance(entry, (int, float, str)):
        sets = (reading.placed(Override(axis, entry, reading.line(path))),)
        if not isinstance(entry, (int, float, str)):
            value = set_arguments({"x": entry})[0][2:]
    title = str(value) if title is None else title
    axes.titles[(axis, value)] = title
    return Choice(str(value), title, value, sets, reading.line(path))


def _part(
    reading: Reading,
    axes: Axes,
    name: str,
    table: PartTable,
    variants: list[Choice],
    workloads: list[Choice],
    grid: dict[str, tuple[Choice, ...]],
    seeds: Seeds,
) -> Part:
    path = ("parts", name)
    title = name if table.title is None else table.title
    wanted = reading.names(table.variants, (*path, "variants"), [choice.name for choice in variants])
    offered = reading.names(table.workloads, (*path, "workloads"), [choice.name for choice in workloads])
    axes.titles[("part", name)] = title
    own = _grid(reading, axes, table.grid, (*path, "grid")) if table.has("grid") else grid
    return Part(
        name,
        title,
        tuple(choice for choice in variants if wanted is None or choice.name in wanted),
        tuple(choice for choice in workloads if offered is None or choice.name in offered),
        _replicated(reading, axes, own, seeds, table.replicates, (*path, "replicates")),
        reading.sets(table.set, (*path, "set")),
        tuple(name for name in table.range or () if isinstance(name, str)),
    )


def smaller(reading: Reading, axes: Axes, table: SmokeTable) -> Axes:
    """The smoke size of `axes`: the parts, variants, workloads and points that [smoke] keeps, with its values."""
    parts = axes.parts
    kept = reading.names(table.parts, ("smoke", "parts"), [part.name for part in parts])
    variants = reading.names(table.variants, ("smoke", "variants"), values_of("variant", parts))
    workloads = reading.names(table.workloads, ("smoke", "workloads"), values_of("workload", parts))
    for key in table.values or {}:
        if key not in axes.values:
            reading.report(("smoke", "values", key), "unknown value", near(key, axes.values))
    wanted = {axis: values for axis, values in (table.grid or {}).items() if values is not None}
    for axis, values in wanted.items():
        points = values_of(axis, parts)
        if not points:
            there = dict.fromkeys(name for part in parts for name in part.grid)
            reading.report(("smoke", "grid", axis), "unknown axis", near(axis, there))
            continue
        for index, value in enumerate(values):
            if value not in points:
                message = f"{shown(repr(value))} is not a value of this axis"
                reading.report(("smoke", "grid", axis, index), message, near(value, map(str, points)))
    small = [
        replace(
            part,
            variants=tuple(c for c in part.variants if variants is None or c.name in variants),
            workloads=tuple(c for c in part.workloads if workloads is None or c.name in workloads),
            grid={
                axis: tuple(p for p in points if axis not in wanted or p.value in wanted[axis])
                for axis, points in part.grid.items()
            },
        )
        for part in parts
        if kept is None or part.name in kept
    ]
    return replace(axes, parts=small, values={**axes.values, **(table.values or {})})
