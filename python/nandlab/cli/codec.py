"""`nandlab codec`."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from nandlab.cli.app import End, Parser, stop
from nandlab.cli.output import check_workers, fail, make_console, say_data, say_page, show_title
from nandlab.errors import OutputError

if TYPE_CHECKING:
    from nandlab.console import Console
    from nandlab.ldpc import CodecResult


def add(parser: Parser) -> None:
    """Declare the arguments."""
    parser.define(
        codec,
        "CODE is the rate of a code that comes with nandlab (8/9, 16/17), or a file (.alist, .qc). Frames are sent "
        "over a boundary of two Gaussian distributions, at RBERs around the one at which 1 % of them fail.",
        "Frames are kept in the folder of the code and not sent again; a stopped measurement continues.",
        examples="""
nandlab codec 8/9
nandlab codec 16/17 --references 1,2,3,4,5,6,7 --frames 10000
nandlab codec mine.alist --references 1,3 --placement mmi
""",
    )
    parser.add_argument("code", metavar="CODE", help="A rate, or a file with a parity-check matrix.")
    parser.add_argument("--size", metavar="SIZE", help="Data of a codeword: 4KiB when absent, or 2KiB; not for a file.")
    parser.add_argument(
        "--references",
        default="1,3,7",
        metavar="LIST",
        help="Numbers of read references, from 1 to 7; 1,3,7 when absent.",
    )
    parser.add_argument(
        "--placement",
        choices=["equidistant", "mmi"],
        default="equidistant",
        help="Equidistant references, or those with the most information.",
    )
    parser.add_argument(
        "--spacing",
        type=float,
        metavar="SIGMA",
        help="Distance of equidistant references, in standard deviations; 0.25 when absent.",
    )
    parser.add_argument("--frames", type=int, default=2000, metavar="N", help="Frames at each point; 2000 when absent.")
    parser.add_argument(
        "--iterations", type=int, default=30, metavar="N", help="Most iterations of the decoder; 30 when absent."
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="Seed of the frames; 1 when absent.")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="The folder for frames and results; out/CODE-codec when absent."
    )
    parser.add_argument("--workers", type=int, metavar="N", help="Threads; one per processor when absent.")
    parser.add_json()


def codec(options: argparse.Namespace) -> End:
    """Run the command."""
    import nandlab
    from nandlab.ldpc.measure import PAGE, RESULT
    from nandlab.progress import CountProgress

    check_workers(options.workers, None)
    if options.placement == "mmi" and options.spacing is not None:
        raise OutputError("--spacing has no effect with --placement mmi\n  remedy: leave one of them out")
    if options.size is not None and options.code.endswith((".alist", ".qc")):
        raise OutputError(f"--size has no effect with the file {options.code}\n  remedy: leave it out")
    spacing = None if options.placement == "mmi" else options.spacing if options.spacing is not None else 0.25
    try:
        with CountProgress("codec", stop, bar=not options.json) as shown:
            result = nandlab.codec(
                options.code,
                size=_size(options.size or "4KiB"),
                references=_listed(options.references),
                spacing=spacing,
                frames=options.frames,
                iterations=options.iterations,
                seed=options.seed,
                out=options.out,
                workers=options.workers,
                progress=lambda done, total: shown(done, total, f"{done:,} of {total:,} parts of this step"),
            )
    except KeyboardInterrupt:
        fail(f"{stop}: the frames sent so far are kept, and the next start continues with the others")
        return End(stop.status)
    if options.json:
        say_data((result.path / RESULT).read_text(encoding="utf-8"))
    else:
        _show(result, make_console())
        say_page(result.path / PAGE)
    return End(kept=f"the measurement is in {result.path}")


def _size(text: str) -> int:
    found = re.fullmatch(r"([1-9][0-9]{0,5})KiB", text)
    if not found:
        raise OutputError(f"--size {text!r}: expected a size such as 4KiB")
    return int(found[1]) * 1024


def _listed(text: str) -> list[int]:
    if not re.fullmatch(r"[0-9]{1,3}(,[0-9]{1,3})*", text):
        raise OutputError(f"--references {text!r}: expected numbers from 1 to 7 separated by commas, such as 1,3,7")
    return [int(entry) for entry in text.split(",")]


def _show(result: CodecResult, console: Console) -> None:
    from nandlab.console import Table

    show_title(console, result.name, str(result.path))
    kept = f", {result.parts_kept} kept" if result.parts_kept else ""
    console.print(f"{result.bits} bits, {result.data_bits} of them data; {result.parts_done} parts sent{kept}")
    table = Table()
    for head in ("references", "boundary RBER", "mutual information", "iterations at 0.8 of it"):
        table.add_column(head, justify="right")
    for curve in result.curves:
        near = min(curve.points, key=lambda point, of=curve.boundary: abs(point.rber / of - 0.8))  # type: ignore[misc]
        table.add_row(
            str(curve.references), f"{curve.boundary:.5f}", f"{1 - curve.unknown:.4f}", f"{near.iterations[0]:.2f}"
        )
    console.print(table)
    if result.mixture is not None:
        console.print(f"hard decisions: measured down to a frame error rate of {result.mixture.rate_min:.1e}")
