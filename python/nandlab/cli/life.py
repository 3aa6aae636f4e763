"""`nandlab life`."""

from __future__ import annotations

import argparse
from pathlib import Path

from nandlab.cli.app import End, Parser, stop
from nandlab.cli.output import fail, load_policies, make_console, say, say_data, show_title
from nandlab.errors import OutputError
from nandlab.spec import read_spec


def add(parser: Parser) -> None:
    """Declare the arguments."""
    parser.define(
        life,
        "The workload is repeated until the first block has reached drive.endurance. In the skipped time blocks wear, "
        "time passes and the capacitor ages as in the window before. Data does not age in the skipped time: for data "
        "that is never rewritten, set reliability.retention to ages up to the refresh interval.",
        "Ctrl-C, SIGTERM or SIGHUP ends the life and keeps the finished windows; life.json then has "
        '"complete": false. A second signal discards them.',
        "Exit status: see `nandlab --help`.",
        examples="""
nandlab life examples/life.toml
nandlab life examples/life.toml --against-full      the error of the fast-forward
nandlab report out/life                             latency, WAF, refresh, capacitor over years
""",
    )
    parser.add_argument(
        "spec",
        type=Path,
        metavar="SPEC.toml",
        help="The spec. Its workload is repeated without end; reliability.clock_scale sets the speed of ageing.",
    )
    parser.add_sets()
    parser.add_policies()
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="The directory for life.json, life.parquet and report.html; out/my for the spec my.toml when absent.",
    )
    parser.add_argument(
        "--windows",
        type=int,
        default=24,
        metavar="N",
        help="Number of windows up to drive.endurance; each step of refresh.interval adds one. A life that ends "
        "earlier has fewer.",
    )
    parser.add_argument(
        "--requests",
        type=int,
        default=50_000,
        metavar="N",
        help="Measured requests of a window. The same number of requests before each window lets the drive settle.",
    )
    parser.add_argument("--full", action="store_true", help="Simulate everything, which takes long.")
    parser.add_argument(
        "--against-full",
        action="store_true",
        help="Simulate the life twice, with skipped time and in full, and report the differences.",
    )
    parser.add_json()
    parser.add_force()


def life(options: argparse.Namespace) -> End:
    """Run the command."""
    from nandlab import lifetime, pages
    from nandlab.progress import RunProgress
    from nandlab.reporting.extra import need_figures

    if options.full and options.against_full:
        raise OutputError("--against-full includes the full simulation of --full\n  remedy: leave out --full")
    # A life can take hours; its report must not fail at the end.
    need_figures("a life needs its report")
    load_policies(options)
    checked = read_spec(options.spec, options.sets)
    name = options.spec.stem
    directory = options.out or Path("out") / name
    try:
        with RunProgress(name, stop, bar=not options.json) as progress, stop.deferred():
            lived = lifetime.life(
                checked,
                directory,
                progress,
                windows=options.windows,
                requests=options.requests,
                full=options.full,
                against_full=options.against_full,
                force=options.force,
                name=name,
            )
            written = pages.report(directory)
    except lifetime.LifeStopped:
        fail(f"{stop} before the end of the first window: there is no result")
        return End(stop.status)
    if options.json:
        say_data(lived.facts_text)
    else:
        from nandlab.screen import show_life

        console = make_console()
        show_title(console, name, str(directory))
        show_life(lived, console)
        say(written)
    if lived.facts.problem is not None:
        fail(f"{lived.facts.problem}\n  {directory} has the windows finished before")
        return End(2)
    if stop and (not lived.complete or (options.against_full and lived.full is None)):
        what = "the life without the full simulation" if lived.complete else "the finished windows"
        fail(f"{stop}: {directory} has {what}")
        return End(stop.status)
    return End(kept=f"the life is in {directory}")
