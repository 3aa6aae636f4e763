"""`nandlab fdp`."""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nandlab.cli.app import End, Parser
from nandlab.cli.output import say_data
from nandlab.errors import OutputError, shown


def add(parser: Parser) -> None:
    """Declare the arguments."""
    parser.define(
        parser.get_default("command"),
        "The logs are those at the end of the run, in the layout of nvme-cli; `nandlab live fdp` has those of a live "
        "drive.",
        examples="""
nandlab fdp stats out/demo
nandlab fdp events out/demo --host-events
nandlab fdp status out/demo --json | jq .ruhss[0].ruamw
""",
    )

    def directory(command: Parser) -> None:
        command.add_argument("directory", type=Path, metavar="DIR", help="A result directory of `nandlab run`.")

    add_logs(parser, directory, _show)


def add_logs(parser: Parser, source: Any, show: Any) -> None:
    """Add a command for each log; `source` adds the argument that names the drive, `show` gets the name of the log."""
    from nandlab.fdp import LOGS

    for name, text in LOGS.items():
        command = parser.add_command(name, text)
        command.define(functools.partial(show, name))
        source(command)
        if name == "events":
            command.add_argument("--host-events", action="store_true", help="Those of the host.")
        command.add_json()


def show_log(name: str, logs: Mapping[str, Any], options: argparse.Namespace) -> End:
    """Print one of the logs."""
    from nandlab.fdp import lines

    host_events = getattr(options, "host_events", False)
    if options.json:
        say_data(json.dumps(logs["host_events" if host_events else name], indent=2))
    else:
        say_data("\n".join(lines(name, logs, host_events=host_events)))
    return End()


def _show(name: str, options: argparse.Namespace) -> End:
    from nandlab.results import RunResult

    logs = RunResult.read(options.directory).fdp
    if logs is None:
        raise OutputError(
            f"{shown(options.directory)}: the drive of this run has no placement handles\n"
            "  remedy: set placement.handles in its spec"
        )
    return show_log(name, logs, options)
