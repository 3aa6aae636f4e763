"""`nandlab trace`."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from nandlab import trace
from nandlab.cli.app import End, Force, Json, app, examples
from nandlab.cli.output import show_facts, show_pairs, show_rows
from nandlab.errors import OutputError

trace_app = App(
    name="trace",
    help="Statistics of traces, and conversion between formats.",
    help_epilogue="",
    help_format="plaintext",
)
app.command(trace_app)

Lenient = Annotated[bool, Parameter(help="Skip malformed lines and count them.")]


@trace_app.command(
    name="stat",
    help_epilogue=examples(
        "nandlab trace stat hm_0.csv.zst",
        "nandlab trace stat --profile msr/hm_0    a look-alike and its source",
    ),
)
def trace_stat(
    *files: Annotated[Path, Parameter(name="FILE")],
    profile: str | None = None,
    format_: Annotated[str | None, Parameter(name="--format")] = None,
    device: str | None = None,
    lenient: Lenient = False,
    time_unit: str | None = None,
    max_gap: str | None = None,
    requests: int | None = None,
    logical_bytes: int | None = None,
    seed: int | None = None,
    json_: Json = False,
) -> None:
    """Print statistics of a trace: requests, sizes, footprint, arrival, skew.

    Parameters
    ----------
    files
        Trace files, also compressed as .zst, .gz or .xz.
    profile
        A workload profile instead of a file (see `nandlab trace profiles`).
    format_
        The trace's format (see `nandlab trace formats`); detected from the content when absent.
    device
        One device of a trace with several; concatenate: all devices, one after another.
    time_unit
        Unit of the times, for formats that do not define a unit: ps, ns, us, ms or s.
    max_gap
        The longest accepted time between two records, such as 30d; a day when absent.
    requests
        The number of requests to read; all when absent.
    logical_bytes
        Capacity of the drive to which the profile is scaled, in bytes.
    seed
        Seed of the profile's generator.
    """
    found = [
        (str(source or profile), trace.stat(source, **options))
        for source, options in _sources(
            files, profile, format_, device, lenient, time_unit, max_gap, requests, logical_bytes, seed
        )
    ]
    if json_:
        print(json.dumps(found[0][1] if len(found) == 1 else dict(found), indent=2))
        return
    for name, facts in found:
        show_facts(name, facts)


@trace_app.command(
    name="convert",
    help_epilogue=examples(
        "nandlab trace convert hm_0.csv.zst --to fio-iolog --out hm_0.log",
        "nandlab trace convert hm_0.csv hm_1.csv --to spc --out converted/",
        "nandlab trace convert --profile msr/hm_0 --to msr --drop --out hm_0.csv",
    ),
)
def trace_convert(
    *files: Annotated[Path, Parameter(name="FILE")],
    to: str,
    out: Path | None = None,
    profile: str | None = None,
    format_: Annotated[str | None, Parameter(name="--format")] = None,
    device: str | None = None,
    lenient: Lenient = False,
    time_unit: str | None = None,
    max_gap: str | None = None,
    requests: int | None = None,
    logical_bytes: int | None = None,
    seed: int | None = None,
    drop: Annotated[bool, Parameter()] = False,
    force: Force = False,
    json_: Json = False,
) -> End:
    """Convert a trace to another format.

    Parameters
    ----------
    files
        Trace files, also compressed as .zst, .gz or .xz.
    to
        The format to write (see `nandlab trace formats`).
    out
        The file to write; with several traces, a directory. When absent, a file in the current directory, such as
        hm_0.spc for hm_0.csv and --to spc.
    profile
        Write the look-alike that this workload profile generates (see `nandlab trace profiles`).
    format_
        The format of the source trace; detected from the content when absent.
    device
        One device of a trace with several; concatenate: all devices, one after another.
    time_unit
        Unit of the times, for formats that do not define a unit: ps, ns, us, ms or s.
    max_gap
        The longest accepted time between two records, such as 30d; a day when absent.
    requests
        The number of requests to convert; all when absent.
    logical_bytes
        Capacity of the drive to which the profile is scaled, in bytes.
    seed
        Seed of the profile's generator.
    drop
        Leave out, and count, requests that the format cannot represent; without --drop such a request is an error.
    """
    sources = list(
        _sources(files, profile, format_, device, lenient, time_unit, max_gap, requests, logical_bytes, seed)
    )
    if to not in (names := [name for name, _ in trace.formats()]):
        near = difflib.get_close_matches(to, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise OutputError(f"no trace format {to!r}{hint}\n  formats: {', '.join(names)}")
    many = len(sources) > 1 or (out is not None and (out.is_dir() or str(out).endswith(os.sep)))
    targets = []
    for source, _ in sources:
        stem = (source.name.split(".")[0] if source is not None else str(profile).replace("/", "-")) or "trace"
        directory = out if many and out is not None else Path(".")
        targets.append(out if out is not None and not many else directory / f"{stem}.{to}")
    if len(set(targets)) != len(targets):
        raise OutputError(
            "two of these traces would be written to the same file\n  remedy: convert the traces one by one with --out"
        )
    done = {}
    for (source, options), target in zip(sources, targets, strict=True):
        done[str(target)] = trace.convert(source, target, to=to, drop=drop, force=force, **options)
        if not json_:
            show_facts(str(target), done[str(target)])
    if json_:
        print(json.dumps(done, indent=2))
    return End(kept=f"written: {', '.join(done)}")


@trace_app.command(name="formats", help_epilogue="")
def trace_formats(*, json_: Json = False) -> None:
    """List the trace formats that can be read and written."""
    show_pairs(trace.formats(), json_)


@trace_app.command(name="profiles", help_epilogue="")
def trace_profiles(*, json_: Json = False) -> None:
    """List the workload profiles, with the published or recorded numbers to which they are calibrated."""
    show_rows(trace.profiles(), json_)


def _sources(
    files: tuple[Path, ...],
    profile: str | None,
    format_: str | None,
    device: str | None,
    lenient: bool,
    time_unit: str | None,
    max_gap: str | None,
    requests: int | None,
    logical_bytes: int | None,
    seed: int | None,
) -> Iterator[tuple[Path | None, dict[str, Any]]]:
    """The traces that a command names, each with the options of the command."""
    options: dict[str, Any] = {
        "profile": profile,
        "format": format_,
        "device": device,
        "lenient": lenient,
        "time_unit": time_unit,
        "max_gap": max_gap,
        "requests": requests,
        "logical_bytes": logical_bytes,
        "seed": seed,
    }
    if profile is not None:
        if files:
            raise OutputError("name either trace files or a --profile, not both")
        yield None, options
    elif not files:
        raise OutputError("name a trace file, or a --profile")
    for file in files:
        yield file, options


def as_options(text: str) -> str:
    """The error of a trace, with the options of `nandlab trace` in place of keys of the spec."""
    text = text.replace(" = true", "").replace("the path of workload.trace", "the path")
    text = re.sub(r'(workload\.(?:device|max_gap)) = "(.*?)"', r"\1 \2", text)
    return re.sub(
        r"workload\.(format|device|lenient|time_unit|max_gap)", lambda key: "--" + key[1].replace("_", "-"), text
    )
