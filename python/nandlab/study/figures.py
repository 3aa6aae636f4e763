"""Figures and claims of a study file: what they name has to be there."""

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

#: Stands for a metric that is refused.
_REFUSED = Expression.parse("0")
_LATENCIES = tuple(f"latency_us.{op}" for op in ("read", "write", "trim", "flush"))
#: Keys that a figure of effects has no use for.
_NOT_OF_EFFECTS = ("over", "series", "reduce", "normalised_to", "mean", "log_x", "log_y", "x_title", "reference")


@dataclass(frozen=True)
class FigureReader:
    """Reads the figures and claims of a study."""

    reading: Reading
    #: Columns of the results table, and what each can hold.
    columns: Mapping[str, list[Any]]
    factors: tuple[Factor, ...]
    #: At the small size, what is left out may be named.
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
                self.reading.say((*path, name), "no column of this name", near(name, self.columns))
                continue
            values = tuple(value) if isinstance(value, list) else (value,)
            there = self.columns[name]
            for one in values:
                # An axis that is refused has no values.
                if one not in there and (there or name in LABELS) and not self.smoke:
                    told = f"{shown(repr(one))} is no value of {shown(name)}"
                    self.reading.say((*path, name), told, near(one, map(str, there)))
            allowed[name] = values
        return Where(allowed, {name: self.reading.line((*path, name)) for name in allowed})

    def _column(self, name: object, path: Path) -> None:
        if not isinstance(name, str) or name not in self.columns:
            self.reading.say(path, f'no column "{shown(name)}"', near(name, self.columns))

    def _variant(self, name: str | None, path: Path) -> str | None:
        there = self.columns["variant"]
        if name is not None and name not in there and not self.smoke:
            self.reading.say((*path, "normalised_to"), f'there is no variant "{shown(name)}"', near(name, there))
            return None
        return name

    def _over(self, table: FigureTable, kind: str, metric: Expression, path: Path) -> str:
        say = self.reading.say
        if kind == "cdf":
            if metric is not _REFUSED and metric.text not in _LATENCIES:
                told = f'a cdf is of a latency, not of "{shown(metric.text)}"'
                say((*path, "metric"), told, near(metric.text, _LATENCIES))
            return metric.text
        if kind == "effects":
            for key in _NOT_OF_EFFECTS:
                if table.has(key):
                    say((*path, key), "a figure of effects has none", "leave it out")
            if not self.factors:
                say((*path, "kind"), "the study has no factors", "write [factors.A] with off and on")
            return "effect"
        if not table.has("over"):
            say((*path, "over"), "missing", "give the name of a column")
        elif table.over is not None:
            self._column(table.over, (*path, "over"))
        return table.over or ""

    def _figure(self, table: FigureTable, path: Path) -> Figure:
        say = self.reading.say
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
            say((*path, "scale"), f"a {kind} has none", 'leave it out, or kind = "effects"')
        if table.mean and kind != "bar":
            say((*path, "mean"), f"a {kind} has no place for it", 'leave it out, or kind = "bar"')
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
        say = self.reading.say
        figure = figures.get(table.figure or "")
        if figure is None and table.figure is not None:
            told = f'there is no figure "{shown(table.figure)}"'
            say((*path, "figure"), told, near(table.figure, figures))
        relative, absolute = self._tolerance(table, path)
        measure = self._measure(table.measure, (*path, "measure"), figure)
        baseline = self._baseline(table, (*path, "baseline"), figure, measure)
        if table.direction is not None and baseline is None and not table.has("baseline"):
            remedy = "give baseline = 1.0, or baseline = { where = { variant = ... } }, or a figure that is normalised"
            say((*path, "direction"), "above or below what?", remedy)
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
        """How far the measured value may be from the reported one: relative or absolute."""
        say = self.reading.say
        if not table.has("value"):
            if not table.has("direction"):
                remedy = "give a number; or a direction alone, where no number is reported"
                say((*path, "value"), "missing", remedy)
            if table.has("tolerance"):
                remedy = "give the value, or leave the tolerance out"
                say((*path, "tolerance"), "a tolerance without a value", remedy)
        elif not table.has("tolerance"):
            say((*path, "tolerance"), "missing", "give { relative = 0.02 } or { absolute = 0.1 }")
        given = table.tolerance
        if given is None:
            return None, None
        if given.has("relative") == given.has("absolute"):
            say((*path, "tolerance"), "expected either relative or absolute", "write { relative = 0.02 }")
        for key, number in (("relative", given.relative), ("absolute", given.absolute)):
            if number is not None and number < 0:
                say((*path, "tolerance", key), f"{number} is below 0", "a tolerance is 0 or more")
        return given.relative, given.absolute

    def _baseline(
        self, table: ClaimTable, path: Path, figure: Figure | None, measure: Measure | None
    ) -> float | Measure | None:
        given: object = table.baseline
        if isinstance(given, MeasureTable):
            base = self._measure(given, path, figure)
            if base is None or measure is None or not given.has("where"):
                return base
            # The baseline is the same measurement elsewhere.
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
        say = self.reading.say
        table = given or MeasureTable()
        where = self._where(table.where, (*path, "where"))
        is_effect = figure is not None and figure.kind == "effects"
        known, reduce = (EFFECT_REDUCTIONS, "mean") if is_effect else (REDUCTIONS, "only")
        if table.reduce is not None and table.reduce not in known:
            say((*path, "reduce"), f'unknown value "{shown(table.reduce)}"', near(table.reduce, known))
        relative = self._variant(table.normalised_to, path)
        effect = self._effect(table.effect, (*path, "effect"))
        # A baseline's is that of its measure when not given.
        if is_effect and not table.has("effect") and path[-1] == "measure":
            remedy = 'say which: measure = { effect = "A" }, or "A:B" for an interaction'
            say((*path, "effect"), "missing", remedy)
        if effect and not is_effect:
            say((*path, "effect"), "the figure of this claim shows no effects", "name a figure of effects")
        if is_effect and relative is not None:
            say((*path, "normalised_to"), "an effect is relative already", "leave it out")
        if figure is None:
            return None
        if figure.kind == "cdf" and table.metric is None:
            if not table.has("metric"):
                remedy = 'say which: measure = { metric = "latency_us.read.p99" }'
                say(path, "a cdf has no single number", remedy)
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
        """`"A"`, or `"A:B"`."""
        if text is None:
            return ()
        names = tuple(text.split(":"))
        known = [factor.name for factor in self.factors]
        for name in names:
            if name not in known:
                self.reading.say(path, f'there is no factor "{shown(name)}"', near(name, known))
        if len(names) > 2 or len(set(names)) < len(names):
            self.reading.say(path, f'"{shown(text)}" is neither a factor nor a pair', 'write "A", or "A:B"')
        return names
