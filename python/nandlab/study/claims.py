"""Reads the claims of a study file, and checks the names in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nandlab.study.expression import Expression
from nandlab.study.figures import FigureReader
from nandlab.study.file import (
    EFFECT_REDUCTIONS,
    REDUCTIONS,
    ClaimTable,
    MeasureTable,
    StudyFile,
    TestableTable,
)
from nandlab.study.model import LABELS, MEASURED, Claim, Figure, Measure, Testable
from nandlab.study.problems import near, shown
from nandlab.study.reading import Reading
from nandlab.study.source import Path

#: The widest tolerance of a claim: this share of the reported effect, and at least this difference.
TOLERANCE, LEAST_TOLERANCE = 0.25, 0.005


def widest(effect: float) -> float:
    """The widest tolerance of a claim with this reported effect."""
    return max(TOLERANCE * abs(effect), LEAST_TOLERANCE)


@dataclass(frozen=True)
class ClaimReader:
    """Reads the claims of a study."""

    reader: FigureReader
    #: By id.
    figures: Mapping[str, Figure]
    #: The part of the headlines.
    setting: str | None

    @property
    def reading(self) -> Reading:
        """The collector of errors."""
        return self.reader.reading

    def claims(self, file: StudyFile) -> list[Claim]:
        """All claims."""
        given = file.claims or []
        read = [self._claim(table, ("claims", i)) for i, table in enumerate(given) if table is not None]
        self.reading.unique("claims", [claim.id if claim is not None else None for claim in read])
        claims = [claim for claim in read if claim is not None]
        workloads = [str(name) for name in self.reader.columns["workload"]]
        for index, claim in enumerate(read):
            for name in MEASURED.finditer(claim.deviation if claim is not None else ""):
                known = {"claim": (name[1], [one.id for one in claims]), "workload": (name[2], workloads)}
                for kind, (said, there) in known.items():
                    # The smoke size leaves workloads out.
                    is_left_out = kind == "workload" and self.reader.smoke
                    if said is not None and said not in there and not is_left_out:
                        path = ("claims", index, "deviation")
                        self.reading.report(path, f'unknown {kind} "{shown(said)}"', near(said, there))
        return claims

    def _claim(self, table: ClaimTable, path: Path) -> Claim | None:
        report = self.reading.report
        figure = self.figures.get(table.figure or "")
        if figure is None and table.figure is not None:
            message = f'unknown figure "{shown(table.figure)}"'
            report((*path, "figure"), message, near(table.figure, self.figures))
        measure = self._measure(table.measure, (*path, "measure"), figure)
        baseline = self._baseline(table, (*path, "baseline"), figure, measure)
        relative, absolute = self._tolerance(table, path, baseline)
        if table.has("monotone") or table.has("correlated"):
            for key in ("value", "direction", "baseline", "tolerance", "each"):
                if table.has(key):
                    report((*path, key), "a claim on a slope does not have this key", "remove the key")
        if table.direction is not None and baseline is None and not table.has("baseline"):
            remedy = "give baseline = 1.0, or baseline = { where = { variant = ... } }, or a normalised figure"
            report((*path, "direction"), "a direction without a baseline", remedy)
        if measure is None:
            return None
        slope, axis, against = self._slope(table, path, measure)
        value, direction = table.value, table.direction
        if direction is None and value is not None and isinstance(baseline, (int, float)) and value != baseline:
            direction = "above" if value > baseline else "below"
        claim = Claim(
            id=f"{table.figure}-{path[-1]}" if table.id is None else table.id,
            figure=table.figure or "",
            what=table.what or "",
            value=None if value is None else float(value),
            relative=relative,
            absolute=absolute,
            effect=None if table.effect is None else float(table.effect),
            direction=direction,
            baseline=baseline,
            source=table.source or "",
            measure=measure,
            by_workload=table.by_workload,
            each=bool(table.each),
            headline=bool(table.headline),
            testable=self._testable(table.testable, (*path, "testable"), figure),
            deviation=table.deviation or "",
            line=self.reading.line(path),
            most=bool(table.most),
            monotone=axis,
            against=against,
            slope=slope,
            inferred=bool(table.inferred),
        )
        self._check_headline(claim, path)
        self._check_inferred(claim, path)
        return claim

    def _slope(
        self, table: ClaimTable, path: Path, measure: Measure
    ) -> tuple[str | None, str | None, Expression | None]:
        """The direction of a claim over an axis or against a property of the workloads, with the axis and property."""
        report = self.reading.report
        kinds = [key for key in ("most", "monotone", "correlated") if table.has(key)]
        if len(kinds) > 1:
            report((*path, kinds[1]), f"the claim has `{kinds[0]}` too", "keep one of them, or write two claims")
        if table.most and (table.has("value") or table.direction is None or table.each):
            remedy = 'give a direction and a baseline, without `value` and `each`: direction = "below"'
            report((*path, "most"), "expected a claim of a direction", remedy)
        given = table.monotone or table.correlated
        if given is None:
            return None, None, None
        if measure.effect:
            report(path, "an effect has neither an axis nor workloads", "name another figure")
        axis = table.monotone.over if table.monotone is not None else None
        if axis is not None and axis not in (known := [name for name in self.reader.columns if name not in LABELS]):
            report((*path, "monotone", "over"), f'unknown axis "{shown(axis)}"', near(axis, known))
        return given.direction, axis, None if table.correlated is None else table.correlated.against

    def _check_inferred(self, claim: Claim, path: Path) -> None:
        """An inferred reading is a value beside the headline that has the words of the source."""
        if claim.inferred and (claim.headline or claim.value is None):
            message = "an inferred reading is a value, and no headline"
            remedy = "write the words of the source as the headline, and the inferred value as another claim"
            self.reading.report((*path, "inferred"), message, remedy)

    def _check_headline(self, claim: Claim, path: Path) -> None:
        """All headlines of a study are judged at one setting."""
        if not claim.headline:
            return
        if self.setting is None:
            remedy = "name the part whose runs judge all headlines: [study] setting = NAME"
            self.reading.report((*path, "headline"), "a headline in a study without a setting", remedy)
        elif claim.measure.where.columns.get("part") != (self.setting,):
            message = f'a headline is judged at the setting "{shown(self.setting)}" alone'
            self.reading.report((*path, "headline"), message, f'where = {{ part = "{self.setting}" }}')

    def _testable(self, table: TestableTable | None, path: Path, figure: Figure | None) -> Testable | None:
        if table is None:
            return None
        limits = [key for key in ("above", "below") if table.has(key)]
        if (table.has("metric") or table.has("where")) != (len(limits) == 1) or len(limits) > 1:
            message = "expected a metric with either above or below, or neither"
            self.reading.report(path, message, 'write { why = "...", metric = "...", above = 0.01 }')
            return None
        measure = None
        if limits:
            given = MeasureTable.model_construct(
                {"where", "reduce", "metric"} & table.model_fields_set,
                where=table.where,
                reduce=table.reduce or "mean",
                metric=table.metric,
            )
            measure = self._measure(given, path, figure)
            if measure is not None and table.metric is not None:
                measure = replace(measure, normalised_to=None)
        return Testable(table.why or "", measure, table.above, table.below)

    def _tolerance(
        self, table: ClaimTable, path: Path, baseline: float | Measure | None
    ) -> tuple[float | None, float | None]:
        """The tolerance in the file: relative or absolute."""
        report = self.reading.report
        if not table.has("value"):
            if not any(table.has(key) for key in ("direction", "monotone", "correlated")):
                remedy = "give a number, or only a direction when the source reports no number"
                report((*path, "value"), "missing", remedy)
            for key in ("effect", "by_workload"):
                if table.has(key):
                    report((*path, key), "a claim without a value does not have this key", "remove the key")
        if table.by_workload is None and table.has("by_workload"):
            report((*path, "by_workload"), "no metric", "give the fact with the reported value of each workload")
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
        if table.value is not None and not isinstance(baseline, Measure):
            effect = table.value - (baseline or 0.0) if table.effect is None else table.effect
            most = widest(effect)
            slack = given.absolute if given.absolute is not None else (given.relative or 0.0) * abs(table.value)
            if slack > most * (1 + 1e-9):
                message = f"a tolerance of {slack:.4g}; the widest is {most:.4g}, a quarter of the reported effect"
                remedy = "remove the tolerance, or give a stricter one; `effect` states another reported effect"
                report((*path, "tolerance"), message, remedy)
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
                measure.where.merged(self.reader.where(given.where, (*path, "where"))),
                base.reduce if given.has("reduce") or given.has("average") else measure.reduce,
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
        where = self.reader.where(table.where, (*path, "where"))
        is_effect = figure is not None and figure.kind == "effects"
        known, reduce = (EFFECT_REDUCTIONS, "mean") if is_effect else (REDUCTIONS, "only")
        if table.reduce is not None and table.reduce not in known:
            report((*path, "reduce"), f'unknown value "{shown(table.reduce)}"', near(table.reduce, known))
        if table.average is not None and (is_effect or table.has("reduce")):
            message = "an effect has its own average" if is_effect else "both `average` and `reduce`"
            report((*path, "average"), message, "remove the key")
        relative = self.reader.variant(table.normalised_to, path)
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
            table.average or table.reduce or reduce,
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
        known = [factor.name for factor in self.reader.factors]
        for name in names:
            if name not in known:
                self.reading.report(path, f'unknown factor "{shown(name)}"', near(name, known))
        if len(names) > 2 or len(set(names)) < len(names):
            self.reading.report(
                path, f'expected a factor or a pair of factors, found "{shown(text)}"', 'write "A" or "A:B"'
            )
        return names
