"""A study: what its runs set, what is drawn, what is claimed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nandlab.spec import set_arguments
from nandlab.study.expression import Expression

#: Columns of the results table that are no metric and no grid axis.
LABELS = ("part", "variant", "workload")
#: The variant with no factor on.
NO_FACTOR = "none"
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
