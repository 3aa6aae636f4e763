"""Reads the figures of a study file, and checks the names in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nandlab.study.expression import Expression
from nandlab.study.file import FigureTable, StudyFile
from nandlab.study.model import LABELS, Factor, Figure, Reference, Where
from nandlab.study.problems import near, shown
from nandlab.study.reading import Reading
from nandlab.study.source import Path

#: The substitute for a refused or missing metric.
REFUSED = Expression.parse("0")
_LATENCIES = tuple(f"latency_us.{op}" for op in ("read", "write", "trim", "flush"))
#: Keys that a figure of effects does not have.
_NOT_OF_EFFECTS = ("over", "series", "reduce", "normalised_to", "mean", "log_x", "log_y", "x_title", "reference")


@dataclass(frozen=True)
class FigureReader:
    """Reads the figures of a study."""

    reading: Reading
    #: Columns of the results table, with the values that each can have.
    columns: Mapping[str, list[Any]]
    factors: tuple[Factor, ...]
    #: At smoke size, names may refer to variants and values that are left out.
    smoke: bool

    def figures(self, file: StudyFile) -> list[Figure]:
        """All figures."""
        given = file.figures or []
        found = [self._figure(table, ("figures", i)) for i, table in enumerate(given) if table is not None]
        self.reading.unique("figures", [table.id if table is not None else None for table in given])
        return found

    def where(self, table: Mapping[str, Any] | None, path: Path) -> Where:
        allowed: dict[str, tuple[Any, ...]] = {}
        for name, value in (table or {}).items():
            if name not in self.columns:
                self.reading.report((*path, name), "unknown column", near(name, self.columns))
                continue
            values = tuple(value) if isinstance(value, list) else (value,)
            there = self.columns[name]
            for one in values:
                # A refused axis has no values to check.
                if one not in there and (there or name in LABELS) and not self.smoke:
                    message = f"{shown(repr(one))} is not a value of {shown(name)}"
                    self.reading.report((*path, name), message, near(one, map(str, there)))
            allowed[name] = values
        return Where(allowed, {name: self.reading.line((*path, name)) for name in allowed})

    def _column(self, name: object, path: Path) -> None:
        if not isinstance(name, str) or name not in self.columns:
            self.reading.report(path, f'unknown column "{shown(name)}"', near(name, self.columns))

    def variant(self, name: str | None, path: Path) -> str | None:
        there = self.columns["variant"]
        if name is not None and name not in there and not self.smoke:
            self.reading.report((*path, "normalised_to"), f'unknown variant "{shown(name)}"', near(name, there))
            return None
        return name

    def _over(self, table: FigureTable, kind: str, metric: Expression, path: Path) -> str:
        report = self.reading.report
        if kind == "cdf":
            if metric is not REFUSED and metric.text not in _LATENCIES:
                message = f'expected a latency for a cdf, found "{shown(metric.text)}"'
                report((*path, "metric"), message, near(metric.text, _LATENCIES))
            return metric.text
        if kind == "effects":
            for key in _NOT_OF_EFFECTS:
                if table.has(key):
                    report((*path, key), "a figure of effects does not have this key", "remove the key")
            if not self.factors:
                report((*path, "kind"), "the study has no factors", "write [factors.A] with off and on")
            return "effect"
        if not table.has("over"):
            report((*path, "over"), "missing", "give the name of a column")
        elif table.over is not None:
            self._column(table.over, (*path, "over"))
        return table.over or ""

    def _figure(self, table: FigureTable, path: Path) -> Figure:
        report = self.reading.report
        kind = table.kind or "line"
        metric = table.metric or REFUSED
        over = self._over(table, kind, metric, path)
        series = table.series
        if series is None:
            series = ["workload"] if over == "variant" else ["variant"]
        for index, column in enumerate(series):
            self._column(column, (*path, "series", index))
        if table.panels is not None:
            self._column(table.panels, (*path, "panels"))
        references = []
        for index, inner in enumerate(table.reference or []):
            if inner is not None:
                where = self.where(inner.where, (*path, "reference", index, "where"))
                references.append(Reference(inner.name or "", inner.expression or REFUSED, where))
        relative = self.variant(table.normalised_to, path)
        if table.has("scale") and kind != "effects":
            report(
                (*path, "scale"), f"a {kind} figure does not have this key", 'remove the key, or set kind = "effects"'
            )
        if table.mean and kind != "bar":
            report((*path, "mean"), f"a {kind} figure does not have this key", 'remove the key, or set kind = "bar"')
        y_title = f"{metric.text} / {relative}" if relative else metric.text
        return Figure(
            id=table.id or "",
            title=table.title or "",
            caption=table.caption or "",
            kind=kind,
            metric=metric,
            over=over,
            series=tuple(series),
            panels=table.panels,
            where=self.where(table.where, (*path, "where")),
            normalised_to=relative,
            reduce=table.reduce or "mean",
            mean=bool(table.mean),
            log_x=bool(table.log_x),
            log_y=bool(table.log_y),
            x_title=over if table.x_title is None else table.x_title,
            y_title=y_title if table.y_title is None else table.y_title,
            references=tuple(references),
            line=self.reading.line(path),
            scale=table.scale or "ratio",
        )
