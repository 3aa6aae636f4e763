"""The claims of a study as a ledger: reported, measured, verdict, source, one line why; and by workload."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nandlab.reporting.content import Block, Cell, Columns, Drawing, Listing, More, Span, Words
from nandlab.study.charts import by_workload, over_the_ranges
from nandlab.study.judge import (
    AT_SETTING,
    FITTED,
    INFERRED,
    NOT_MEASURED,
    NOT_REPRODUCED,
    NOT_TESTABLE,
    REPRODUCED,
    SAME_DIRECTION,
    UNDECIDED,
    Verdict,
)
from nandlab.study.kinds import Step
from nandlab.study.model import ORIGINS, Definition
from nandlab.study.parameters import stated
from nandlab.study.ranges import OverRanges
from nandlab.study.sample import Sample

#: The style of each verdict.
MARKS = {
    REPRODUCED: "good",
    AT_SETTING: "fit",
    FITTED: "fit",
    INFERRED: "fit",
    UNDECIDED: "warn",
    SAME_DIRECTION: "warn",
    NOT_REPRODUCED: "bad",
    NOT_TESTABLE: "none",
    NOT_MEASURED: "none",
}

_LEGEND = (
    "Reproduced: the 95 % confidence interval of the mean over the seeds lies within the tolerance, which is at most a "
    "quarter of the reported effect, and at least 0.005; a headline also at each point of the ranges of the assumed "
    "parameters, else it is reproduced at a setting. Fitted: as reproduced, but a parameter is calibrated to this "
    "number. Inferred: as reproduced, but the study infers the value against the words of the source. Undecided: the "
    "interval lies partly within the tolerance. Same direction: outside the tolerance, on the "
    "reported side of the baseline. Not testable: the effect cannot occur in this set-up. With one seed the value "
    "stands for the interval. Rising and falling with a setting: each step between neighbouring values is paired by "
    "seed, and undecided where its interval contains 0. With a property of the workloads: Spearman's rank correlation, "
    "whose interval is that of resampled workloads. Most workloads: each is for, against or undecided by its own "
    "interval, and more than half must be for. The measure is below each claim."
)


def number(value: float | None) -> str:
    """A number as short text."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def interval(found: Sample) -> str:
    """The interval of a sample as text; empty with one seed."""
    ends = found.interval
    return "" if ends is None else f"[{number(ends[0])}, {number(ends[1])}]"


def ledger(study: Definition, verdicts: Sequence[Verdict]) -> list[Block]:
    """The claims with their verdicts."""
    if not verdicts:
        return []
    heads = ("claim", "reported", "measured", "verdict", "why", "source")
    fitted = {name: parameter.key for parameter in stated(study) for name in parameter.claims}
    rows = tuple(_row(verdict, fitted.get(verdict.claim.id)) for verdict in verdicts)
    ids = tuple(f"claim-{verdict.claim.id}" for verdict in verdicts)
    table = Listing(heads, rows, caption=_LEGEND, numbers=frozenset({1, 2}), ids=ids, label="Claims", stacks=True)
    return [*_origins(study), table]


def _origins(study: Definition) -> list[Block]:
    """How many parameters have which origin, and the calibrated ones by name."""
    keys = {origin: [each.key for each in stated(study) if each.origin == origin] for origin in ORIGINS}
    counts = ", ".join(f"{len(found)} {origin}" for origin, found in keys.items() if found)
    calibrated = f" ({', '.join(keys['calibrated'])})" if keys["calibrated"] else ""
    text = f"Parameters: {counts}{calibrated}. The section on where the parameters come from has each of them."
    return [Words(text)] if counts else []


def _row(verdict: Verdict, fitted: str | None) -> tuple[Cell, ...]:
    claim = verdict.claim
    reported: tuple[Cell, ...]
    if claim.slope is not None:
        reported = (f"{claim.slope} with {claim.monotone or claim.against_text}",)
    elif claim.most:
        reported = (f"{claim.direction}, most workloads",)
    elif claim.value is None:
        reported = (f"{claim.direction or ''} {number(verdict.baseline)}".strip(),)
        slack = verdict.tolerance or 0.0
        within = "within" if (claim.direction or "").startswith("not") else "by more than"
        reported += (Span(f"{within} {slack:.2g}", "small"),) if slack else ()
    else:
        reported = (number(claim.value),)
        reported += () if verdict.tolerance is None else (Span(f"\u00b1 {verdict.tolerance:.2g}", "small"),)
    measured: tuple[Cell, ...] = (number(verdict.measured),)
    if verdict.sample is not None and (ends := interval(verdict.sample)):
        measured += (Span(ends, "small"),)
    if claim.monotone is not None:
        measured = tuple(part for step, mark in verdict.steps for part in _step(step, mark)) or measured
    elif claim.against is not None:
        measured = ("rank correlation", *measured)
    elif claim.most and verdict.workloads:
        tally = verdict.tally
        measured = (f"for {tally['for']} of {len(verdict.workloads)}",)
        measured += (Span(f"against {tally['against']}, undecided {tally['undecided']}", "small"),)
    others = "; ".join(f"{name} {number(value)}" for name, value in verdict.averages.items())
    measure = claim.measure.text() + (f". Other averages: {others}" if others else "")
    what: tuple[Cell, ...] = (Span(claim.what, "strong" if claim.headline else ""), Span(measure, "small"))
    if claim.headline:
        what = (Span("headline", "badge"), *what)
    links: tuple[Cell, ...] = (Span(f"Fig. {claim.figure}", href=f"#figure-{claim.figure}"),)
    if verdict.workloads:
        links += (Span("by workload", href=f"#workloads-{claim.id}"),)
    verdict_cell: tuple[Cell, ...] = (Span(verdict.verdict, "verdict", mark=MARKS[verdict.verdict]), *links)
    return (what, reported, measured, verdict_cell, _short(why(verdict, fitted)), claim.source)


def _step(step: Step, verdict: str) -> tuple[Cell, ...]:
    """A step of a monotone claim: its places, difference, interval, and a word where it is not as claimed."""
    ends = interval(step.sample)
    word = "" if verdict == REPRODUCED else " undecided" if verdict == UNDECIDED else " against"
    return (Span(f"{step.before} to {step.after}: {number(step.sample.mean)} {ends}{word}".strip(), "small"),)


def why(verdict: Verdict, fitted: str | None) -> str:
    """The reason for a verdict."""
    claim = verdict.claim
    text = verdict.deviation
    if verdict.verdict == NOT_TESTABLE and claim.testable is not None:
        limit = f" (measured: {number(verdict.condition)})" if verdict.condition is not None else ""
        text = f"{claim.testable.why}{limit}. {text}".strip()
    elif not text and verdict.verdict in (SAME_DIRECTION, NOT_REPRODUCED):
        text = "no reason given"
    if verdict.reason:
        text = f"{verdict.reason}. {text}".strip()
    if fitted is not None:
        text = f"{fitted} is calibrated to this number. {text}".strip()
    return text


#: A text up to this length is one line.
_LINE = 110


def _short(text: str) -> Cell:
    """A text in one line, with the rest folded."""
    if len(text) <= _LINE:
        return text
    ends = [found.end() for found in re.finditer(r"[.;] ", text[: _LINE + 1])]
    if ends and ends[-1] > _LINE // 2:
        return More(text[: ends[-1]].strip(), text[ends[-1] :].strip())
    begin = text[:_LINE].rsplit(" ", 1)[0]
    return More(f"{begin} \u2026", f"\u2026 {text[len(begin) :].strip()}")


def headlines(ranges: Sequence[OverRanges]) -> list[Block]:
    """One small picture for each headline: reported and measured at each point of the ranges."""
    figures = [figure for one in ranges if (figure := over_the_ranges(one)) is not None]
    return [Columns(tuple(Drawing(figure) for figure in figures))] if figures else []


def workloads(verdicts: Sequence[Verdict]) -> list[Block]:
    """Paper and measurement side by side by workload."""
    figures = [figure for verdict in verdicts if (figure := by_workload(verdict)) is not None]
    return [Columns(tuple(Drawing(figure) for figure in figures))] if figures else []
