"""`nandlab reliability`."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from nandlab.cli.app import End, Parser
from nandlab.cli.output import make_console, say, show_title
from nandlab.errors import OutputError
from nandlab.spec import read_spec


def add(parser: Parser) -> None:
    """Declare the arguments."""
    parser.define(
        reliability,
        examples="""
nandlab reliability laldpc.toml          a file with [drive] and preset = "laldpc-32g" is enough
nandlab reliability laldpc.toml --pe 8000,10000,12000 --retention 30d,365d
nandlab reliability laldpc.toml --out fig5.svg                    also: .html, .pdf, .png, .csv
nandlab reliability laldpc.toml --set reliability.rber.vth='{ per_page_kind = true }' --susceptible
""",
    )
    parser.add_argument("spec", type=Path, metavar="SPEC.toml", help="The spec. It needs no workload.")
    parser.add_sets()
    parser.add_argument(
        "--pe",
        metavar="LIST",
        help="P/E cycles, separated by commas; even steps up to drive.endurance when absent.",
    )
    parser.add_argument(
        "--retention",
        metavar="LIST",
        help="Ages of the data, such as 1h,30d,365d (s, min, h, d); an hour to five years when absent.",
    )
    parser.add_argument("--reads", type=int, default=0, metavar="N", help="Reads of the block since its erase.")
    parser.add_argument(
        "--copybacks",
        type=int,
        default=0,
        metavar="N",
        help="Copybacks of the page, without a correction in between.",
    )
    parser.add_argument(
        "--susceptible",
        action="store_true",
        help="Also print the share of bits that soft sensing finds susceptible.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="Also write a page (.html) or a picture (.svg, .pdf, .png) with curves over the whole range of "
        "retentions, or the points (.csv).",
    )
    parser.add_json()


def reliability(options: argparse.Namespace) -> End:
    """Run the command."""
    from nandlab import rber
    from nandlab.reporting.extra import need_figures

    out, pe, retention = options.out, options.pe, options.retention
    if out is not None and rber.check_suffix(out) != "csv":
        need_figures(f"no {out}")
    checked = read_spec(options.spec, options.sets)
    try:
        found = rber.reliability(
            checked,
            None if pe is None else [_whole("--pe", entry) for entry in _listed("--pe", pe)],
            None if retention is None else _listed("--retention", retention),
            reads=options.reads,
            copybacks=options.copybacks,
        )
    except ValueError as error:
        raise OutputError(f"--{error}".replace("--pe_cycles", "--pe")) from None
    if options.susceptible and found.susceptible is None:
        raise OutputError(
            "--susceptible: the model has no voltages\n  remedy: set reliability.rber.vth, or leave out --susceptible"
        )
    if out is not None:
        found.save(out, susceptible=options.susceptible)
    end = End(kept=f"{out} is written" if out is not None else "")
    if options.json:
        print(json.dumps(found.to_dict(), indent=2))
        return end
    from nandlab.screen import show_reliability

    console = make_console()
    show_title(console, options.spec.stem)
    show_reliability(found, console, susceptible=options.susceptible)
    if out is not None:
        say(out)
    return end


def _listed(option: str, text: str) -> list[str]:
    """The entries of a list on the command line."""
    entries = [entry.strip() for entry in text.split(",")]
    if not all(entries):
        raise OutputError(f"{option} {text!r}: expected values separated by commas, such as 1,2")
    return entries


def _whole(option: str, text: str) -> int:
    if not re.fullmatch(r"[0-9_]+", text):
        raise OutputError(f"{option} {text!r}: expected a whole number")
    return int(text)
