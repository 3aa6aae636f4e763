"""The report of a study: claims, paper and measurement, set-up, figures with their data, specs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nandlab.noted import of_runs
from nandlab.presentation.model import counted
from nandlab.reporting.chart import Figure
from nandlab.reporting.content import (
    Block,
    Cell,
    Columns,
    Drawing,
    Facts,
    Fold,
    Listing,
    Nothing,
    Page,
    Setting,
    Span,
    Words,
    sections_of,
)
from nandlab.result_types import Note
from nandlab.study.claim_parts import MARKS, headlines, ledger, workloads
from nandlab.study.draw import Drawn
from nandlab.study.effects import combination
from nandlab.study.judge import (
    AT_SETTING,
    FITTED,
    NOT_MEASURED,
    NOT_REPRODUCED,
    REPRODUCED,
    SAME_DIRECTION,
    UNDECIDED,
    Verdict,
)
from nandlab.study.metrics import Results, flat
from nandlab.study.model import SEED, Choice, Definition, Override, filled
from nandlab.study.parameters import not_stated, stated
from nandlab.study.plan import PlannedRun
from nandlab.study.ranges import OverRanges
from nandlab.units import count, size


def study_page(
    study: Definition,
    results: Results,
    drawn: Sequence[Drawn],
    figures: Sequence[Figure | None],
    verdicts: Sequence[Verdict],
    ranges: Sequence[OverRanges],
    version: str,
) -> Page:
    """The page of a study; `figures` are the charts of `drawn`."""
    runs = results.runs
    badges = [("smoke size: the numbers support no claim", "warn")] if study.smoke else []
    tally = {verdict: sum(1 for v in verdicts if v.verdict == verdict) for verdict in MARKS}
    errors = _with_errors(results)
    badges += [(f"{counted(errors, 'run')} with errors", "bad")] if errors else []
    badges += [(f"{n} {verdict}", MARKS[verdict]) for verdict, n in tally.items() if n and MARKS[verdict] != "none"]
    sections: list[tuple[str, Sequence[Block | None]]] = [
        ("Claims", ledger(study, verdicts)),
        ("Headlines over the ranges of the parameters", headlines(ranges)),
        ("Paper and measurement by workload", workloads(verdicts)),
        ("Figures", [_drawing(number, *one) for number, one in enumerate(zip(drawn, figures, strict=True), 1)]),
        ("Where the parameters come from", _parameters(study)),
        ("Set-up", _setup(study, runs)),
        ("Load", [_load(study, results)]),
        ("Specs", _specs(study, results)),
    ]
    return Page(
        kind="study",
        title=study.title,
        lead=_lead(study, results, verdicts),
        question=study.question,
        badges=tuple(badges),
        tiles=(),
        notes=tuple(_notes(results)),
        paragraphs=tuple(part for part in study.notes.split("\n\n") if part.strip()),
        sections=sections_of(sections),
        footer=f"study {study.name}",
        version=version,
    )


def _notes(results: Results) -> Iterator[Note]:
    """The notes of the runs, each code once."""
    for one in results.gathered():
        whose = of_runs(len(one.runs), len(results.notes), results.where(one.runs))
        yield Note(one.note.severity, one.note.code, f"{one.note.code} {whose}{one.note.text}")


def _with_errors(results: Results) -> int:
    """The number of distinct runs with an error."""
    return len({run for one in results.gathered() if one.note.severity == "error" for run in one.runs})


def _lead(study: Definition, results: Results, verdicts: Sequence[Verdict]) -> str:
    """What happened, and what to look at."""
    text = f"{count(len(results.runs))} runs"
    if errors := _with_errors(results):
        return f"{text}, {count(errors)} of them with errors. Look first at the notes."
    judged = [verdict for verdict in verdicts if verdict.verdict != NOT_MEASURED]
    if not judged:
        return f"{text}. Look first at Figures." if study.figures else f"{text}."
    good = sum(1 for verdict in judged if verdict.verdict in (REPRODUCED, AT_SETTING, FITTED))
    text += f" judge {counted(len(judged), 'claim')}, of which {count(good)} {'is' if good == 1 else 'are'} reproduced"
    if any(verdict.verdict == FITTED for verdict in judged):
        text += " or fitted"
    if any(verdict.verdict == AT_SETTING for verdict in judged):
        text += f", {sum(1 for verdict in judged if verdict.verdict == AT_SETTING)} of them at a setting only"
    order = (NOT_REPRODUCED, SAME_DIRECTION, UNDECIDED)
    worst = sorted(
        (verdict for verdict in judged if verdict.verdict in order),
        key=lambda verdict: (order.index(verdict.verdict), not verdict.claim.headline),
    )
    if not worst:
        return f"{text}."
    first = worst[0]
    return f"{text}. Look first at the claim \u201c{first.claim.what}\u201d, which is {_is(first.verdict)}."


def _is(verdict: str) -> str:
    return "measured in the same direction only" if verdict == SAME_DIRECTION else verdict


# ------------------------------------------------------------------------------------------------------------- set-up


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (dict, list)):
        text = json.dumps(value)
        return text.replace('"', "").replace("{", "").replace("}", "")
    return str(value)


def _setup(study: Definition, runs: Sequence[PlannedRun]) -> list[Block]:
    first = runs[0].spec
    same = len({run.spec.raw_bytes for run in runs}) == 1
    drives = sorted({run.spec.raw_bytes for run in runs})
    raw = size(first.raw_bytes) if same else f"{size(drives[0])} to {size(drives[-1])}"
    points = {tuple((name, value) for name, value in run.point.items() if name != SEED) for run in runs}
    seeds = dict.fromkeys(run.point[SEED] for run in runs if SEED in run.point)
    facts = [
        ("runs", f"{count(len(runs))}, {count(len({run.identity for run in runs}))} of them distinct"),
        (
            "combinations",
            f"{counted(len({run.variant for run in runs}), 'variant')}, "
            f"{counted(len({run.workload for run in runs}), 'workload')}, "
            f"{counted(len(points), 'point')} of the grid",
        ),
        ("seeds", f"{len(seeds)}: {', '.join(map(str, seeds))}" if seeds else "1"),
        ("drive", f"{raw} raw"),
    ]
    if study.setting is not None:
        facts.append(("setting of the headlines", f"part {study.titles[('part', study.setting)]}"))
    axes: list[tuple[Cell, ...]] = []
    for axis in study.axes:
        if axis != SEED:
            values = dict.fromkeys(point.title for part in study.parts for point in part.grid.get(axis, ()))
            axes.append((Span(axis, "code"), ", ".join(values)))
    grid = Listing(("axis", "values"), tuple(axes), title="Grid", stacks=True) if axes else None
    tables = [
        Facts(tuple(facts)),
        grid,
        _factors(study),
        _choices(study, "variant", _there(study, "variants")),
        _choices(study, "workload", _there(study, "workloads")),
    ]
    parts: list[Block] = [Columns(tuple(table for table in tables if table is not None))]
    return parts + _parts(study, runs)


def _parts(study: Definition, runs: Sequence[PlannedRun]) -> list[Block]:
    """The table of the parts: runs, variants, and keys that the part sets."""
    if len(study.parts) < 2:
        return []
    rows: list[tuple[Cell, ...]] = [
        (
            part.title,
            str(sum(1 for run in runs if run.part == part.name)),
            ", ".join(choice.title for choice in part.variants),
            _sets(study, part.sets),
        )
        for part in study.parts
    ]
    return [
        Listing(("part", "runs", "variants", "sets"), tuple(rows), title="Parts", numbers=frozenset({1}), stacks=True)
    ]


def _sets(study: Definition, sets: Sequence[Override]) -> Cell:
    def value_of(name: str) -> Any:
        return study.values.get(name, name)

    return tuple(Setting(o.key, _plain(filled(o.value, value_of))) for o in sets) or "-"


def _factors(study: Definition) -> Block | None:
    """The table of the factors: settings off and on."""
    if not study.factors:
        return None
    rows = tuple(((Span(f.name, "strong"), f.title), _sets(study, f.off), _sets(study, f.on)) for f in study.factors)
    return Listing(("factor", "off", "on"), rows, title="Factors", stacks=True)


def _there(study: Definition, kind: str) -> list[Choice]:
    choices: dict[str, Choice] = {}
    factors = [factor.name for factor in study.factors]
    for part in study.parts:
        for choice in part.variants if kind == "variants" else part.workloads:
            # The variants of the factors are in the table of the factors.
            if kind == "workloads" or not factors or combination(choice.name, factors) is None:
                choices.setdefault(choice.name, choice)
    return list(choices.values())


def _choices(study: Definition, column: str, choices: Sequence[Choice]) -> Block | None:
    """The table of the settings of each variant or workload."""
    if not any(choice.sets for choice in choices):
        return None
    rows = tuple((Span(choice.title, "strong"), _sets(study, choice.sets)) for choice in choices)
    return Listing((column, "sets"), rows, title=f"{column.capitalize()}s", stacks=True)


def _parameters(study: Definition) -> list[Block]:
    """Where the parameters come from."""
    if not study.parameters:
        return []
    rows: list[tuple[Cell, ...]] = []
    for parameter in stated(study):
        text: tuple[Cell, ...] = (parameter.text,)
        if parameter.sensitivity is not None:
            text += (Span("sensitivity", href=f"#figure-{parameter.sensitivity}"),)
        text += tuple(Span(f"calibrated to {name}", href=f"#claim-{name}") for name in parameter.claims)
        text += tuple(Span(f"checked by {name}", href=f"#claim-{name}") for name in parameter.checks)
        rows.append((Span(parameter.key, "code"), parameter.origin, text))
    rows += [(Span(key, "code"), "not stated", "") for key in not_stated(study)]
    return [Listing(("key", "origin", "from"), tuple(rows), label="Where the parameters come from", stacks=True)]


#: Columns of the table of load: metric and title.
_LOAD = {
    "load.die_busy": "dies, mean",
    "load.die_busy_peak": "dies, peak",
    "load.channel_busy": "channels, mean",
    "load.channel_busy_peak": "channels, peak",
}


def _load(study: Definition, results: Results) -> Block:
    """The busy shares of dies and channels by part and variant, each the mean over the runs."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for run, row in zip(results.runs, results.rows, strict=True):
        found.setdefault((run.part, run.variant), []).append(row)
    rows: list[tuple[Cell, ...]] = []
    first = 2 if len(study.parts) > 1 else 1
    for (part, variant), group in found.items():
        cells: list[Cell] = [study.titles[("part", part)]] if len(study.parts) > 1 else []
        cells.append(study.titles.get(("variant", variant), variant))
        for name in _LOAD:
            known = [row[name] for row in group if row.get(name) is not None]
            cells.append(f"{100 * sum(known) / len(known):.3g} %" if known else "-")
        rows.append(tuple(cells))
    heads = (["part"] if len(study.parts) > 1 else []) + ["variant", *_LOAD.values()]
    caption = (
        "Die and channel utilisation over the time of the run, mean over dies, channels and runs; peak: "
        "the busiest interval of the series."
    )
    numbers = frozenset(range(first, first + len(_LOAD)))
    return Listing(tuple(heads), tuple(rows), caption=caption, numbers=numbers, label="Load")


# ------------------------------------------------------------------------------------------------------------ figures


def _drawing(number: int, drawn: Drawn, figure: Figure | None) -> Block:
    title = f"{number}. {drawn.figure.title}"
    if figure is None:
        return Nothing("No run has a value for this figure.", title)
    files = tuple(f"figures/{drawn.figure.id}.{kind}" for kind in ("svg", "pdf"))
    return Drawing(replace(figure, title=title), files)


# -------------------------------------------------------------------------------------------------------------- specs


def _specs(study: Definition, results: Results) -> list[Block]:
    rows, runs = [], results.runs
    resolved = [dict(flat(json.loads(run.spec.canonical_json()))) for run in runs]
    for run in runs:
        cells: list[Cell] = [Span(run.identity[:12], "code")]
        cells += [run.part] if len(study.parts) > 1 else []
        cells += [run.variant, run.workload]
        cells += [_plain(run.point[axis]) if axis in run.point else "-" for axis in study.axes]
        cells.append(", ".join(note.code for note in results.notes[run.identity]) or "-")
        rows.append(tuple(cells))
    heads = ("run", *(["part"] if len(study.parts) > 1 else []), "variant", "workload", *study.axes, "notes")
    # Keys with the same value in all runs are listed once.
    keys = list(dict.fromkeys(key for entries in resolved for key in entries))
    common = {
        key: resolved[0].get(key) for key in keys if len({json.dumps(entries.get(key)) for entries in resolved}) == 1
    }
    varied = [key for key in keys if key not in common]
    parts: list[Block] = [
        Fold(f"The {count(len(runs))} runs", (Listing(heads, tuple(rows), label="Runs"),)),
        Fold(
            "Keys with the same value in all runs, in base units (ns, bytes)",
            (
                Facts(tuple((key, _plain(value)) for key, value in common.items())),
                Words(f"Keys that differ between runs: {', '.join(varied)}."),
            ),
        ),
        Fold(f"The study, {Path(study.path).name}", text=study.text),
    ]
    if study.base_text:
        parts.append(Fold(f"The base spec, {study.base_name}", text=study.base_text))
    parts.append(Fold("The whole spec of the first run, with all defaults", text=runs[0].spec.to_toml()))
    return parts
