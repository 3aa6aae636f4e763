"""Whether two runs have the same results to the byte, which is what "no effect" of a setting means."""

from __future__ import annotations

import json
from typing import Any

from nandlab.comparison.metrics import is_outcome
from nandlab.results import RunResult
from nandlab.study.model import leaves

#: Tables whose rows the section [output] of the spec determines, too.
_SHAPED_BY_OUTPUT = ("series", "dies", "requests")


def identical(one: RunResult, other: RunResult, *, output_differs: bool = False) -> bool:
    """Whether all results are the same to the byte, except what repeats the settings.

    Compared are the outcomes in summary.json, smart.json, power.json, fdp.json, every table (also each bin of the
    latency histograms, each interval of the series and each block) and the timeline. Not compared are the spec and its
    hash, the notes, which quote settings, and sim.json. With `output_differs` (the specs differ in [output]) the tables
    that [output] shapes, and the timeline, are left out.
    """
    texts = [[_lines(text) for text in (of.smart_text, of.power_text, of.fdp_text)] for of in (one, other)]
    if _outcomes(one) != _outcomes(other) or texts[0] != texts[1]:
        return False
    if not output_differs and (one.timeline != other.timeline or one.tables != other.tables):
        return False
    tables = [name for name in one.tables if not (output_differs and name in _SHAPED_BY_OUTPUT)]
    return all(name in other.tables and one.table(name).equals(other.table(name)) for name in tables)


def _outcomes(result: RunResult) -> dict[str, Any]:
    return {name: value for name, value in leaves(json.loads(result.summary_text), "") if is_outcome(name)}


def _lines(text: str | None) -> str | None:
    """A text without the newline at its end, which a file has and a result in memory lacks."""
    return None if text is None else text.rstrip("\n")
