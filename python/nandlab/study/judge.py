"""The verdicts on the claims of a study."""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass, replace
from typing import Any

from nandlab.study.claims import widest
from nandlab.study.file import AVERAGES
from nandlab.study.kinds import Correlation, Step, correlation, counts, steps, weakest
from nandlab.study.metrics import Results
from nandlab.study.model import MEASURED, SEED, Claim, Definition, Measure, Where, without
from nandlab.study.parameters import fitted_claims
from nandlab.study.sample import Sample, by_seed, differences, sample

#: The whole interval is within the tolerance. For a direction: the whole interval is on the claimed side.
REPRODUCED = "reproduced"
#: As `REPRODUCED`, for a claim to which a parameter is calibrated.
FITTED = "fitted"
#: As `REPRODUCED`, for a value that the study infers against the words of the source.
INFERRED = "inferred"
#: The interval is partly within the tolerance; for a direction, partly beyond it.
UNDECIDED = "undecided"
#: The interval is outside the tolerance, on the reported side of the baseline. Also: on the reported side, for a
#: workload of which the source gives no value.
SAME_DIRECTION = "same direction"
NOT_REPRODUCED = "not reproduced"
#: The effect cannot occur in the set-up.
NOT_TESTABLE = "not testable"
#: No run belongs to the claim or to its baseline, for example because these runs are left out at smoke size.
NOT_MEASURED = "not measured"
#: A headline that is reproduced at the setting of the study, but not over the ranges of its assumed parameters.
AT_SETTING = "reproduced at a setting"
VERDICTS = (
    *(REPRODUCED, AT_SETTING, FITTED, INFERRED, UNDECIDED, SAME_DIRECTION, NOT_REPRODUCED),
    *(NOT_TESTABLE, NOT_MEASURED),
)

#: The default tolerance of a direction, as a share of the baseline.
DIRECTION_TOLERANCE = 0.005
#: Rounding errors of a comparison.
_EPSILON = 1e-12


@dataclass(frozen=True)
class OfWorkload:
    """The verdict on a claim for one workload."""

    workload: str
    reported: float | None
    sample: Sample
    verdict: str
    #: The tolerance that was applied, as for the whole claim.
    tolerance: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim."""

    claim: Claim
    #: The measured values; `None` if nothing was measured.
    sample: Sample | None
    #: A number of the study file, or the mean over the seeds.
    baseline: float | None
    #: The tolerance that was applied. For a value: the largest distance from the reported value. For "above" and
    #: "below": the least distance from the baseline. For "not above" and "not below": the largest distance on the
    #: wrong side of the baseline.
    tolerance: float | None
    verdict: str
    #: Other averages of the same runs, by name.
    averages: dict[str, float]
    workloads: tuple[OfWorkload, ...] = ()
    #: The measured value of the condition under which the claim can be tested.
    condition: float | None = None
    #: Why a headline that is reproduced at the setting is not reproduced over the ranges; empty otherwise.
    reason: str = ""
    #: The headline over the ranges, as in claims.json; `None` without ranges.
    ranges: dict[str, Any] | None = None
    #: The deviation of the claim with its measured values.
    deviation: str = ""
    #: The steps of a monotone claim, each with its verdict.
    steps: tuple[tuple[Step, str], ...] = ()

    @property
    def measured(self) -> float | None:
        """The mean over the seeds."""
        return None if self.sample is None else self.sample.mean

    def as_json(self) -> dict[str, Any]:
        claim = self.claim
        measured = self.measured
        difference = None if measured is None or claim.value is None else measured - claim.value
        return {
            "id": claim.id,
            "figure": claim.figure,
            "what": claim.what,
            "source": claim.source,
            "headline": claim.headline,
            "reported": claim.value,
            "tolerance": self.tolerance,
            "measured": measured,
            "interval": None if self.sample is None else self.sample.interval,
            "seeds": 0 if self.sample is None else len(self.sample.values),
            "difference": difference,
            "relative_difference": difference / claim.value if difference is not None and claim.value else None,
            "direction": claim.direction,
            "baseline": self.baseline,
            "measure": claim.measure.text(),
            "other_averages": self.averages,
            "verdict": self.verdict,
            "workloads": [
                {
                    "workload": one.workload,
                    "reported": one.reported,
                    "measured": one.sample.mean,
                    "interval": one.sample.interval,
                    "verdict": one.verdict,
                }
                for one in self.workloads
            ],
            "not_testable": None if claim.testable is None else claim.testable.why,
            "condition": self.condition,
            "deviation": self.deviation,
            "reason": self.reason,
            "ranges": self.ranges,
        } | self._of_kind()

    def _of_kind(self) -> dict[str, Any]:
        """The further keys of a claim on more than one number."""
        if self.claim.kind == "monotone":
            steps = [
                {
                    "from": step.before,
                    "to": step.after,
                    "difference": step.sample.mean,
                    "interval": step.sample.interval,
                    "verdict": verdict,
                }
                for step, verdict in self.steps
            ]
            return {"kind": "monotone", "slope": self.claim.slope, "over": self.claim.monotone, "steps": steps}
        if isinstance(self.sample, Correlation) and self.claim.against is not None:
            points = [{"workload": name, "property": x, "measured": y} for name, x, y in self.sample.points]
            against = self.claim.against_text
            return {"kind": "correlated", "slope": self.claim.slope, "against": against, "points": points}
        if self.claim.kind == "most":
            return {"kind": "most", "workloads_for": self.tally["for"], "workloads_against": self.tally["against"]}
        return {}

    @property
    def tally(self) -> dict[str, int]:
        """How many workloads are for the claim, against it, and undecided."""
        return counts([one.verdict for one in self.workloads], REPRODUCED, NOT_REPRODUCED)


def judge(study: Definition, results: Results) -> list[Verdict]:
    """The verdicts on all claims."""
    fitted = fitted_claims(study.parameters.values())
    verdicts = [_judge(study, results, claim, claim.id in fitted) for claim in study.claims]
    return [replace(verdict, deviation=_told(verdict.claim.deviation, verdicts)) for verdict in verdicts]


def _told(text: str, verdicts: list[Verdict]) -> str:
    """A text with the measured values that it names: `{CLAIM}` and `{CLAIM.WORKLOAD}`; `-` for one without a run."""
    found = {verdict.claim.id: verdict for verdict in verdicts}

    def value(name: re.Match[str]) -> str:
        of = found.get(name[1])
        one: Sample | None = None
        if of is not None:
            one = next((w.sample for w in of.workloads if w.workload == name[2]), None) if name[2] else of.sample
        return "-" if one is None else f"{one.mean:.4g}"

    return MEASURED.sub(value, text)


def judge_claim(study: Definition, results: Results, claim: Claim) -> Verdict:
    """The verdict on a claim, to which no parameter is calibrated."""
    return _judge(study, results, claim, False)


def _judge(study: Definition, results: Results, claim: Claim, is_fitted: bool) -> Verdict:
    if claim.slope is not None:
        return _judge_slope(results, claim)
    if claim.most:
        return _judge_most(results, claim)
    found = sample(results, claim.measure)
    base = sample(results, claim.baseline) if isinstance(claim.baseline, Measure) else None
    baseline = claim.baseline if isinstance(claim.baseline, float) else None if base is None else base.mean
    condition, can_be_tested = _condition(results, claim)
    if found is None:
        # At smoke size, runs that an effect needs may be left out.
        any_run = any(claim.measure.where.matches(run.row) for run in results.runs) and not (
            study.smoke and claim.measure.effect
        )
        verdict = NOT_REPRODUCED if any_run else NOT_MEASURED
        return Verdict(claim, None, baseline, None, verdict, {}, condition=condition)
    against = differences(results, claim.measure, claim.baseline)
    slack = _slack(claim, claim.value, baseline)
    verdict = _verdict(claim, claim.value, found, against, slack, baseline)
    workloads = _workloads(results, claim)
    if claim.each and workloads:
        order = (NOT_REPRODUCED, NOT_MEASURED, SAME_DIRECTION, UNDECIDED, REPRODUCED)
        verdict = min((one.verdict for one in workloads), key=order.index)
    if not can_be_tested:
        verdict = NOT_TESTABLE
    elif verdict == REPRODUCED:
        verdict = INFERRED if claim.inferred else FITTED if is_fitted else REPRODUCED
    return Verdict(
        claim, found, baseline, slack, verdict, _averages(results, claim.measure), tuple(workloads), condition
    )


def _judge_slope(results: Results, claim: Claim) -> Verdict:
    """The verdict on a claim over an axis, or against a property of the workloads."""
    condition, can_be_tested = _condition(results, claim)
    is_falling = claim.slope == "falling"
    found: tuple[tuple[Step, str], ...] = ()
    measured: Sample | None
    if claim.monotone is not None:
        all_steps = steps(results, claim)
        found = tuple((step, _side(step.sample, is_falling)) for step in all_steps)
        measured = weakest(all_steps, is_falling=is_falling).sample if all_steps else None
        order = (NOT_REPRODUCED, UNDECIDED, REPRODUCED)
        verdict = min((one for _, one in found), key=order.index, default=NOT_MEASURED)
    else:
        measured = correlation(results, claim)
        verdict = NOT_MEASURED if measured is None else _side(measured, is_falling)
    if not can_be_tested:
        verdict = NOT_TESTABLE
    return Verdict(claim, measured, 0.0, 0.0, verdict, {}, condition=condition, steps=found)


def _side(found: Sample, is_falling: bool) -> str:
    """The verdict on the sign of a number: its whole interval is on the claimed side, on the other, or has zero."""
    low, high = (-found.high, -found.low) if is_falling else (found.low, found.high)
    return REPRODUCED if low > 0 else NOT_REPRODUCED if high < 0 else UNDECIDED


def _judge_most(results: Results, claim: Claim) -> Verdict:
    """The verdict on a claim about most workloads: more than half are for it, or can no longer be.

    The measured value is the share of the workloads that are for it.
    """
    workloads = tuple(_workloads(results, claim))
    condition, can_be_tested = _condition(results, claim)
    found = counts([one.verdict for one in workloads], REPRODUCED, NOT_REPRODUCED)
    half = len(workloads) / 2
    if found["for"] > half:
        verdict = REPRODUCED
    else:
        verdict = UNDECIDED if found["for"] + found["undecided"] > half else NOT_REPRODUCED
    if not workloads or not can_be_tested:
        verdict = NOT_TESTABLE if workloads else NOT_MEASURED
    share = Sample((found["for"] / len(workloads),)) if workloads else None
    return Verdict(claim, share, 0.5, 0.0, verdict, {}, workloads, condition)


def _condition(results: Results, claim: Claim) -> tuple[float | None, bool]:
    """The measured value of a claim's condition, and whether the claim can be tested."""
    if claim.testable is None:
        return None, True
    if claim.testable.measure is None:
        return None, False
    found = sample(results, claim.testable.measure)
    if found is None:
        return None, False
    above, below = claim.testable.above, claim.testable.below
    return found.mean, (above is None or found.mean > above) and (below is None or found.mean < below)


def _slack(claim: Claim, value: float | None, baseline: float | None) -> float:
    """The tolerance that is applied."""
    if value is None:
        if claim.absolute is not None:
            return claim.absolute
        return (DIRECTION_TOLERANCE if claim.relative is None else claim.relative) * abs(baseline or 0.0)
    most = widest(value - (baseline or 0.0) if claim.effect is None else claim.effect)
    given = claim.absolute if claim.relative is None else claim.relative * abs(value)
    return most if given is None else min(given, most)


def _verdict(
    claim: Claim,
    value: float | None,
    found: Sample,
    against: Sample | None,
    slack: float,
    baseline: float | None,
) -> str:
    direction = _direction(claim, against, slack if value is None else DIRECTION_TOLERANCE * abs(baseline or 0.0))
    if value is None:
        return direction
    edge = slack + _EPSILON * abs(value)
    if value - edge <= found.low and found.high <= value + edge:
        return REPRODUCED
    if found.low <= value + edge and value - edge <= found.high:
        return UNDECIDED
    return SAME_DIRECTION if direction == REPRODUCED else NOT_REPRODUCED


def _direction(claim: Claim, against: Sample | None, slack: float) -> str:
    """The verdict on a direction, from the differences from the baseline."""
    if claim.direction is None:
        return NOT_REPRODUCED
    if against is None:
        # The runs of the baseline are left out at smoke size.
        return NOT_MEASURED
    low, high = against.low, against.high
    if claim.direction in ("below", "not above"):
        low, high = -high, -low
    # From here on every claim reads: the difference is above `slack`. A claim with "not" reads: the difference is at
    # least -`slack`.
    limit = -slack if claim.direction.startswith("not") else slack
    if claim.direction.startswith("not"):
        return REPRODUCED if low >= limit else NOT_REPRODUCED if high < limit else UNDECIDED
    return REPRODUCED if low > limit else NOT_REPRODUCED if high <= limit else UNDECIDED


def _workloads(results: Results, claim: Claim) -> list[OfWorkload]:
    """The verdict on each workload of a claim over several workloads."""
    names = dict.fromkeys(run.workload for run in results.runs if claim.measure.where.matches(run.row))
    if len(names) < 2 or claim.measure.effect:
        return []
    found = []
    for name in names:
        here = Where({"workload": (name,)})
        one = sample(results, claim.measure, here)
        if one is None:
            continue
        baseline = claim.baseline
        if isinstance(baseline, Measure) and baseline.where.columns.get("workload") in (
            None,
            claim.measure.where.columns.get("workload"),
        ):
            baseline = replace(baseline, where=baseline.where.merged(here))
        base = baseline if isinstance(baseline, float) else None
        if isinstance(baseline, Measure):
            of_base = sample(results, baseline)
            base = None if of_base is None else of_base.mean
        reported = _reported(results, claim, here)
        against = differences(results, claim.measure, baseline, here)
        slack = _slack(claim, reported, base)
        verdict = _verdict(claim, reported, one, against, slack, base)
        if claim.value is not None and reported is None and verdict == REPRODUCED:
            # The source gives no value of this workload.
            verdict = SAME_DIRECTION
        found.append(OfWorkload(name, reported, one, verdict, slack))
    return found


def _reported(results: Results, claim: Claim, here: Where) -> float | None:
    """The reported value of a workload."""
    if claim.by_workload is None:
        return None
    values = results.evaluate(claim.by_workload)
    known = [
        value
        for run, value in zip(results.runs, values, strict=True)
        if value is not None and claim.measure.where.matches(run.row) and here.matches(run.row)
    ]
    return statistics.fmean(known) if known else None


def _averages(results: Results, measure: Measure) -> dict[str, float]:
    """The averages of `AVERAGES` that the measure does not use, over the same runs, by name."""
    used = "mean-of-ratios" if measure.reduce == "mean" else measure.reduce
    runs = {without(run.row, SEED) for run in results.runs if measure.where.matches(run.row)}
    if used not in AVERAGES or measure.effect or len(runs) < 2:
        return {}
    found = {}
    for name in AVERAGES:
        if name != used:
            values = by_seed(results, replace(measure, reduce=name))
            if values:
                found[name] = statistics.fmean(values.values())
    return found


__all__ = [
    "AT_SETTING",
    "FITTED",
    "INFERRED",
    "NOT_MEASURED",
    "NOT_REPRODUCED",
    "NOT_TESTABLE",
    "REPRODUCED",
    "SAME_DIRECTION",
    "UNDECIDED",
    "VERDICTS",
    "OfWorkload",
    "Verdict",
    "judge",
    "judge_claim",
]
