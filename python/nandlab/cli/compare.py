"""`nandlab compare`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import nandlab
from nandlab.cli.app import End, Parser, stop
from nandlab.cli.output import fail, load_policies, make_console, say, say_data, say_page

#: Wall time in seconds after which progress is reported where there is no bar.
_LINE_AFTER_S = 2.0


def add(parser: Parser) -> None:
    """Declare the arguments."""
    parser.define(
        compare,
        "The first is the baseline. Result directories of `nandlab run` are compared as they are, specs are run. "
        "KEY=VALUE stands for the first spec with this key overridden; a comma separates several keys. With --seeds, "
        "--set or --one-at-a-time, the specs of result directories are run anew.",
        "Ctrl-C, SIGTERM or SIGHUP stops the comparison; finished runs are kept.",
        "Exit status: see `nandlab --help`; the differences do not change it.",
        examples="""
nandlab compare out/greedy out/fifo                   two finished runs
nandlab compare SPEC.toml gc.victim=fifo --seeds 10   ratios with intervals
nandlab compare a.toml b.toml --one-at-a-time         which keys matter
nandlab compare SPEC.toml gc.victim=fifo gc.victim=cost-benefit,drive.op=0.1
nandlab compare out/greedy out/fifo --json | jq .settings
""",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="DIR|SPEC.toml|KEY=VALUE",
        help="Result directories, specs, or overrides of the first spec.",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help="Run each spec with so many seeds: that of the first spec, and the following ones. The runs are paired "
        "by seed.",
    )
    parser.add_sets("every spec", bare=False)
    parser.add_policies()
    parser.add_argument(
        "--one-at-a-time",
        action="store_true",
        help="Also change each key that differs alone, to find the keys without effect: two runs per key and seed.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="The directory in which the runs, compare.json and the page compare.html are kept; when absent, "
        "out/compare if a spec is to be run. Finished runs in it are not repeated.",
    )
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="The most runs under way at a time; one per processor when absent.",
    )
    parser.add_json()


def compare(options: argparse.Namespace) -> End:
    """Run the command."""
    from nandlab.comparison.inputs import RESULT
    from nandlab.reporting.extra import missing
    from nandlab.study.progress import StudyProgress

    load_policies(options)
    is_new = bool(options.sets) or options.seeds is not None or options.one_at_a_time
    is_run = is_new or not all(map(os.path.isdir, options.names))
    folder = Path("out/compare") if options.out is None and is_run else options.out
    try:
        with StudyProgress("compare", stop, bar=not options.json, line_after_s=_LINE_AFTER_S) as progress:
            found = nandlab.compare(
                *options.names,
                seeds=options.seeds,
                sets=options.sets,
                one_at_a_time=options.one_at_a_time,
                out=folder,
                workers=options.workers,
                progress=progress,
            )
    except KeyboardInterrupt:
        kept = f": finished runs are kept in {folder}, and the next start continues with the others"
        fail(f"{stop}{'' if folder is None else kept}")
        return End(stop.status)
    absent = missing()
    page = None if found.path is None or absent else nandlab.report(found)
    if options.json:
        say_data(found.text)
    else:
        from nandlab.screen import show_comparison

        show_comparison(found, make_console())
        if found.path is not None:
            say(found.path / RESULT)
            say_page(page)
    return End(kept="" if found.path is None else f"the comparison is in {found.path}")
