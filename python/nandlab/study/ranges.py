"""The headlines of a study over the ranges of its assumed and scaled parameters.

A study names with `ranges` the study that extends it and varies these parameters. A part of that study with `range`
varies one or several of them; each headline is judged there at each point of the part's grid, as at the setting. A
headline is `reproduced` only if it is reproduced at the setting and at each of these points. Inferred readings are
judged there too; their verdict stays `inferred`, with the points at which they do not hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nandlab.study.judge import AT_SETTING, INFERRED, NOT_MEASURED, NOT_TESTABLE, REPRODUCED, Verdict, judge_claim
from nandlab.study.metrics import Results
from nandlab.study.model import LABELS, SEED, Claim, Definition, Measure, Part, Where
from nandlab.study.plan import build_identity

#: The file with the verdicts over the ranges, in the folder of the study that varies the parameters.
RANGES = "ranges.json"


@dataclass(frozen=True)
class AtPoint:
    """The verdict on a headline at a point of a range."""

    part: Part
    #: The values of the axes, without the seed.
    point: Mapping[str, Any]
    verdict: Verdict

    @property
    def text(self) -> str:
        """The point as text: `drive.op = 0.07`."""
        return ", ".join(f"{axis} = {value}" for axis, value in self.point.items()) or self.part.title

    def as_json(self) -> dict[str, Any]:
        found = self.verdict.sample
        return {
            "part": self.part.name,
            "range": list(self.part.range),
            "point": self.text,
            "measured": None if found is None else found.mean,
            "interval": None if found is None else found.interval,
            "verdict": self.verdict.verdict,
        }


@dataclass(frozen=True)
class OverRanges:
    """A headline over the ranges."""

    claim: Claim
    points: tuple[AtPoint, ...]


def over_ranges(study: Definition, results: Results) -> list[OverRanges]:
    """The headlines and inferred readings of the extended study at each point of the parts with `range`."""
    if study.extended is None:
        return []
    parts = [part for part in study.parts if part.range]
    found = []
    for claim in study.extended.claims:
        if (claim.headline or claim.inferred) and parts:
            points = tuple(point for part in parts for point in _points(study, results, claim, part))
            found.append(OverRanges(claim, points))
    return found


def _points(study: Definition, results: Results, claim: Claim, part: Part) -> list[AtPoint]:
    # The claim may select values of an axis of the setting, such as one of several budgets.
    own = {SEED, *claim.measure.where.columns}
    points = dict.fromkeys(
        tuple((axis, value) for axis, value in run.point.items() if axis not in own)
        for run in results.runs
        if run.part == part.name
    )
    return [
        AtPoint(part, dict(point), judge_claim(study, results, _moved(claim, part, dict(point)))) for point in points
    ]


def _moved(claim: Claim, part: Part, point: Mapping[str, Any]) -> Claim:
    """The claim on the runs of a point."""

    def there(measure: Measure) -> Measure:
        kept = {n: values for n, values in measure.where.columns.items() if n in LABELS or n in part.grid}
        here = {"part": (part.name,), **{axis: (value,) for axis, value in point.items()}}
        return replace(measure, where=Where({**kept, **here}))

    testable = claim.testable
    if testable is not None and testable.measure is not None:
        testable = replace(testable, measure=there(testable.measure))
    baseline = claim.baseline
    return replace(
        claim,
        measure=there(claim.measure),
        baseline=there(baseline) if isinstance(baseline, Measure) else baseline,
        testable=testable,
    )


def as_json(study: Definition, found: Sequence[OverRanges]) -> dict[str, Any]:
    """The content of `RANGES`."""
    return {
        "study": study.name,
        "of": "" if study.extended is None else study.extended.name,
        "smoke": study.smoke,
        "build": build_identity(),
        "claims": [{"id": one.claim.id, "points": [point.as_json() for point in one.points]} for one in found],
    }


@dataclass(frozen=True)
class Held:
    """What is known of the ranges of a study."""

    #: By claim: the points with their verdicts; `None` if the ranges have not been run with this build.
    points: Mapping[str, Sequence[Mapping[str, Any]]] | None
    #: The parts with `range` that the study declares.
    parts: Sequence[str]
    #: The argument of `nandlab study` that runs the ranges.
    command: str

    def of(self, verdict: Verdict) -> tuple[str, str, dict[str, Any] | None]:
        """The verdict on a headline over the ranges, the reason, and the points for claims.json."""
        if self.points is None:
            return AT_SETTING, f"the ranges have not been run: nandlab study {self.command}", None
        points = list(self.points.get(verdict.claim.id, ()))
        lacking = [part for part in self.parts if not any(point["part"] == part for point in points)]
        judged = [point for point in points if point["verdict"] not in (NOT_TESTABLE, NOT_MEASURED)]
        failed = [point for point in points if point["verdict"] not in (REPRODUCED, INFERRED)]
        known = [point["measured"] for point in judged if point["measured"] is not None]
        said = {
            "points": len(points),
            "reproduced": len(points) - len(failed),
            "lowest": min(known, default=None),
            "highest": max(known, default=None),
            "not_at": [f"{point['part']}: {point['point']}" for point in failed],
            "parts_not_run": lacking,
        }
        if lacking:
            return AT_SETTING, f"not run: part {', '.join(lacking)} of {self.command}", said
        if failed:
            return AT_SETTING, f"not at {_listed([point['point'] for point in failed])}", said
        return REPRODUCED, "", said


#: Points that a reason names.
_NAMED = 4


def _listed(points: Sequence[str]) -> str:
    names = list(dict.fromkeys(points))
    more = len(names) - _NAMED
    return "; ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def held(study: Definition, folder: Path) -> Held | None:
    """The ranges of a study whose results are in `folder`; `None` for a study that declares none.

    The results of the study that varies the parameters are looked for beside `folder`.
    """
    if study.ranges is None:
        return None
    name = study.ranges.name + ("-smoke" if study.smoke else "")
    path = folder.parent / name / RANGES
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = {}
    points = None
    if found.get("of") == study.name and found.get("build") == build_identity():
        points = {claim["id"]: claim["points"] for claim in found["claims"]}
    return Held(points, study.ranges.parts, study.ranges.command + (" --smoke" if study.smoke else ""))


def with_ranges(verdicts: Sequence[Verdict], ranges: Held | None) -> list[Verdict]:
    """The verdicts, in which a headline that is reproduced at the setting is judged over the ranges too."""
    if ranges is None:
        return list(verdicts)
    out = []
    for verdict in verdicts:
        if verdict.verdict == INFERRED or (verdict.claim.headline and verdict.verdict == REPRODUCED):
            word, reason, said = ranges.of(verdict)
            word = INFERRED if verdict.verdict == INFERRED else word
            verdict = replace(verdict, verdict=word, reason=reason, ranges=said)
        out.append(verdict)
    return out
