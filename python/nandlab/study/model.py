"""The model of a study: settings of its runs, figures, claims."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nandlab.spec import set_arguments
from nandlab.study.expression import Expression

#: Columns of the results table beside metrics and grid axes.
LABELS = ("part", "variant", "workload")
#: Columns with the codes of notes: those of all notes of a run, and those of its errors.
NOTES, ERRORS = "notes", "error_notes"
#: Columns that neither an axis nor a metric of the study file may have.
COLUMNS = ("run", *LABELS, NOTES, ERRORS)
#: A measured value in the deviation of a claim, `{CLAIM}` or `{CLAIM.WORKLOAD}`.
MEASURED = re.compile(r"\{([\w-]+(?:\.\d+)?)(?:\.([A-Za-z_][\w-]*))?\}")
#: The column of the replicates: runs that differ only in it differ only in their seed.
SEED = "seed"
#: The variant with all factors off.
NO_FACTOR = "none"
#: Where the value of a parameter can come from.
ORIGINS = ("sourced", "derived", "assumed", "calibrated")


def without(row: Mapping[str, Any], column: str) -> tuple[tuple[str, Any], ...]:
    """The labels and axis values of a run, except those of one column."""
    return tuple((name, value) for name, value in row.items() if name != column)


def leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The dotted names of all values in a table, with the values; an empty table is a value."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def filled(value: Any, replace: Callable[[str], Any]) -> Any:
    """A value of a study file, in which `replace` gives the value of each string `{name}`."""
    if isinstance(value, dict):
        return {key: filled(entry, replace) for key, entry in value.items()}
    if isinstance(value, list):
        return [filled(entry, replace) for entry in value]
    if isinstance(value, str) and value.startswith("{") and value.endswith("}"):
        return replace(value[1:-1])
    return value


@dataclass(frozen=True)
class Override:
    """A key of the spec with the value that the study sets."""

    key: str
    value: Any
    line: int | None

    @property
    def argument(self) -> str:
        return set_arguments({self.key: self.value})[0]


@dataclass(frozen=True)
class Choice:
    """A variant, a workload, or a point of a grid axis, with the keys that it sets."""

    name: str
    title: str
    value: Any
    sets: tuple[Override, ...]
    line: int | None = None
    #: Numbers that expressions may use.
    facts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Factor:
    """A factor with two levels, off and on; the study has a variant for each combination of its factors."""

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
    #: The parameters whose range the part covers: keys of [parameters] or of [values].
    range: tuple[str, ...] = ()


@dataclass(frozen=True)
class Where:
    """A selection of rows: allowed values by column."""

    columns: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    lines: Mapping[str, int | None] = field(default_factory=dict)

    def matches(self, row: Mapping[str, Any]) -> bool:
        return all(row.get(name) in values for name, values in self.columns.items())

    def merged(self, other: Where) -> Where:
        return Where({**self.columns, **other.columns}, {**self.lines, **other.lines})


@dataclass(frozen=True)
class Reference:
    """A computed curve beside the measured ones."""

    name: str
    expression: Expression
    where: Where


@dataclass(frozen=True)
class Figure:
    """A figure as the study file defines it."""

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
    #: Whether a bar for the mean over all places is added.
    mean: bool
    log_x: bool
    log_y: bool
    x_title: str
    y_title: str
    references: tuple[Reference, ...]
    line: int | None
    #: The scale of effects: `ratio` or `difference`.
    scale: str = "ratio"


@dataclass(frozen=True)
class Measure:
    """The number of a claim, as a selection and reduction of results."""

    metric: Expression
    where: Where
    reduce: str
    normalised_to: str | None
    line: int | None
    #: One factor for a main effect, two for an interaction; empty when the number is no effect.
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
class Testable:
    """The condition under which a claim can be tested; without a measure it never can."""

    why: str
    measure: Measure | None
    above: float | None
    below: float | None


@dataclass(frozen=True)
class Claim:
    """A claim as the study file defines it: a reported value with tolerance, a direction, or a slope."""

    id: str
    figure: str
    what: str
    #: `None` when only a direction is claimed.
    value: float | None
    #: The tolerance in the study file, relative or absolute; `None` for that of the rule.
    relative: float | None
    absolute: float | None
    #: The reported effect; `None`: the distance of the value from the baseline.
    effect: float | None
    direction: str | None
    baseline: float | Measure | None
    source: str
    measure: Measure
    #: The reported value of each workload, where the source has one.
    by_workload: Expression | None
    #: Whether the claim must hold for each workload by itself.
    each: bool
    #: A headline is judged at the setting of the study.
    headline: bool
    testable: Testable | None
    deviation: str
    line: int | None
    #: Whether the direction must hold for more than half of the workloads.
    most: bool = False
    #: The axis with whose values the measure rises or falls.
    monotone: str | None = None
    #: The property of the workloads with which the measure rises or falls.
    against: Expression | None = None
    #: `rising` or `falling`, of a claim over an axis or against a property.
    slope: str | None = None
    #: Whether the study infers the value against the words of the source.
    inferred: bool = False

    @property
    def against_text(self) -> str:
        """The property of the workloads as the study file writes it; empty for other claims."""
        return "" if self.against is None else self.against.text

    @property
    def kind(self) -> str:
        """`value`, `direction`, `monotone`, `correlated` or `most`."""
        if self.monotone is not None:
            return "monotone"
        if self.against is not None:
            return "correlated"
        if self.most:
            return "most"
        return "direction" if self.value is None else "value"


@dataclass(frozen=True)
class Parameter:
    """Where the value of a spec key comes from."""

    key: str
    #: `sourced`, `derived`, `assumed` or `calibrated`.
    origin: str
    #: Who says so, from what it is derived, or to which number it is calibrated.
    text: str
    #: Claims whose number the value was calibrated to.
    claims: tuple[str, ...]
    #: The figure that shows how results depend on a calibrated value.
    sensitivity: str | None
    #: Claims on workloads that the calibration did not use.
    checks: tuple[str, ...]
    line: int | None
    #: Whether the entry comes from the extended study.
    is_inherited: bool = False
    #: Why an assumed value cannot touch a claim, so that no part varies it.
    untouched: str | None = None


@dataclass(frozen=True)
class Ranges:
    """The study that varies the assumed and scaled parameters of another."""

    name: str
    #: The argument of `nandlab study`.
    command: str
    #: The names of its parts with `range`.
    parts: tuple[str, ...]
    #: The parameters that they vary.
    keys: frozenset[str]


@dataclass(frozen=True)
class Definition:
    """A study as its file defines it."""

    #: The path of the file as the user gave it.
    path: str
    name: str
    title: str
    question: str
    notes: str
    base_text: str
    base_data: Mapping[str, Any]
    #: Name of the base spec in the errors of the core.
    base_name: str
    #: Path of the base spec in messages.
    base_path: str
    #: The directory at which relative paths in the base spec start.
    base_dir: Path
    base_sets: tuple[Override, ...]
    factors: tuple[Factor, ...]
    parts: tuple[Part, ...]
    axes: tuple[str, ...]
    #: Columns and facts that expressions may name, including those of runs that the smoke size leaves out.
    names: frozenset[str]
    smoke: bool
    smoke_sets: tuple[Override, ...]
    #: The name of the part whose runs judge the headlines.
    setting: str | None
    #: By key of the spec.
    parameters: Mapping[str, Parameter]
    #: The values of `{name}` in overrides; an axis of that name takes precedence.
    values: Mapping[str, Any]
    metrics: Mapping[str, Expression]
    metric_lines: Mapping[str, int | None]
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    text: str
    titles: Mapping[tuple[str, Any], str]
    #: The study that varies the assumed and scaled parameters of this one.
    ranges: Ranges | None = None
    #: The study that this one extends, if this one has parts with `range`.
    extended: Definition | None = None
