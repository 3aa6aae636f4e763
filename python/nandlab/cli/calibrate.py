"""`nandlab calibrate`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import nandlab
from nandlab.cli.app import End, Parser, stop
from nandlab.cli.output import check_workers, fail, make_console, say_data, say_page, show_title
from nandlab.presentation.model import counted

if TYPE_CHECKING:
    from nandlab.calibration import Calibration
    from nandlab.console import Console


def add(parser: Parser) -> None:
    """Declare the arguments."""
    parser.define(
        calibrate,
        "MEASURED is a CSV file with a row for each load (rate or queue_depth, read_fraction, size, keys of the spec; "
        "iops, read_p50_us, write_p99_us, waf and so on), or a result of fio in JSON (json, or json+ with its bins). "
        "Without --fit the predictions of the spec are compared with the measurement.",
        "Finished runs are kept in the folder of the calibration and not repeated; a stopped calibration continues.",
        "Exit status: see `nandlab --help`; the errors of the predictions do not change it.",
        examples="""
nandlab calibrate SPEC.toml drive.csv
nandlab calibrate SPEC.toml drive.csv --fit timing.program=500us..3ms --hold-out even
nandlab calibrate SPEC.toml fio.json --fio job.fio --duration 2s
""",
    )
    parser.add_argument("spec", type=Path, metavar="SPEC.toml", help="The spec whose keys are fitted.")
    parser.add_argument("names", nargs="*", metavar="MEASURED", help="CSV files, or results of fio in JSON.")
    parser.add_argument(
        "--fit",
        action="append",
        default=[],
        metavar="KEY=LOW..HIGH",
        help="Fit this key between the bounds; may be repeated.",
    )
    parser.add_argument(
        "--hold-out",
        metavar="ROWS",
        help="Rows that are predicted and not fitted: numbers and ranges over all files, odd, even, such as 2,5-7.",
    )
    parser.add_sets()
    parser.add_argument(
        "--fio",
        type=Path,
        metavar="JOB",
        help="The fio job file that made the measurement; its jobs are the clients in place of those of the spec.",
    )
    parser.add_argument(
        "--duration", metavar="TIME", help="Simulated time of each load, such as 2s, in place of that of the clients."
    )
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="Seeds of each prediction; 1 when absent.")
    parser.add_argument(
        "--model-error",
        type=float,
        default=0.003,
        metavar="SHARE",
        help="The relative error, besides noise, that the model is taken to have: agreement below it is not looked "
        "for. 0.003 when absent; a larger share, such as 0.05, for a drive whose mechanisms are not all modelled.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="Try about a third of the candidates: a first look at a large drive."
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="The folder for runs and results; out/SPEC-calibrated when absent.",
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="Local worker processes; one per processor when absent."
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="Address of a Dask scheduler, such as tcp://host:8786, whose workers do the runs.",
    )
    parser.add_json()


def calibrate(options: argparse.Namespace) -> End:
    """Run the command."""
    workers, dask = options.workers, options.dask
    check_workers(workers, dask)
    from nandlab.calibration.result import PAGE, RESULT
    from nandlab.study.progress import StudyProgress

    try:
        with StudyProgress("calibrate", stop, bar=not options.json) as progress:
            result = nandlab.calibrate(
                options.spec,
                *options.names,
                fit=options.fit,
                hold_out=options.hold_out,
                sets=options.sets,
                fio=options.fio,
                duration=options.duration,
                seeds=options.seeds,
                model_error=options.model_error,
                quick=options.quick,
                out=options.out,
                workers=workers,
                dask=dask,
                progress=progress,
            )
    except KeyboardInterrupt:
        fail(f"{stop}: finished runs are kept, and the next start continues with the others")
        return End(stop.status)
    if options.json:
        say_data((result.path / RESULT).read_text(encoding="utf-8"))
    else:
        _show(result, make_console())
        say_page(result.path / PAGE)
    return End(kept=f"the calibration is in {result.path}")


def _show(result: Calibration, console: Console) -> None:
    from nandlab.calibration.result import summary_of
    from nandlab.console import Table, escape

    show_title(console, result.name, str(result.path))
    kept = f", {result.runs_kept} kept" if result.runs_kept else ""
    console.print(f"{counted(result.runs_done, 'run')} done{kept}; {counted(result.candidates, 'candidate')}")
    if result.keys:
        table = Table()
        for head in ("key", "fitted", "95 % interval", "determined"):
            table.add_column(head, justify="left" if head == "key" else "right")
        for one in result.keys:
            interval = f"{one.key.shown(one.profile.low)} to {one.key.shown(one.profile.high)}"
            open_end = {"below": "open below", "above": "open above"}.get(one.determined, one.determined)
            table.add_row(escape(one.key.name), one.key.shown(one.value), interval, open_end)
        console.print(table)
    for first, second, by in result.pairs:
        console.print(escape(f"not told apart: {first} and {second} (correlation {by:.2f})"), soft_wrap=True)
    table = Table()
    for head in ("error", result.fit_label, "median", "largest", "held out", "median", "largest"):
        table.add_column(head, justify="left" if head == "error" else "right")
    fitted, held = summary_of(result.fitted), summary_of(result.held_out)
    for name in dict.fromkeys([*fitted, *held]):
        cells = []
        for found in (fitted.get(name), held.get(name)):
            cells += ["", "", ""] if found is None else [str(found[0]), *(f"{100 * part:.1f} %" for part in found[1:])]
        table.add_row(escape(name), *cells)
    console.print(table)
    for value in result.values:
        if value.unreached:
            console.print(
                escape(
                    f"not reached: {value.name} of row {value.row.number} ({value.row.name}): "
                    f"measured {value.measured:.4g}, predicted {value.predicted:.4g}"
                ),
                soft_wrap=True,
            )
    for key in result.keys:
        if key.at_bound:
            console.print(
                escape(f"at a bound of its range: {key.key.name} = {key.key.shown(key.value)}"), soft_wrap=True
            )
    for note in result.notes:
        console.print(escape(note), soft_wrap=True)
