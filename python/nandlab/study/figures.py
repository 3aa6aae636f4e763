"""Reads the figures and claims of a study file, and checks the names in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nandlab.study.expression import Expression
from nandlab.study.file import EFFECT_REDUCTIONS, REDUCTIONS, ClaimTable, FigureTable, MeasureTable, StudyFile
from nandlab.study.model import LABELS, Claim, Factor, Figure, Measure, Reference, Where
from nandlab.study.problems import near, shown
from nandlab.study.reading import Reading
from nandlab.study.source import Path

#: The substitute for a refused metric.
_REFUSED = Expression.parse("0")
_LATENCIES = tuple(f"latency_us.{op}" for op in ("read", "write", "trim", "flush"))
#: Keys that a figure of effects does not have.
_NOT_OF_EFFECTS = ("over", "series", "reduce", "normalised_to", "mean", "log_x", "log_y", "x_title", "reference")


@dataclass(frozen=True)
class FigureReader:
    """Reads the figures and claims of a study."""

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

    def claims(self, file: StudyFile, figures: list[Figure]) -> list[Claim]:
        """All claims."""
        by_id = {figure.id: figure for figure in figures}
        given = file.claims or []
        read = [self._claim(table, ("claims", i), by_id) for i, table in enumerate(given) if table is not None]
        self.reading.unique("claims", [claim.id if claim is not None else None for claim in read])
        return [claim for claim in read if claim is not None]

    def _where(self, table: Mapping[str, Any] | None, path: Path) -> Where:
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

    def _variant(self, name: str | None, path: Path) -> str | None:
        there = self.columns["variant"]
        if name is not None and name not in there and not self.smoke:
            self.reading.report((*path, "normalised_to"), f'unknown variant "{shown(name)}"', near(name, there))
            return None
        return name

    def _over(self, table: FigureTable, kind: str, metric: Expression, path: Path) -> str:
        report = self.reading.report
        if kind == "cdf":
            if metric is not _REFUSED and metric.text not in _LATENCIES:
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
        metric = table.metric or _REFUSED
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
                where = self._where(inner.where, (*path, "reference", index, "where"))
                references.append(Reference(inner.name or "", inner.expression or _REFUSED, where))
        relative = self._variant(table.normalised_to, path)
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
            where=self._where(table.where, (*path, "where")),
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

    def _claim(self, table: ClaimTable, path: Path, figures: Mapping[str, Figure]) -> Claim | None:
        report = self.reading.report
        figure = figures.get(table.figure or "")
        if figure is None and table.figure is not None:
            message = f'unknown figure "{shown(table.figure)}"'
            report((*path, "figure"), message, near(table.figure, figures))
        relative, absolute = self._tolerance(table, path)
        measure = self._measure(table.measure, (*path, "measure"), figure)
        baseline = self._baseline(table, (*path, "baseline"), figure, measure)
        if table.direction is not None and baseline is None and not table.has("baseline"):
            remedy = "give baseline = 1.0, or baseline = { where = { variant = ... } }, or a normalised figure"
            report((*path, "direction"), "a direction without a baseline", remedy)
        if measure is None:
            return None
        value, direction = table.value, table.direction
        if direction is None and value is not None and isinstance(baseline, (int, float)) and value != baseline:
            direction = "above" if value > baseline else "below"
        return Claim(
            id=f"{table.figure}-{path[-1]}" if table.id is None else table.id,
            figure=table.figure or "",
            what=table.what or "",
            value=None if value is None else float(value),
            relative=relative,
            absolute=absolute,
            direction=direction,
            baseline=baseline,
            source=table.source or "",
            measure=measure,
            deviation=table.deviation or "",
            line=self.reading.line(path),
        )

    def _tolerance(self, table: ClaimTable, path: Path) -> tuple[float | None, float | None]:
        """The tolerance between measured and reported value: relative or absolute."""
        report = self.reading.report
        if not table.has("value"):
            if not table.has("direction"):
                remedy = "give a number, or only a direction when the source reports no number"
                report((*path, "value"), "missing", remedy)
            if table.has("tolerance"):
                remedy = "give the value, or remove the tolerance"
                report((*path, "tolerance"), "a tolerance without a value", remedy)
        elif not table.has("tolerance"):
            report((*path, "tolerance"), "missing", "give { relative = 0.02 } or { absolute = 0.1 }")
        given = table.tolerance
        if given is None:
            return None, None
        if given.has("relative") == given.has("absolute"):
            report((*path, "tolerance"), "expected either relative or absolute", "write { relative = 0.02 }")
        for key, number in (("relative", given.relative), ("absolute", given.absolute)):
            if number is not None and number < 0:
                report(
                    (*path, "tolerance", key), f"expected at least 0, found {number}", "give a tolerance of 0 or more"
                )
        return given.relative, given.absolute

    def _baseline(
        self, table: ClaimTable, path: Path, figure: Figure | None, measure: Measure | None
    ) -> float | Measure | None:
        given: object = table.baseline
        if isinstance(given, MeasureTable):
            base = self._measure(given, path, figure)
            if base is None or measure is None or not given.has("where"):
                return base
            # The baseline is the same measure on other runs.
            return Measure(
                base.metric if given.has("metric") else measure.metric,
                measure.where.merged(self._where(given.where, (*path, "where"))),
                base.reduce if given.has("reduce") else measure.reduce,
                measure.normalised_to,
                base.line,
                base.effect if given.has("effect") else measure.effect,
                measure.scale,
            )
        if isinstance(given, float):
            return given
        if figure is not None and figure.kind == "effects":
            return 0.0
        return 1.0 if measure is not None and measure.normalised_to is not None else None

    def _measure(self, given: MeasureTable | None, path: Path, figure: Figure | None) -> Measure | None:
        report = self.reading.report
        table = given or MeasureTable()
        where = self._where(table.where, (*path, "where"))
        is_effect = figure is not None and figure.kind == "effects"
        known, reduce = (EFFECT_REDUCTIONS, "mean") if is_effect else (REDUCTIONS, "only")
        if table.reduce is not None and table.reduce not in known:
            report((*path, "reduce"), f'unknown value "{shown(table.reduce)}"', near(table.reduce, known))
        relative = self._variant(table.normalised_to, path)
        effect = self._effect(table.effect, (*path, "effect"))
        # A baseline without an effect has the effect of the claim's measure.
        if is_effect and not table.has("effect") and path[-1] == "measure":
            remedy = 'name the effect: measure = { effect = "A" }, or "A:B" for an interaction'
            report((*path, "effect"), "missing", remedy)
        if effect and not is_effect:
            report((*path, "effect"), "the figure of this claim shows no effects", "name a figure of effects")
        if is_effect and relative is not None:
            report((*path, "normalised_to"), "an effect is relative already", "remove the key")
        if figure is None:
            return None
        if figure.kind == "cdf" and table.metric is None:
            if not table.has("metric"):
                remedy = 'name a metric: measure = { metric = "latency_us.read.p99" }'
                report(path, "a cdf has no single number", remedy)
            return None
        return Measure(
            table.metric or figure.metric,
            figure.where.merged(where),
            table.reduce or reduce,
            relative if relative is not None else figure.normalised_to,
            self.reading.line(path),
            effect,
            figure.scale,
        )

    def _effect(self, text: str | None, path: Path) -> tuple[str, ...]:
        """The factors of an effect such as `"A"` or `"A:B"`."""
        if text is None:
            return ()
        names = tuple(text.split(":"))
        known = [factor.name for factor in self.factors]
        for name in names:
            if name not in known:
                self.reading.report(path, f'unknown factor "{shown(name)}"', near(name, known))
        if len(names) > 2 or len(set(names)) < len(names):
            self.reading.report(
                path, f'expected a factor or a pair of factors, found "{shown(text)}"', 'write "A" or "A:B"'
            )
        return names
