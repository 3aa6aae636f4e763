"""`nandlab examples`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from nandlab.cli.app import End, Parser
from nandlab.cli.output import say, show_rows
from nandlab.errors import OutputError


def add(parser: Parser) -> None:
    """Declare the arguments."""
    parser.define(
        examples,
        "A copy is a start for a spec or a study of your own. Nothing is replaced.",
        examples="""
nandlab examples                         their names
nandlab examples small                   copies small.toml; then: nandlab run small.toml
nandlab examples oltp                    copies oltp.csv, a sample trace
nandlab examples presets/laldpc-32g --to my
nandlab examples studies/laldpc          copies a folder; then: nandlab study laldpc
""",
    )
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="The example, preset or study to copy; when absent, all are listed.",
    )
    parser.add_argument(
        "--to",
        type=Path,
        metavar="DIR",
        help="The folder for the copy; the current folder when absent.",
    )
    parser.add_json()


def examples(options: argparse.Namespace) -> End:
    """Run the command."""
    from nandlab import shipped

    if options.name is None:
        if options.to is not None:
            raise OutputError("--to names the folder for a copy\n  remedy: name an example, too")
        rows = [{"name": item.name, "kind": item.kind, "description": item.description} for item in shipped.items()]
        show_rows(rows, options.json)
        return End()
    item = shipped.named(options.name)
    copied = shipped.copy(item, options.to or Path("."))
    if options.json:
        print(json.dumps({"name": item.name, "kind": item.kind, "path": str(copied)}, indent=2))
    else:
        say(copied)
        beside = [other for other in shipped.needed_beside(item) if not (copied.parent / other).exists()]
        if beside:
            prefix = "studies/" if item.kind == "study" else ""
            of = "some of its files need" if item.kind == "study" else "it needs"
            print(f"{of} {', '.join(beside)} beside it: nandlab examples {prefix}{beside[0]}")
    return End(kept=f"{copied} is written")
