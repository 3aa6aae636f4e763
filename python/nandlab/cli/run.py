"""`nandlab run`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from nandlab import units
from nandlab.cli.app import End, Parser, stop
from nandlab.cli.output import fail, load_policies, make_console, say_data, show_reading, show_title, warn_of_others
from nandlab.errors import OutputError
from nandlab.spec import cost_of_pts, read_spec

if TYPE_CHECKING:
    from nandlab.console import Console
    from nandlab.progress import RunProgress
    from nandlab.results import RunResult


def add(parser: Parser) -> None:
    """Declare the arguments."""
    parser.define(
        run,
        "The result directory appears under its name only when all its files are written.",
        "After the first request, Ctrl-C, SIGTERM or SIGHUP ends the run and keeps the result so far; summary.json "
        'then has "complete": false. A second signal discards the result.',
        "In place of a spec the command takes the recording of a live drive (`nandlab serve --record`), and plays that "
        "session again: the results have the bytes of the session's own, whatever its speed was.",
        "Exit status: see `nandlab --help`.",
        examples="""
nandlab run examples/demo.toml
nandlab run examples/demo.toml drive.op=0.28 --out out/op28
nandlab run examples/demo.toml --fio job.fio
nandlab run examples/demo.toml --json | jq .waf
nandlab run session.rec
nandlab run session.rec --explain 20 && nandlab report out/session    # why were its slowest requests slow?
""",
    )
    parser.add_argument(
        "spec",
        type=Path,
        metavar="SPEC.toml",
        help="The spec, or a recording. A relative path in the spec starts at the directory of the spec.",
    )
    parser.add_sets()
    parser.add_policies()
    parser.add_argument(
        "--fio",
        type=Path,
        metavar="JOB",
        help="Play the jobs of this fio job file, each as a client (workload.clients), in place of the workload of the "
        "spec.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="The result directory; out/my for the spec my.toml when absent. An earlier result is replaced.",
    )
    parser.add_argument(
        "--explain",
        type=int,
        metavar="N",
        help="Also write what the requests waited for, and the N slowest step by step (explained.json); `nandlab "
        "report` shows it. The same as --set output.explain=N, for recordings too.",
    )
    parser.add_json()
    parser.add_argument(
        "--verify",
        action="store_true",
        help="Check every read against a reference model of the drive, which is slower.",
    )
    parser.add_argument(
        "--save-drive",
        type=Path,
        metavar="FILE",
        help="Also save a snapshot of the preconditioned drive in this file, for precondition.load of other specs.",
    )
    parser.add_force()


def run(options: argparse.Namespace) -> End:
    """Run the command."""
    from nandlab import simulate

    if simulate.is_recording(options.spec):
        return _replay(options)
    if options.explain is not None:
        options.sets = [*options.sets, f"output.explain={options.explain}"]
    load_policies(options)
    if options.fio is None:
        checked = read_spec(options.spec, options.sets)
    else:
        from nandlab.fio import read_spec_with

        checked, jobs = read_spec_with(options.spec, options.sets, options.fio)
        for note in jobs.notes():
            fail(f"fio: {note}")
    if checked.policies:
        cost = cost_of_pts(checked)
        if cost is not None:
            fail(f"note: {cost}")
    name = options.spec.stem

    def play(directory: Path, progress: RunProgress) -> RunResult:
        return simulate.run(
            checked,
            directory,
            progress,
            verify=options.verify,
            save_drive=options.save_drive,
            force=options.force,
            name=name,
        )

    def reading(console: Console) -> None:
        found = checked.trace_reading()
        if found is not None:
            read_as = json.loads(found)
            show_reading(console, read_as)
            warn_of_others(read_as, "workload.format")

    return _played(options, play, reading)


def _played(
    options: argparse.Namespace,
    play: Callable[[Path, RunProgress], RunResult],
    reading: Callable[[Console], None] | None = None,
) -> End:
    """Show the progress and the result of what `play` simulates; `reading` shows how its trace is understood."""
    from nandlab import simulate
    from nandlab.progress import RunProgress

    name = options.spec.stem
    directory = options.out or Path("out") / name
    try:
        with RunProgress(name, stop, bar=not options.json) as progress, stop.deferred():
            result = play(directory, progress)
    except simulate.Stopped:
        when = "in the warm-up" if progress.has_begun else "before the first request"
        fail(f"{stop} {when}: there is no result")
        return End(stop.status)
    stopped = bool(stop) and not result.complete
    if options.json:
        say_data(result.summary_text)
    else:
        from nandlab.screen import show_run

        console = make_console()
        show_title(console, name, str(directory))
        if reading is not None:
            reading(console)
        show_run(result, console)
    if result.sim.dropped_bytes:
        fail(
            f"note: {options.spec} ends within a record: its last {units.count(result.sim.dropped_bytes)} bytes were "
            "dropped (sim.json: dropped_bytes)"
        )
    if not result.complete:
        if simulate.is_recording(options.spec) and not stopped:
            fail(
                "the recording has no end of the session: its server was killed; the result is that up to its last "
                "record"
            )
        how = stop if stopped else "not complete"
        fail(
            f"{how} after {units.count(result.summary.requests)} requests: {directory} has the result so far "
            '(summary.json: "complete": false)'
        )
    return End(stop.status if stopped else 0, f"the result is in {directory}")


#: Options of a run that a recording cannot have, with what they would change.
_NOT_OF_RECORDINGS = {"sets": "--set", "policies": "--policy", "fio": "--fio", "save_drive": "--save-drive"}


def _replay(options: argparse.Namespace) -> End:
    """Play the session of a live drive again."""
    from nandlab import simulate

    for key, option in _NOT_OF_RECORDINGS.items():
        if getattr(options, key):
            raise OutputError(
                f"{option}: {options.spec} is a recording, and is played as the session was\n  remedy: leave it out; "
                "for another drive the requests of a recording are a trace: workload.trace of a spec names the file"
            )

    def play(directory: Path, progress: RunProgress) -> RunResult:
        return simulate.replay(
            options.spec,
            directory,
            progress,
            verify=options.verify,
            force=options.force,
            name=options.spec.stem,
            explain=options.explain,
        )

    return _played(options, play)
