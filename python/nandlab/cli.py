"""The command `nandlab`.

Exit status:

0    done
1    a bug in nandlab
2    something in the input, the arguments or the disk
3    done, but what was to be printed could not be written
130  stopped by Ctrl-C; 143 by SIGTERM, 129 by SIGHUP
141  done, but whoever read the output has gone
"""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn

from cyclopts import App, CycloptsError, Group, Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import nandlab
from nandlab import lifetime, rber, simulate, spec, trace, units
from nandlab.ends import Stop, standard_streams
from nandlab.errors import OutputError, on_a_screen, os_error_text
from nandlab.results import REPORT
from nandlab.screen import RunProgress, show_life, show_reliability, show_summary


def _examples(*lines: str) -> str:
    return "\n".join(["Examples:" if len(lines) > 1 else "Example:", "", *(f"    {line}" for line in lines)])


app = App(
    name="nandlab",
    help="A laboratory for SSD controllers: simulate a flash drive, change one policy, see what it does.",
    help_epilogue=_examples(
        "nandlab run examples/demo.toml           simulate; results in out/demo",
        "nandlab run examples/demo.toml --set gc.victim=fifo",
        "nandlab report out/demo                  one HTML file: tables, plots",
        "nandlab spec show examples/demo.toml     every setting with its default",
    )
    + "\n\nExit status: 0 done, 1 a bug, 2 refused, 3 done but not printed, 130 stopped by Ctrl-C, 143 by SIGTERM, "
    "129 by SIGHUP, 141 done but the reader of the output has gone",
    help_format="plaintext",
    version=lambda: f"nandlab {nandlab.version()}",
    version_flags=["--version"],
    help_flags=["--help", "-h"],
    default_parameter=Parameter(show_default=False, negative=()),
    suppress_keyboard_interrupt=False,
)
trace_app = App(
    name="trace", help="What is in a trace; turn one format into another.", help_epilogue="", help_format="plaintext"
)
spec_app = App(
    name="spec",
    help="Check specs, show them with all defaults, list what they can name.",
    help_epilogue="",
    help_format="plaintext",
)
app.command(trace_app)
app.command(spec_app)
app["--help"].group = app["--version"].group = Group("Options")

Sets = Annotated[
    list[str] | None,
    Parameter(name="--set", help="Override one key, as KEY=VALUE; may be given many times."),
]
Json = Annotated[bool, Parameter(name="--json", help="Print JSON on stdout instead of tables.")]
Force = Annotated[bool, Parameter(name="--force", help="Replace what is there, whatever it is.")]
Lenient = Annotated[bool, Parameter(help="Skip malformed lines and count them.")]


#: Ctrl-C, SIGTERM or SIGHUP, for every command.
_stop = Stop()


class End(NamedTuple):
    """How a command ended."""

    status: int = 0
    #: What there is, whether or not it could be printed.
    kept: str = ""


def _out() -> Console:
    return Console(highlight=False, soft_wrap=False)


# ---------------------------------------------------------------------------------------------------------------- run


@app.command(
    help_epilogue=_examples(
        "nandlab run examples/demo.toml",
        "nandlab run examples/demo.toml --set drive.op=0.28 --out out/op28",
        "nandlab run examples/demo.toml --json | jq .waf",
    )
)
def run(
    spec_file: Annotated[Path, Parameter(name="SPEC.toml")],
    /,
    *,
    sets: Sets = None,
    out: Path | None = None,
    json_: Json = False,
    verify: Annotated[bool, Parameter()] = False,
    save_drive: Path | None = None,
    force: Force = False,
) -> End:
    """Simulate a spec; summary on screen and in a result directory.

    The result directory appears once it is whole.
    Ctrl-C, SIGTERM or SIGHUP keeps what is finished: summary.json then says "complete": false. A second one gives up.
    Exit status: 0 done, 2 refused, 3 done but not printed, 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.

    Parameters
    ----------
    spec_file
        The spec. A relative path in it counts from its directory.
    out
        The result directory; out/NAME when absent. One that holds an earlier result is replaced.
    verify
        Check every read against a reference model of the drive; slower.
    save_drive
        Also save the drive as it is after preconditioning, for [precondition] of other specs.
    """
    checked = spec.read_spec(spec_file, sets or [])
    name = spec_file.stem
    directory = out if out is not None else Path("out") / name
    with RunProgress(name, _stop, bar=not json_) as progress, _stop.gently():
        result = simulate.run(
            checked, directory, progress, verify=verify, save_drive=save_drive, force=force, name=name
        )
    stopped = bool(_stop) and not result.complete
    if json_:
        print(result.summary_text.rstrip("\n"))
    else:
        console = _out()
        console.print(f"[bold]{escape(name)}[/]  {escape(str(directory))}", soft_wrap=True)
        show_summary(result.summary, result.sim, console)
    if not result.complete:
        how = _stop if stopped else "not complete"
        _fail(
            f"{how} after {units.count(result.summary.get('requests'))} requests: {directory} holds what is finished "
            '(summary.json: "complete": false)'
        )
    return End(_stop.status if stopped else 0, f"{directory} holds the result")


# --------------------------------------------------------------------------------------------------------------- life


@app.command(
    help_epilogue=_examples(
        "nandlab life examples/life.toml",
        "nandlab life examples/life.toml --against-full      the error of what is not simulated",
        "nandlab report out/life                             latency, WAF, refresh, capacitor over years",
    )
)
def life(
    spec_file: Annotated[Path, Parameter(name="SPEC.toml")],
    /,
    *,
    sets: Sets = None,
    out: Path | None = None,
    windows: int = 24,
    requests: int = 50_000,
    full: Annotated[bool, Parameter()] = False,
    against_full: Annotated[bool, Parameter()] = False,
    json_: Json = False,
    force: Force = False,
) -> End:
    """A drive from fresh to worn out: windows of its life are simulated, what is between them is skipped.

    The workload is played again and again until the first block has reached drive.endurance. In the stretches that
    are skipped blocks wear, time passes and the capacitor ages as in the window before; the data keeps its ages, so
    give data that is never rewritten a spread of them (reliability.retention) up to the refresh interval.
    Ctrl-C, SIGTERM or SIGHUP keeps the windows that are done: life.json then says "complete": false. A second one gives
    up.
    Exit status: 0 done, 2 refused, 3 done but not printed, 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.

    Parameters
    ----------
    spec_file
        The spec. Its workload is repeated without end; reliability.clock_scale says how fast it lives.
    out
        The directory for life.json, life.parquet and report.html; out/NAME when absent.
    windows
        Windows at least; there is one more at each step of refresh.interval.
    requests
        Requests of a window. As many are played before each one, for the drive to settle.
    full
        Simulate everything, which takes long.
    against_full
        Live the life twice, skipping and in full, and say how far they are apart.
    """
    if full and against_full:
        raise OutputError("--against-full lives the life in full too: leave out --full")
    checked = spec.read_spec(spec_file, sets or [])
    name = spec_file.stem
    directory = out if out is not None else Path("out") / name
    with RunProgress(name, _stop, bar=not json_) as progress, _stop.gently():
        lived = lifetime.life(
            checked,
            directory,
            progress,
            windows=windows,
            requests=requests,
            full=full,
            against_full=against_full,
            force=force,
            name=name,
        )
        written = nandlab.report(directory)
    if json_:
        print(json.dumps(lived.facts, indent=2))
    else:
        console = _out()
        console.print(f"[bold]{escape(name)}[/]  {escape(str(directory))}", soft_wrap=True)
        show_life(lived, console)
        print(written)
    if lived.facts["problem"] is not None:
        _fail(f"{lived.facts['problem']}\n  {directory} holds the windows that were done before")
        return End(2)
    if _stop and (not lived.complete or (against_full and lived.full is None)):
        what = "life in windows" if lived.complete else "windows that are done"
        _fail(f"{_stop}: {directory} holds the {what}")
        return End(_stop.status)
    return End(kept=f"{directory} holds the life")


# -------------------------------------------------------------------------------------------------------------- study


@app.command(
    help_epilogue=_examples(
        "nandlab study garbage-collection            that of studies/",
        "nandlab study garbage-collection --smoke    the same, small",
        "nandlab study my/study.toml --workers 8",
        "nandlab study my --dask tcp://host:8786     on a Dask cluster",
    )
)
def study(
    study_file: Annotated[str, Parameter(name="NAME|FILE")],
    /,
    *,
    out: Path | None = None,
    workers: int | None = None,
    dask: str | None = None,
    traces: str = "send",
    smoke: Annotated[bool, Parameter()] = False,
    resume: Annotated[bool, Parameter()] = False,
    fresh: Annotated[bool, Parameter()] = False,
    check: Annotated[bool, Parameter()] = False,
    json_: Json = False,
) -> End:
    """Many runs of one question, their figures, and a verdict on every claim.

    Finished runs are kept in the study's folder and never repeated; a study that was stopped or killed goes on.
    Exit status: 0 done (whatever the verdicts), 2 refused, 3 done but not printed, 130 stopped by Ctrl-C, 143 by
    SIGTERM, 129 by SIGHUP.

    Parameters
    ----------
    study_file
        A study file, a folder that holds a study.toml, or the name of a folder in studies/.
    out
        The study's folder; out/NAME when absent.
    workers
        Local processes; one a processor when absent.
    dask
        Address of a Dask scheduler, such as tcp://host:8786: the runs go to its workers, which need nandlab and no
        shared disk.
    traces
        How Dask workers get trace files: send (once each), or path (they are there under the same path).
    smoke
        The small size that the study's [smoke] describes.
    resume
        Go on with the runs that are there; this is what happens anyway.
    fresh
        Do all runs again.
    check
        Only check the study file and every run's spec, and say how many runs there are.
    """
    if resume and fresh:
        raise OutputError("--resume keeps the runs that are there, --fresh does them again: name one")
    if traces not in ("send", "path"):
        raise OutputError(f"--traces {traces}: write send or path")
    if workers is not None and workers < 1:
        raise OutputError(f"--workers {workers}: at least 1")
    if workers is not None and dask is not None:
        raise OutputError("--workers are local processes, --dask has workers of its own: name one")
    from nandlab.study.progress import StudyProgress

    loaded = nandlab.Study.load(study_file, smoke=smoke)
    different = len({run.identity for run in loaded.runs})
    if check:
        print(f"{loaded.definition.path}: ok, {len(loaded.runs)} runs, {different} of them different")
        return End()
    try:
        with StudyProgress(loaded.name, bar=not json_) as progress:
            result = loaded.run(out, workers=workers, dask=dask, traces=traces, fresh=fresh, progress=progress)
    except KeyboardInterrupt:
        _fail(f"{_stop}: finished runs are kept, and the next start goes on from them")
        return End(_stop.status)
    end = End(kept=f"{result.path} holds the study")
    if json_:
        print((result.path / "claims.json").read_text(encoding="utf-8").rstrip("\n"))
        return end
    console = _out()
    console.print(f"[bold]{escape(loaded.definition.title)}[/]  {escape(str(result.path))}", soft_wrap=True)
    kept = f", {result.runs_kept} were there" if result.runs_kept else ""
    lost = f", {result.runs_lost} lost and tried again" if result.runs_lost else ""
    console.print(f"{result.runs_done} runs done{kept}{lost}")
    if result.claims:
        console.print(_claims_table(result.claims))
    print(result.report)
    return end


_VERDICT_STYLES = {"reproduced": "green", "same direction": "yellow", "not reproduced": "red"}


def _claims_table(claims: list[dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("claim")
    table.add_column("reported", justify="right")
    table.add_column("measured", justify="right")
    table.add_column("verdict", no_wrap=True)
    for claim in claims:
        style = _VERDICT_STYLES.get(claim["verdict"], "dim")
        measured = "-" if claim["measured"] is None else f"{claim['measured']:.4g}"
        reported = claim["direction"] if claim["reported"] is None else f"{claim['reported']:.4g}"
        table.add_row(escape(claim["what"]), reported, measured, f"[{style}]{claim['verdict']}[/]")
    return table


# ------------------------------------------------------------------------------------------------------------- report


@app.command(
    help_epilogue=_examples(
        "nandlab report out/demo",
    )
)
def report(*directories: Annotated[Path, Parameter(name="DIR")], out: Path | None = None) -> End:
    """One HTML file of a result directory: tables and plots; it opens without a network.

    Parameters
    ----------
    directories
        A result directory, as `nandlab run` or `nandlab life` writes it.
    out
        The file to write; DIR/report.html when absent.
    """
    if not directories:
        raise OutputError("name a result directory, such as out/demo")
    if len(directories) > 1:
        raise OutputError(
            f"a report is of one result, and {len(directories)} are named: call `nandlab report` for each\n"
            "  to see results side by side, make them the variants of a study (`nandlab study --help`)"
        )
    (directory,) = directories
    written = nandlab.report(directory, out if out is not None else directory / REPORT)
    print(written)
    return End(kept=f"{written} is written")


# -------------------------------------------------------------------------------------------------------- reliability


@app.command(
    help_epilogue=_examples(
        'nandlab reliability laldpc.toml          a file with [drive] and preset = "laldpc-32g" is enough',
        "nandlab reliability laldpc.toml --pe 8000,10000,12000 --retention 30d,365d",
        "nandlab reliability laldpc.toml --out fig5.svg",
        "nandlab reliability laldpc.toml --set reliability.rber.vth='{ per_page_kind = true }' --susceptible",
    )
)
def reliability(
    spec_file: Annotated[Path, Parameter(name="SPEC.toml")],
    /,
    *,
    sets: Sets = None,
    pe: str | None = None,
    retention: str | None = None,
    reads: int = 0,
    copybacks: int = 0,
    susceptible: Annotated[bool, Parameter()] = False,
    out: Path | None = None,
    json_: Json = False,
) -> End:
    """RBER and read level over retention and P/E cycles, and the latency of a read by level; nothing is simulated.

    Parameters
    ----------
    spec_file
        The spec: its [reliability] and [ecc]. It needs no workload.
    pe
        P/E cycles, with commas between; even steps up to drive.endurance when absent.
    retention
        Ages of the data, such as 1h,30d,365d (s, min, h, d); an hour to five years when absent.
    reads
        Reads of the block since its erase.
    copybacks
        Copybacks of the page in a row without correction.
    susceptible
        Also the share of bits that soft sensing finds susceptible.
    out
        Also write a picture (.svg, .pdf, .png), with curves from the first to the last retention, or the points (.csv).
    """
    if out is not None:
        rber.check_suffix(out)
    checked = spec.read_spec(spec_file, sets or [])
    try:
        found = nandlab.reliability(
            checked,
            None if pe is None else [_whole("--pe", entry) for entry in _listed("--pe", pe)],
            None if retention is None else _listed("--retention", retention),
            reads=reads,
            copybacks=copybacks,
        )
    except ValueError as error:
        raise OutputError(f"--{error}".replace("--pe_cycles", "--pe")) from None
    if susceptible and found.susceptible is None:
        raise OutputError(
            "--susceptible: the model has no voltages\n  remedy: set reliability.rber.vth, or leave it out"
        )
    if out is not None:
        found.save(out, susceptible=susceptible)
    end = End(kept=f"{out} is written" if out is not None else "")
    if json_:
        print(json.dumps(found.to_dict(), indent=2))
        return end
    console = _out()
    console.print(f"[bold]{escape(spec_file.stem)}[/]", soft_wrap=True)
    show_reliability(found, console, susceptible=susceptible)
    if out is not None:
        print(out)
    return end


def _listed(option: str, text: str) -> list[str]:
    """The entries of a list on the command line."""
    entries = [entry.strip() for entry in text.split(",")]
    if not all(entries):
        raise OutputError(f"{option} {text!r}: values with a comma between, such as 1,2")
    return entries


def _whole(option: str, text: str) -> int:
    if not re.fullmatch(r"[0-9_]+", text):
        raise OutputError(f"{option} {text!r}: a whole number")
    return int(text)


# -------------------------------------------------------------------------------------------------------------- trace


@trace_app.command(
    name="stat",
    help_epilogue=_examples(
        "nandlab trace stat hm_0.csv.zst",
        "nandlab trace stat --profile msr/hm_0    a look-alike, beside the published",
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
    """What is in a trace: requests, sizes, footprint, arrival, skew.

    Parameters
    ----------
    files
        Trace files; .zst, .gz and .xz are read as they are.
    profile
        A workload profile instead of a file (see `nandlab trace profiles`).
    format_
        The trace's format (see `nandlab trace formats`); by content when absent.
    device
        Which device of a trace that holds several; concatenate: all of them, one after another.
    time_unit
        Unit of the times, for formats that do not fix it: ps, ns, us, ms or s.
    max_gap
        The longest time between two records that is not questioned, such as 30d; a day when absent.
    requests
        Look at the first so many requests only.
    logical_bytes
        Size of the drive the profile is for, in bytes.
    seed
        What the profile is generated from.
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
        _show_facts(name, facts)


@trace_app.command(
    name="convert",
    help_epilogue=_examples(
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
    """Turn a trace into another format.

    Parameters
    ----------
    files
        Trace files; .zst, .gz and .xz are read as they are.
    to
        The format to write (see `nandlab trace formats`).
    out
        The file to write; with several traces, a directory. NAME.FORMAT in the current directory when absent.
    profile
        Write what this workload profile generates (see `nandlab trace profiles`).
    format_
        The trace's own format; by content when absent.
    device
        Which device of a trace that holds several; concatenate: all of them, one after another.
    time_unit
        Unit of the times, for formats that do not fix it: ps, ns, us, ms or s.
    max_gap
        The longest time between two records that is not questioned, such as 30d; a day when absent.
    requests
        Stop after so many requests.
    logical_bytes
        Size of the drive the profile is for, in bytes.
    seed
        What the profile is generated from.
    drop
        Leave out, and count, requests that the format cannot hold; without it they are an error.
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
        raise OutputError("two of these traces would be written to the same file; convert them one by one with --out")
    done = {}
    for (source, options), target in zip(sources, targets, strict=True):
        done[str(target)] = trace.convert(source, target, to=to, drop=drop, force=force, **options)
        if not json_:
            _show_facts(str(target), done[str(target)])
    if json_:
        print(json.dumps(done, indent=2))
    return End(kept=f"written: {', '.join(done)}")


@trace_app.command(name="formats", help_epilogue="")
def trace_formats(*, json_: Json = False) -> None:
    """The trace formats that can be read and written."""
    _show_pairs(trace.formats(), json_)


@trace_app.command(name="profiles", help_epilogue="")
def trace_profiles(*, json_: Json = False) -> None:
    """The workload profiles that ship with nandlab, with the published or recorded numbers they are calibrated to."""
    _show_rows(trace.profiles(), json_)


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
    """The traces that a command names, each with its options."""
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


# --------------------------------------------------------------------------------------------------------------- spec


@spec_app.command(
    name="check",
    help_epilogue=_examples(
        "nandlab spec check examples/*.toml",
    ),
)
def spec_check(
    *files: Annotated[Path, Parameter(name="SPEC.toml")],
    sets: Sets = None,
    json_: Json = False,
) -> End:
    """Validate specs; every mistake is named with its line and what would be right.

    Parameters
    ----------
    files
        The specs to check.
    """
    if not files:
        raise OutputError("name a spec to check")
    rows = []
    problems = []
    for file in files:
        try:
            checked = spec.read_spec(file, sets or [])
        except nandlab.NandlabError as error:
            problems.append(str(error))
            continue
        rows.append(
            {
                "spec": str(file),
                "hash": checked.hash,
                "logical_bytes": checked.logical_bytes,
                "raw_bytes": checked.raw_bytes,
                "page_bytes": checked.page_bytes,
            }
        )
    if json_:
        print(json.dumps(rows, indent=2))
    else:
        for row in rows:
            capacity, raw = units.size(row["logical_bytes"]), units.size(row["raw_bytes"])
            print(f"{row['spec']}: ok, {capacity} drive ({raw} raw), hash {row['hash']}")
    for i, problem in enumerate(problems):
        _fail(f"\n{problem}" if i else problem)
    return End(2 if problems else 0)


@spec_app.command(
    name="show",
    help_epilogue=_examples(
        "nandlab spec show examples/demo.toml",
        "nandlab spec show examples/demo.toml --set drive.op=0.28 > my.toml",
    ),
)
def spec_show(file: Annotated[Path, Parameter(name="SPEC.toml")], /, *, sets: Sets = None, json_: Json = False) -> None:
    """Print the resolved spec, with presets filled in and every default.

    Parameters
    ----------
    file
        The spec to resolve.
    """
    checked = spec.read_spec(file, sets or [])
    print((checked.canonical_json() if json_ else checked.to_toml()).rstrip("\n"))


@spec_app.command(
    name="fit",
    help_epilogue=_examples(
        "nandlab spec fit my.toml",
        "nandlab run my.toml $(nandlab spec fit my.toml)",
        "nandlab spec fit my.toml --times 10",
    ),
)
def spec_fit(
    file: Annotated[Path, Parameter(name="SPEC.toml")],
    /,
    *,
    sets: Sets = None,
    times: float = 5.0,
    json_: Json = False,
) -> None:
    """Print the --set options that scale the drive to its workload.

    Fewer blocks a plane, and the over-provisioning that they need for the same write amplification.
    Then the workload writes the spare space several times over, and GC matters. The sizes of caches stay.

    Parameters
    ----------
    file
        The spec. Its workload is read to the end.
    times
        How many times the spare space is to be written.
    """
    if not times > 0:
        raise OutputError(f"--times {times:g}: more than 0")
    checked = spec.read_spec(file, sets or [])
    fitted = spec.fit(checked, times)
    if json_:
        print(json.dumps(fitted._asdict(), indent=2))
        return
    written = f"{units.count(fitted.requests)} requests write {units.size(fitted.written_bytes)}"
    per = units.number(fitted.written_bytes / fitted.spare_bytes)
    what = "the spare space of the drive as it is" if not fitted.sets else "the spare space of the scaled drive"
    print(f"{written}, {per} times {what} ({units.size(fitted.spare_bytes)})", file=sys.stderr)
    if fitted.sets:
        print(" ".join(f"--set {key}={value}" for key, value in fitted.sets.items()))


@spec_app.command(name="schema", help_epilogue=_examples("nandlab spec schema > nandlab.schema.json"))
def spec_schema() -> None:
    """Print the JSON Schema of a spec, for editors."""
    print(spec.schema().rstrip("\n"))


@spec_app.command(name="presets", help_epilogue="")
def spec_presets(*, json_: Json = False) -> None:
    """The drives that ship with nandlab, for `[drive] preset = "NAME"`."""
    _show_pairs(spec.presets(), json_)


@spec_app.command(name="policies", help_epilogue="")
def spec_policies(*, json_: Json = False) -> None:
    """The policies that a spec can name, by slot."""
    _show_rows([dict(row) for row in spec.policies()], json_)


# ------------------------------------------------------------------------------------------------------------- output


def _show_pairs(pairs: list[tuple[str, str]], as_json: bool) -> None:
    if as_json:
        print(json.dumps([{"name": name, "description": text} for name, text in pairs], indent=2))
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, text in pairs:
        table.add_row(escape(name), escape(text))
    _out().print(table)


def _show_rows(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    plain = [{key: value for key, value in row.items() if not isinstance(value, (dict, list))} for row in rows]
    keys = list(dict.fromkeys(key for row in plain for key in row))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for key in keys:
        numeric = all(isinstance(row.get(key), (int, float)) or row.get(key) is None for row in plain)
        table.add_column(key, justify="right" if numeric else "left", no_wrap=numeric or key in ("name", "slot"))
    for row in plain:
        table.add_row(*(escape(_text(row.get(key))) for key in keys))
    _out().print(table)


#: Entries of a list that a table shows; `--json` has them all.
_LISTED_MAX = 32


def _show_facts(name: str, facts: dict[str, Any]) -> None:
    """A nested dictionary as an indented list of names and numbers; a list of rows as a table."""
    console = _out()
    console.print(f"[bold]{escape(name)}[/]", soft_wrap=True)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column()
    nested: list[tuple[str, list[dict[str, Any]]]] = []

    def add(prefix: str, entries: dict[str, Any]) -> None:
        for key, value in entries.items():
            if isinstance(value, dict):
                add(f"{prefix}{key}.", value)
            elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
                nested.append((prefix + key, value))
            elif isinstance(value, list):
                few = [_text(entry) for entry in value[:_LISTED_MAX]] + ["..."] * (len(value) > _LISTED_MAX)
                table.add_row(escape(prefix + key), escape(", ".join(few)) or "-")
            else:
                table.add_row(escape(prefix + key), escape(_text(value)))

    add("", facts)
    console.print(table)
    for title, rows in nested:
        console.print(f"[dim]{escape(title)}[/]")
        _show_rows(rows, False)


def _text(value: object) -> str:
    if isinstance(value, (int, float)) or value is None:
        return units.number(value)
    return str(value)


# --------------------------------------------------------------------------------------------------------------- main

_BUG = (
    "This is a bug in nandlab, not in your input. Please report it where nandlab is developed (CONTRIBUTING.md,\n"
    '"Reporting a bug"), with the text above, the command and the spec. No result was written.'
)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command and leave with its exit status."""
    with standard_streams() as out, _stop:
        end = _run(sys.argv[1:] if arguments is None else arguments)
        status = end.status
        if out.error is not None:
            has_reader = not isinstance(out.error, BrokenPipeError)
            if has_reader or end.kept:
                _fail(f"cannot write to stdout: {out.error.strerror}" + (f"; {end.kept}" if end.kept else ""))
            status = status or (3 if has_reader else 141)
        if _stop:
            # The core may still be at work on its thread, or a reader not read: wait for neither.
            sys.stderr.flush()
            os._exit(status)
    sys.exit(status)


def _run(arguments: list[str]) -> End:
    try:
        end = _do(arguments)
        sys.stdout.flush()
        return end
    except KeyboardInterrupt:
        _fail(f"{_stop}: what was not finished is not kept")
        return End(_stop.status)


def _do(arguments: list[str]) -> End:
    try:
        end = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        return end if isinstance(end, End) else End()
    except CycloptsError as error:
        command = " ".join(["nandlab", *(error.command_chain or ())])
        _fail(f"{error}\n  remedy: see `{command} --help`")
        return End(2)
    except nandlab.NandlabError as error:
        _fail(_as_options(str(error)) if arguments[:1] == ["trace"] else str(error))
        return End(2)
    except lifetime.LifeStopped:
        _fail(f"{_stop} before the first window was done: nothing was written")
        return End(_stop.status)
    except simulate.Stopped:
        _fail(f"{_stop} before the first request: nothing was written")
        return End(_stop.status)
    except OSError as error:
        _fail(os_error_text("go on with" if error.filename else "go on", error.filename, error))
        return End(2)
    except UnicodeEncodeError as error:
        # Only names of files and arguments have what is no text.
        _fail(f"{error.object!r}: not UTF-8 text\n  remedy: choose another name")
        return End(2)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException:
        # A panic in the core is no `Exception`.
        traceback.print_exc()
        _fail("\n" + _BUG)
        return End(1)


def _as_options(text: str) -> str:
    """A trace's error speaks of the spec's keys; `nandlab trace` has options for them."""
    text = text.replace(" = true", "").replace("the path of workload.trace", "the path")
    text = re.sub(r'(workload\.(?:device|max_gap)) = "(.*?)"', r"\1 \2", text)
    return re.sub(
        r"workload\.(format|device|lenient|time_unit|max_gap)", lambda key: "--" + key[1].replace("_", "-"), text
    )


def _fail(text: str) -> None:
    print(on_a_screen(text), file=sys.stderr, flush=True)
