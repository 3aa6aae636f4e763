"""`nandlab trace`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nandlab import trace, units
from nandlab._core import NandlabError
from nandlab.cli.app import End, Parser
from nandlab.cli.output import say, show_facts, show_pairs, show_rows, warn_of_others
from nandlab.errors import OutputError


def add(parser: Parser) -> None:
    """Declare the arguments."""
    stat = parser.add_command("stat", "Print statistics of a trace: requests, sizes, footprint, arrival, skew.")
    stat.define(
        _stat,
        examples="""
nandlab trace stat hm_0.csv.zst
nandlab trace stat --profile msr/hm_0    a look-alike and its source
nandlab trace stat my.csv --columns "time_s, lba*4096, size, op(R=read, W=write); header=1"
nandlab trace stat volumes.csv --by-device
nandlab trace stat volumes.csv --device 7 --device 9 --window 1h..2h
""",
    )
    _add_source(
        stat,
        profile="A workload profile instead of a file (see `nandlab trace profiles`).",
        format="The trace's format (see `nandlab trace formats`); detected from the content when absent.",
        requests="The number of requests to read; all when absent.",
    )
    stat.add_argument(
        "--by-device",
        action="store_true",
        help="Print a line for each device of the trace, the device with the most requests first.",
    )
    stat.add_json()

    convert = parser.add_command("convert", "Convert a trace to another format.")
    convert.define(
        _convert,
        examples="""
nandlab trace convert hm_0.csv.zst --to fio-iolog --out hm_0.log
nandlab trace convert hm_0.csv hm_1.csv --to spc --out converted/
nandlab trace convert --profile msr/hm_0 --to msr --drop --out hm_0.csv
""",
    )
    convert.add_argument(
        "--to",
        required=True,
        metavar="FORMAT",
        help="The format to write (see `nandlab trace formats`).",
    )
    convert.add_argument(
        "--out",
        metavar="FILE",
        help="The file to write; with several traces, a directory. When absent, a file in the current directory, such "
        "as hm_0.spc for hm_0.csv and --to spc.",
    )
    _add_source(
        convert,
        profile="Write the look-alike that this workload profile generates (see `nandlab trace profiles`).",
        format="The format of the source trace; detected from the content when absent.",
        requests="The number of requests to convert; all when absent.",
    )
    convert.add_argument(
        "--drop",
        action="store_true",
        help="Leave out, and count, requests that the format cannot represent; without --drop such a request is an "
        "error.",
    )
    convert.add_force()
    convert.add_json()

    formats = parser.add_command("formats", "List the trace formats that can be read and written.")
    formats.define(_formats)
    formats.add_json()

    profiles = parser.add_command(
        "profiles",
        "List the workload profiles, with the published or recorded numbers to which they are calibrated.",
    )
    profiles.define(_profiles)
    profiles.add_json()


def _add_source(parser: Parser, *, profile: str, format: str, requests: str) -> None:
    """Add the arguments that name a trace; the texts are the help of three of them."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="FILE",
        help="Trace files, also compressed (.zst, .gz, .xz, .bz2) or alone in an archive (.tar, .zip).",
    )
    parser.add_argument("--profile", metavar="NAME", help=profile)
    parser.add_argument("--format", help=format)
    parser.add_argument(
        "--columns",
        metavar="TEXT",
        help="The columns of any other text, with their units: 'time_ms, device, offset, size, op(1=read, 0=write)'.",
    )
    parser.add_argument(
        "--device",
        action="append",
        metavar="NAME",
        help="One device of a trace with several; given several times, these devices, one after another; concatenate: "
        "all devices, one after another.",
    )
    parser.add_argument("--only", metavar="OPERATION", help="Only reads, or only writes.")
    parser.add_argument(
        "--window",
        metavar="FROM..TO",
        help="Only the requests from one time after the first request to another, such as 1h..2h; without TO, to the "
        "end.",
    )
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="Skip damaged records and count them; above 10 %% of the records they are an error.",
    )
    parser.add_argument(
        "--at-most",
        type=float,
        metavar="SHARE",
        help="With --lenient: the largest share of the records that may be skipped; 0.1 when absent.",
    )
    parser.add_argument(
        "--time-unit",
        metavar="UNIT",
        help="Unit of the times, for the formats that do not define a unit, mqsim and fio-iolog: ps, ns, us, ms or s.",
    )
    parser.add_argument(
        "--max-gap",
        metavar="TIME",
        help="The longest accepted time between two records, such as 30d; a day when absent.",
    )
    parser.add_argument("--requests", type=int, metavar="N", help=requests)
    parser.add_argument(
        "--logical-bytes",
        type=int,
        metavar="N",
        help="Capacity of the drive to which the profile is scaled, in bytes.",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="Seed of the profile's generator.")


@contextlib.contextmanager
def _naming_options() -> Iterator[None]:
    """In the errors of traces, replace keys of the spec by options of `nandlab trace`."""
    try:
        yield
    except NandlabError as error:
        raise OutputError(_as_options(str(error))) from None


@_naming_options()
def _stat(options: argparse.Namespace) -> End:
    if options.by_device:
        return _stat_by_device(options)
    found = [(str(source or options.profile), trace.stat(source, **reading)) for source, reading in _sources(options)]
    if options.json:
        print(json.dumps(found[0][1] if len(found) == 1 else dict(found), indent=2))
        return End()
    for name, facts in found:
        _show(name, facts)
    return End()


#: The most devices that a table shows; `--json` has all.
_DEVICES_MAX = 50


def _stat_by_device(options: argparse.Namespace) -> End:
    found = {}
    for source, reading in _sources(options):
        for name in ("profile", "device", "only", "window", "max_gap", "logical_bytes", "seed"):
            if reading.pop(name) is not None:
                given = name.replace("_", "-")
                raise OutputError(f"--by-device reads the whole of a trace file: leave --{given} out")
        assert source is not None, "only a profile has no source"
        found[str(source)] = trace.stat_by_device(source, **reading)
    if options.json:
        print(json.dumps(next(iter(found.values())) if len(found) == 1 else found, indent=2))
        return End()
    for name, rows in found.items():
        say(f"{name}: {units.count(len(rows))} device{'' if len(rows) == 1 else 's'}")
        show_rows([_device_row(row) for row in rows[:_DEVICES_MAX]], False)
        if len(rows) > _DEVICES_MAX:
            say(f"{units.count(len(rows) - _DEVICES_MAX)} further devices: --json lists all")
    return End()


def _device_row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "device": row["device"],
        "requests": row["requests"],
        "reads": units.share(row["read_ratio"]),
        "read": units.size(row["read_bytes"]),
        "written": units.size(row["written_bytes"]),
        "footprint": units.size(row["footprint_bytes"]),
        "working set": units.size(row["working_set_bytes"]),
        "IOPS": row["iops_mean"],
    }


def _show(name: str, facts: dict[str, Any]) -> None:
    """Print facts, and their notes and the other readings of the trace below them."""
    notes = facts.pop("notes")
    read_as = facts.pop("read_as", None)
    if read_as is not None:
        # The reading comes first, with the format in the place that it has for a profile.
        first = {"format": facts.pop("format"), "units": read_as["units"]}
        if read_as["first"] is not None:
            first["first_record"] = read_as["first"]["text"]
        facts = first | facts
    show_facts(name, facts)
    for note in notes:
        say(f"{note['severity']}: {note['text']}")
    if read_as is not None:
        warn_of_others(read_as, "--format")


@_naming_options()
def _convert(options: argparse.Namespace) -> End:
    sources = list(_sources(options))
    out = None if options.out is None else Path(options.out)
    if options.to not in (names := [name for name, _ in trace.formats()]):
        import difflib

        near = difflib.get_close_matches(options.to, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise OutputError(f"no trace format {options.to!r}{hint}\n  formats: {', '.join(names)}")
    many = len(sources) > 1 or (out is not None and (out.is_dir() or str(out).endswith(os.sep)))
    targets = []
    for source, _ in sources:
        stem = (source.name.split(".")[0] if source is not None else str(options.profile).replace("/", "-")) or "trace"
        directory = out if many and out is not None else Path(".")
        targets.append(out if out is not None and not many else directory / f"{stem}.{options.to}")
    if len(set(targets)) != len(targets):
        raise OutputError(
            "two of these traces would be written to the same file\n  remedy: convert the traces one by one with --out"
        )
    done = {}
    for (source, reading), target in zip(sources, targets, strict=True):
        done[str(target)] = trace.convert(
            source, target, to=options.to, drop=options.drop, force=options.force, **reading
        )
        if not options.json:
            _show(str(target), dict(done[str(target)]))
    if options.json:
        print(json.dumps(done, indent=2))
    return End(kept=f"written: {', '.join(done)}")


def _formats(options: argparse.Namespace) -> End:
    show_pairs(trace.formats(), options.json)
    return End()


def _profiles(options: argparse.Namespace) -> End:
    show_rows(trace.profiles(), options.json)
    return End()


#: The options that `nandlab.trace` reads a trace with.
_READING = (
    "profile",
    "format",
    "columns",
    "device",
    "only",
    "window",
    "lenient",
    "time_unit",
    "max_gap",
    "requests",
    "logical_bytes",
    "seed",
)


def _sources(options: argparse.Namespace) -> Iterator[tuple[Path | None, dict[str, Any]]]:
    """The traces that a command names, each with the options of the command."""
    reading = {name: getattr(options, name) for name in _READING}
    if options.device is not None and len(options.device) == 1:
        reading["device"] = options.device[0]
    if options.window is not None:
        start, dots, end = options.window.partition("..")
        if not dots:
            raise OutputError(
                "--window: expected two times\n  remedy: give a window such as 1h..2h, or 1h.. to the end"
            )
        reading["window"] = (start or "0s", end or None)
    if options.at_most is not None:
        if not options.lenient:
            raise OutputError("--at-most is the share of records that --lenient may skip: give --lenient too")
        reading["lenient"] = options.at_most
    if options.profile is not None:
        if options.names:
            raise OutputError("name either trace files or a --profile, not both")
        yield None, reading
    elif not options.names:
        raise OutputError("name a trace file, or a --profile")
    for name in options.names:
        yield Path(name), reading


def _as_options(text: str) -> str:
    """The error of a trace, with the options of `nandlab trace` in place of keys of the spec."""
    text = re.sub(r"workload\.lenient = \{ at_most = (.*?) \}", r"--lenient --at-most \1", text)
    text = text.replace(" = true", "").replace("the path of workload.trace", "the path")
    text = text.replace("workload.format.columns", "--columns")
    text = re.sub(r"workload\.format = \{ columns = (\".*?\") \}", r"--columns \1", text)
    text = re.sub(r'(workload\.(?:device|max_gap|format|time_unit)) = "(.*?)"', r"\1 \2", text)
    text = text.replace("some with workload.devices", "some with several --device").replace(
        "workload.devices", "--device"
    )
    return re.sub(
        r"workload\.(format|device|only|window|lenient|time_unit|max_gap)",
        lambda key: "--" + key[1].replace("_", "-"),
        text,
    )
