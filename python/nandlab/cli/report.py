"""`nandlab report`."""

from __future__ import annotations

import argparse
from pathlib import Path

import nandlab
from nandlab.cli.app import End, Parser
from nandlab.cli.output import say
from nandlab.errors import OutputError


def add(parser: Parser) -> None:
    """Declare the arguments."""
    parser.define(report, examples="nandlab report out/demo")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="DIR",
        help="A result directory that `nandlab run` or `nandlab life` has written.",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="The file to write; DIR/report.html when absent.")


def report(options: argparse.Namespace) -> End:
    """Run the command."""
    from nandlab.results import REPORT

    if not options.names:
        raise OutputError("name a result directory, such as out/demo")
    if len(options.names) > 1:
        raise OutputError(
            f"expected one result directory, found {len(options.names)}\n  remedy: call `nandlab report` for each, or "
            "compare them with `nandlab compare`"
        )
    directory = Path(options.names[0])
    written = nandlab.report(directory, options.out or directory / REPORT)
    say(written)
    return End(kept=f"{written} is written")
