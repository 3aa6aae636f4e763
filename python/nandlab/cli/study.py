"""`nandlab study`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nandlab
from nandlab.cli.app import End, Parser, stop
from nandlab.cli.output import check_workers, fail, load_policies, make_console, say, say_data, show_title
from nandlab.errors import OutputError

if TYPE_CHECKING:
    from nandlab.console import Table


def add(parser: Parser) -> None:
    """Declare the arguments."""
    parser.define(
        study,
        "Finished runs are kept in the study's folder and not repeated; a stopped or killed study continues with the "
        "others.",
        "Exit status: see `nandlab --help`; the verdicts do not change it.",
        examples="""
nandlab study garbage-collection            a study that comes with nandlab
nandlab study garbage-collection --quick    one seed
nandlab study garbage-collection --smoke    the smoke size
nandlab study my/study.toml --workers 8
nandlab study my --dask tcp://host:8786     on a Dask cluster
""",
    )
    parser.add_argument(
        "name",
        metavar="NAME|FILE",
        help="A study file, a folder with a study.toml, or a name: of a folder in studies/, or of `nandlab examples`.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="The folder for runs and results; when absent, out/ with the name of the study.",
    )
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="Local worker processes; one per processor when absent.",
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="Address of a Dask scheduler, such as tcp://host:8786, whose workers do the runs. The workers need the "
        "same build of nandlab, and no shared disk.",
    )
    parser.add_argument(
        "--traces",
        choices=["send", "path"],
        default="send",
        help="How Dask workers get traces and other input files: send (the files are sent to the workers), or path "
        "(each worker reads them at the same paths).",
    )
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="Run the smoke size, which [smoke] of the study describes.",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help="Number of replicates, each with its own seed; when absent, the number in the study file. A part with "
        "fewer replicates of its own keeps its number.",
    )
    parser.add_policies()
    parser.add_argument("--quick", action="store_true", help="One seed: --seeds 1.")
    parser.add_argument("--resume", action="store_true", help="Keep finished runs; this is the default.")
    parser.add_argument("--fresh", action="store_true", help="Do all runs again.")
    parser.add_argument(
        "--check",
        action="store_true",
        help="Only check the study file and the spec of each run, and print the number of runs.",
    )
    parser.add_json()


def study(options: argparse.Namespace) -> End:
    """Run the command."""
    workers, dask, seeds, quick = options.workers, options.dask, options.seeds, options.quick
    if options.resume and options.fresh:
        raise OutputError("--resume keeps finished runs, and --fresh repeats them\n  remedy: leave out one")
    check_workers(workers, dask)
    from nandlab.study.file import MAX_REPLICATES

    if seeds is not None and not 1 <= seeds <= MAX_REPLICATES:
        raise OutputError(f"--seeds: expected 1 to {MAX_REPLICATES}, found {seeds}")
    if quick and seeds not in (None, 1):
        raise OutputError(f"--quick runs one seed, and --seeds is {seeds}\n  remedy: leave out one")
    from nandlab.study.progress import StudyProgress

    load_policies(options)
    loaded = nandlab.Study.load(options.name, smoke=options.smoke, seeds=1 if quick else seeds)
    different = len({run.identity for run in loaded.runs})
    if options.check:
        say(f"{loaded.definition.path}: ok, {len(loaded.runs)} runs, {different} of them distinct")
        return End()
    try:
        with StudyProgress(loaded.name, stop, bar=not options.json) as progress:
            result = loaded.run(
                options.out,
                workers=workers,
                dask=dask,
                traces=options.traces,
                fresh=options.fresh,
                progress=progress,
            )
    except KeyboardInterrupt:
        fail(f"{stop}: finished runs are kept, and the next start continues with the others")
        return End(stop.status)
    end = End(kept=f"the study is in {result.path}")
    if options.json:
        say_data((result.path / "claims.json").read_text(encoding="utf-8"))
        return end
    from nandlab.screen import show_study_notes

    console = make_console()
    show_title(console, loaded.definition.title, str(result.path))
    kept = f", {result.runs_kept} kept" if result.runs_kept else ""
    lost = f", {result.runs_lost} lost and repeated" if result.runs_lost else ""
    errors = len({run for note in result.notes if note["severity"] == "error" for run in note["runs"]})
    bad = f", [bold red]{errors} with errors[/]" if errors else ""
    console.print(f"{result.runs_done} runs done{kept}{lost}{bad}")
    show_study_notes(result.notes, console)
    if result.claims:
        console.print(_claims_table(result.claims))
    say(result.report)
    return end


_VERDICT_STYLES = {
    "reproduced": "green",
    "reproduced at a setting": "cyan",
    "fitted": "cyan",
    "inferred": "cyan",
    "undecided": "yellow",
    "same direction": "yellow",
    "not reproduced": "red",
}


def _reported(claim: dict[str, Any]) -> str:
    """What the source reports: a number, a direction or a slope."""
    if claim["reported"] is not None:
        return f"{claim['reported']:.4g}"
    kind = claim.get("kind")
    if kind == "most":
        return f"{claim['direction']}, most"
    return str(claim["direction"] if kind is None else claim["slope"])


def _claims_table(claims: list[dict[str, Any]]) -> Table:
    from nandlab.console import Table, escape

    table = Table()
    table.add_column("claim")
    table.add_column("reported", justify="right")
    table.add_column("measured", justify="right")
    table.add_column("verdict", no_wrap=True)
    for claim in claims:
        style = _VERDICT_STYLES.get(claim["verdict"], "dim")
        measured = "-" if claim["measured"] is None else f"{claim['measured']:.4g}"
        if claim["interval"] is not None:
            low, high = claim["interval"]
            measured += f" [{low:.4g}, {high:.4g}]"
        reported = _reported(claim)
        if claim["reported"] is not None and claim["tolerance"] is not None:
            reported += f" \u00b1 {claim['tolerance']:.2g}"
        what = f"[bold]{escape(claim['what'])}[/]" if claim["headline"] else escape(claim["what"])
        table.add_row(what, reported, measured, f"[{style}]{claim['verdict']}[/]")
    return table
