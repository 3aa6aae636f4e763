"""The result of a power test as JSON, as JUnit XML, and as a page."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from nandlab import _core, units
from nandlab.power_test.instants import Moments
from nandlab.power_test.timeline import Around, around, before, timeline
from nandlab.presentation.model import counted
from nandlab.whole import write_file

if TYPE_CHECKING:
    from nandlab.power_test.test import Cut, PowerTest
    from nandlab.reporting.content import Block, Cell, Page

_FORMAT = 1
#: Bytes of a logical block (LBA) of a drive without another word, as file systems count them.
_SECTOR = 512
#: What each verdict blames, and what it rests on.
VERDICTS = {
    "drive": "the drive: with the writes put back that it may not lose the check passes; a flush covers them, or they "
    "were acknowledged, had reached flash, and are destroyed there",
    "file system": "the file system or its mount options: its own check finds damage after its own recovery",
    "program or file system": "the program, or a file system that forgets an fsync: the file system is clean after its "
    "recovery, and nothing in an image tells the two apart",
    "program": "the program: it never asked for its data to be durable, or there is no file system between it and the "
    "drive",
    "check": "the check: it fails once and passes once on the same image",
}


def evidence_text(cut: Cut) -> str:
    """The evidence of a verdict, in a sentence."""
    evidence = cut.evidence or {}
    parts = []
    if evidence.get("with_covered") is not None:
        outcome = "passes" if evidence["with_covered"] else "still fails"
        put_back = evidence["put_back"]
        parts.append(
            f"with {counted(put_back, 'write')} put back that the drive may not lose (a flush covers it, or it was "
            f"acknowledged and is destroyed in flash) the check {outcome}"
        )
    if evidence.get("with_acknowledged") is not None:
        outcome = (
            "passes: a flush is missing above the drive"
            if evidence["with_acknowledged"]
            else "still fails: the stack broke without a lost write of the drive"
        )
        number = cut.lost["covered"] + cut.lost["acknowledged"]
        writes = "the acknowledged write" if number == 1 else f"all {number:,} acknowledged writes"
        parts.append(f"with {writes} put back the check {outcome}")
    elif not cut.lost["covered"] and not cut.lost["acknowledged"]:
        parts.append("the drive has lost no acknowledged write")
    fsck = evidence.get("fsck") or ""
    if fsck:
        parts.append(f"the file system's own check: {fsck.strip().splitlines()[0]}")
    elif cut.verdict in ("program or file system", "drive"):
        parts.append("the file system is clean")
    if evidence.get("no_flush"):
        parts.append(f"with the mount option {evidence['no_flush']} the file system sends no flush")
    if evidence.get("fsyncs") is not None and cut.verdict != "drive":
        calls = f"the workload has called fsync or its like {counted(evidence['fsyncs'], 'time')}"
        parts.append(f"{calls}, and the drive has got {counted(evidence['flushes'], 'flush', 'flushes')}")
    if cut.unreadable:
        parts.append(f"{counted(cut.unreadable, 'unit')} cannot be read")
    return "; ".join(parts)


def to_dict(result: PowerTest) -> dict[str, Any]:
    """`powertest.json`."""
    return {
        "format": _FORMAT,
        "nandlab": _core.version(),
        "drive": result.drive,
        "second_cut": result.second_cut,
        "check": result.check,
        "requests": result.requests,
        "acknowledged": result.acknowledged,
        "simulated_s": result.simulated_s,
        "wall_s": round(result.wall_s, 3),
        "left_out": result.left_out,
        "repeat": result.repeat,
        "controls": result.controls,
        "broken": len(result.broken),
        "verdicts": result.verdicts(),
        "smallest": result.smallest,
        "cuts": [dataclasses.asdict(cut) for cut in result.cuts],
    }


def junit(result: PowerTest) -> bytes:
    """The result in the format of JUnit: a test case for each cut."""
    suite = ElementTree.Element(
        "testsuite",
        name="powertest",
        tests=str(len(result.cuts)),
        failures=str(len(result.broken)),
        errors="0",
        skipped="0",
        time=f"{result.wall_s:.3f}",
    )
    for cut in result.cuts:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname="powertest",
            name=f"cut {cut.number} at {cut.at_ns} ns",
            time=f"{cut.cpu_s:.3f}",
        )
        if not cut.passed:
            message = f"{cut.verdict}: {evidence_text(cut)}"
            failure = ElementTree.SubElement(case, "failure", type=cut.verdict or "", message=_printable(message))
            failure.text = _printable(cut.output or cut.reason)
    text: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _printable(text: str) -> str:
    """A text without the characters that XML cannot have."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


def second_text(result: PowerTest) -> str:
    """How often a second cut met a recovery."""
    number = sum(cut.cut_again for cut in result.cuts)
    if not number:
        return "No second cut met a recovery: the drive recovers at once, so --second-cut had no effect."
    return f"After {number:,} of {counted(len(result.cuts), 'cut')} power failed once more while the drive recovered."


def smallest_lines(result: PowerTest) -> list[str]:
    """The smallest case, in sentences."""
    case = result.smallest
    if case is None:
        return []
    tried = f"{case['events_tried']:,} of {case['events']:,} events tried"
    lines = [
        f"earliest: cut at {units.duration(case['at_ns'] * 1e-9)} of simulated time, before cut {case['cut']} ({tried})"
    ]
    if case["needs_no_loss"]:
        lines.append("the check breaks with every acknowledged write put back: no lost write is needed")
        return lines
    bounded = ", the search was ended there" if case["bounded"] else ""
    are = "is" if len(case["lost"]) == 1 else "are"
    lines.append(
        f"{counted(len(case['lost']), 'lost write')} {are} enough ({counted(case['tries'], 'image')} checked{bounded}):"
    )
    for unit in case["lost"][:10]:
        number = "unknown request" if unit["request"] is None else f"request {unit['request']:,}"
        kind = "TRIM undone" if unit["trim"] else "write lost"
        file = f", {unit['file']}" if unit.get("file") else ""
        where = f"LBA {unit['offset'] // _SECTOR:,} (byte {unit['offset']:,})"
        lines.append(f"  {where}: {unit['promise']}, {kind}, {number}{file}")
    if len(case["lost"]) > 10:
        lines.append(f"  and {len(case['lost']) - 10:,} more")
    return lines


def write(result: PowerTest, moments: Moments, kept: Sequence[dict[str, Any]] = ()) -> None:
    """Write all files of the result; `kept` has what the process that forks says of the cuts whose images are kept."""
    from nandlab.power_test.test import JUNIT, PAGE, RESULT

    write_file(result.path / RESULT, (json.dumps(to_dict(result), indent=2) + "\n").encode())
    write_file(result.path / JUNIT, junit(result))
    from nandlab.reporting.extra import missing

    if missing():
        return
    from nandlab.reporting.render import html_of

    write_file(result.path / PAGE, html_of(page_of(result, moments, kept)).encode())


def write_cut(folder: Path, row: dict[str, Any], moments: Moments) -> None:
    """Write the page of one cut: what is lost, and the requests around it."""
    from nandlab.power_test.test import CUT_PAGE
    from nandlab.reporting.content import Page, sections_of
    from nandlab.reporting.extra import missing

    if missing():
        return
    from nandlab.reporting.render import html_of

    lost = ", ".join(f"{number:,} {promise.replace('_', ' ')}" for promise, number in row["lost"].items())
    page = Page(
        kind="powertest",
        title=f"cut {row['number']:,}",
        lead=f"The cut is {units.duration((row['at_ns'] - moments.begin) * 1e-9)} after the beginning of the workload, "
        f"with {counted(row['acked'], 'acknowledged line')}. Lost units: {lost}. "
        f"{counted(row['unreadable'], 'unit')} cannot be read.",
        tiles=(),
        notes=(),
        sections=sections_of([("Requests", _of_kept(row, moments))]),
        footer="its image is in the same folder",
        version=_core.version(),
    )
    write_file(folder / CUT_PAGE, html_of(page).encode())


def _of_kept(row: dict[str, Any], moments: Moments) -> list[Block | None]:
    return requests_around(moments, around(moments, row["at_ns"], row["unit_bytes"], row["lost_units"]))


def page_of(result: PowerTest, moments: Moments, kept: Sequence[dict[str, Any]] = ()) -> Page:
    """The page."""
    from nandlab.presentation import Figure as Tile
    from nandlab.reporting.content import Fold, Listing, Page, Span, Words, sections_of

    broken = result.broken
    tiles = (
        Tile("cuts", f"{len(result.cuts):,}"),
        Tile("broken", f"{len(broken):,}"),
        Tile("CPU a cut, without the check", units.number(1e3 * _median([cut.cpu_s for cut in result.cuts])), "ms"),
        Tile("requests of the workload", f"{result.requests:,}"),
    )
    sections: list[tuple[str, Sequence[Block | None]]] = []
    if broken:
        rows = tuple((name, f"{number:,}", VERDICTS[name]) for name, number in result.verdicts().items())
        sections.append(
            ("Verdicts", [Listing(("verdict", "cuts", "it blames"), rows, numbers=frozenset({1}), stacks=True)])
        )
        sections.append(("Smallest case", [*map(Words, smallest_lines(result)), *_smallest_case(result, moments)]))
        cells: list[tuple[Cell, ...]] = []
        for cut in broken[:200]:
            lost = ", ".join(f"{number:,} {promise.replace('_', ' ')}" for promise, number in cut.lost.items())
            when = units.duration((cut.at_ns - moments.begin) * 1e-9)
            verdict = Span(cut.verdict or "", "strong")
            cells.append((f"{cut.number}", when, verdict, evidence_text(cut), lost, (cut.output or cut.reason)[-300:]))
        heads = ("cut", "after the beginning", "verdict", "evidence", "lost units", "end of the check's output")
        details = [
            Fold(f"Cut {row['number']}: the requests around it", tuple(filter(None, _of_kept(row, moments))))
            for row in kept
        ]
        sections.append(("Broken cuts", [Listing(heads, tuple(cells), stacks=True), *details]))
    method = [
        f"The drive: {result.drive}. Power was cut at {counted(len(result.cuts), 'instant')} of "
        f"{units.duration(result.simulated_s)} of simulated time: a third each at any time, around completions of "
        "flushes and writes with FUA, and within programs.",
        "After each cut the drive recovers, the image is written, the file system replays its journal, and the check "
        "runs. The images at the beginning and at the end of the workload, in which nothing is lost, pass.",
    ]
    if result.second_cut:
        method.append(second_text(result))
    if result.left_out:
        method.append(f"The budget of time has left out {counted(result.left_out, 'cut')} of those asked for.")
    sections.append(("Method", [*map(Words, method), Fold("The check", text=result.check)]))
    return Page(
        kind="powertest",
        title=result.path.name,
        lead=_lead(result),
        tiles=tiles,
        notes=(),
        sections=sections_of(sections),
        footer=f"{counted(len(result.cuts), 'cut')} in {units.duration(result.wall_s)}",
        version=_core.version(),
    )


def _lead(result: PowerTest) -> str:
    if result.passed:
        return f"{counted(len(result.cuts), 'power cut')}, none of which broke the check. The drive: {result.drive}."
    return (
        f"{len(result.broken):,} of {counted(len(result.cuts), 'power cut')} broke the check: "
        + ", ".join(f"{number:,} {name}" for name, number in result.verdicts().items())
        + f". The drive: {result.drive}."
    )


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0


def _smallest_case(result: PowerTest, moments: Moments) -> list[Block | None]:
    """The requests around the earliest broken instant."""
    case = result.smallest
    if case is None:
        return []
    shown = around(moments, case["at_ns"], case["unit_bytes"], case["lost"], case.get("also_lost", ()))
    return requests_around(moments, shown)


def requests_around(moments: Moments, shown: Around) -> list[Block | None]:
    """A time line, and a table of the same requests."""
    from nandlab.reporting.content import Listing, Span

    at = shown.at
    rows: list[tuple[Cell, ...]] = []
    for number in shown.numbers:
        when, op, offset, length, fua = moments.requests[number]
        acknowledged, in_flash = moments.reached[number]
        lost = "lost" if number in shown.lost else "also lost" if number in shown.also_lost else ""
        rows.append(
            (
                f"{number:,}",
                f"{op} FUA" if fua else op,
                f"{offset:,}" if op != "flush" else "",
                f"{length:,}" if op != "flush" else "",
                before(when, at),
                before(acknowledged, at),
                before(in_flash, at),
                Span(lost, "strong") if lost else ("after the cut" if when > at else ""),
            )
        )
    heads = ("request", "operation", "byte", "bytes", "submitted", "acknowledged", "in flash", "")
    caption = "Times from the cut. Those after it are of the session, in which the power did not fail."
    numbers = frozenset({0, 2, 3, 4, 5, 6})
    title = "Requests around the cut"
    return [
        timeline(moments, shown, "The requests on a time line"),
        Listing(heads, tuple(rows), title, caption, numbers=numbers, stacks=True),
    ]
