"""The claims of a study as a table: reported, measured, verdict; below it the notes and the workloads."""

from __future__ import annotations

from collections.abc import Sequence

from nandlab.reporting.pieces import escape, number_table
from nandlab.study.judge import (
    FITTED,
    NOT_MEASURED,
    NOT_REPRODUCED,
    NOT_TESTABLE,
    REPRODUCED,
    SAME_DIRECTION,
    UNDECIDED,
    Verdict,
)
from nandlab.study.sample import Sample

#: The style of each verdict.
MARKS = {
    REPRODUCED: "good",
    FITTED: "fit",
    UNDECIDED: "warn",
    SAME_DIRECTION: "warn",
    NOT_REPRODUCED: "bad",
    NOT_TESTABLE: "none",
    NOT_MEASURED: "none",
}

_LEGEND = (
    "Reproduced: the 95 % confidence interval of the mean over the seeds lies within the tolerance, which is at most a "
    "quarter of the reported effect, and at least 0.005. Fitted: as reproduced, but a parameter is calibrated to this "
    "number. Undecided: the interval lies partly within the tolerance. Same direction: outside the tolerance, on the "
    "reported side of the baseline. Not testable: the effect cannot occur in this set-up. With one seed the value "
    "stands for the interval."
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


def claims_table(verdicts: Sequence[Verdict]) -> str:
    """The claims with their verdicts, the notes on them, and the verdicts by workload."""
    if not verdicts:
        return ""
    notes: list[str] = []
    rows = [_row(verdict, notes) for verdict in verdicts]
    head = (
        '<th>claim</th><th>source</th><th class="n">reported</th><th class="n">measured</th>'
        '<th class="verdict">verdict</th><th>note</th>'
    )
    listed = "".join(f'<li id="note-{number}">{escape(note)}</li>' for number, note in enumerate(notes, 1))
    by_workload = "".join(_workloads(verdict) for verdict in verdicts if verdict.workloads)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        f"<figcaption>{_LEGEND} The measure is below each claim.</figcaption>"
        + (f'<h3>Notes</h3><ol class="notes">{listed}</ol>' if notes else "")
        + (f"<h3>By workload</h3>{by_workload}" if by_workload else "")
    )


def _row(verdict: Verdict, notes: list[str]) -> str:
    claim = verdict.claim
    if claim.value is None:
        reported = f"{escape(claim.direction or '')} {number(verdict.baseline)}"
        slack = verdict.tolerance or 0.0
        within = "within" if (claim.direction or "").startswith("not") else "by more than"
        reported += f"<br><small>{within} {slack:.2g}</small>" if slack else ""
    else:
        slack_text = "" if verdict.tolerance is None else f"<br><small>\u00b1 {verdict.tolerance:.2g}</small>"
        reported = f"{number(claim.value)}{slack_text}"
    measured = number(verdict.measured)
    if verdict.sample is not None and (ends := interval(verdict.sample)):
        measured += f"<br><small>{ends}</small>"
    others = "; ".join(f"{name} {number(value)}" for name, value in verdict.averages.items())
    measure = escape(claim.measure.text()) + (f". Other averages: {escape(others)}" if others else "")
    why = claim.deviation
    if verdict.verdict == NOT_TESTABLE and claim.testable is not None:
        limit = f" (measured: {number(verdict.condition)})" if verdict.condition is not None else ""
        why = f"{claim.testable.why}{limit}. {why}".strip()
    elif not why and verdict.verdict in (SAME_DIRECTION, NOT_REPRODUCED):
        why = "no reason given"
    if why:
        notes.append(f"{claim.what}: {why}")
        why = f'<a href="#note-{len(notes)}">{len(notes)}</a>'
    badge = '<span class="badge">headline</span> ' if claim.headline else ""
    return (
        f'<tr class="v-{MARKS[verdict.verdict]}"><td><a class="anchor" id="claim-{escape(claim.id)}"></a>'
        f'{badge}{escape(claim.what)}<div class="why">{measure}</div></td>'
        f'<td class="why">{escape(claim.source)}</td>'
        f'<td class="n">{reported}</td>'
        f'<td class="n">{measured}</td>'
        f'<td class="verdict">{escape(verdict.verdict)}</td><td class="n">{why}</td></tr>'
    )


def _workloads(verdict: Verdict) -> str:
    """The verdict on each workload of a claim over several."""
    rows = [
        [
            escape(one.workload),
            number(one.reported),
            number(one.sample.mean),
            interval(one.sample) or "-",
            escape(one.verdict),
        ]
        for one in verdict.workloads
    ]
    table = number_table(["workload", "reported", "measured", "95 % interval", "verdict"], rows)
    return f'<details><summary>{escape(verdict.claim.what)}</summary><div class="scroll">{table}</div></details>'
