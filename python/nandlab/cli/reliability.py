"""`nandlab reliability`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape

from nandlab.cli.app import End, Json, Sets, app, examples
from nandlab.cli.output import make_console
from nandlab.errors import OutputError
from nandlab.spec import read_spec


@app.command(
    help_epilogue=examples(
        'nandlab reliability laldpc.toml          a file with [drive] and preset = "laldpc-32g" is enough',
        "nandlab reliability laldpc.toml --pe 8000,10000,12000 --retention 30d,365d",
        "nandlab reliability laldpc.toml --out fig5.svg                    also: .html, .pdf, .png, .csv",
        "nandlab reliability laldpc.toml --set reliability.rber.vth='{ per_page_kind = true }' --susceptible",
    )
)
def reliability(
    spec_file: Annotated[Path, Parameter(name="SPEC.toml")],
    /,
    *,
    sets: Sets = None,
    pe: str | None = None,
    retention: str | None = None,
    reads: int = 0,
    copybacks: int = 0,
    susceptible: Annotated[bool, Parameter()] = False,
    out: Path | None = None,
    json_: Json = False,
) -> End:
    """Print RBER and read level over retention and P/E cycles, and read latency by level, without a simulation.

    Parameters
    ----------
    spec_file
        The spec. It needs no workload.
    pe
        P/E cycles, separated by commas; even steps up to drive.endurance when absent.
    retention
        Ages of the data, such as 1h,30d,365d (s, min, h, d); an hour to five years when absent.
    reads
        Reads of the block since its erase.
    copybacks
        Copybacks of the page, without a correction in between.
    susceptible
        Also print the share of bits that soft sensing finds susceptible.
    out
        Also write a page (.html) or a picture (.svg, .pdf, .png) with curves over the whole range of retentions, or the
        points (.csv).
    """
    from nandlab import rber
    from nandlab.reporting.extra import need_figures
    from nandlab.screen import show_reliability

    if out is not None and rber.check_suffix(out) != "csv":
        need_figures(f"no {out}")
    checked = read_spec(spec_file, sets or [])
    try:
        found = rber.reliability(
            checked,
            None if pe is None else [_whole("--pe", entry) for entry in _listed("--pe", pe)],
            None if retention is None else _listed("--retention", retention),
            reads=reads,
            copybacks=copybacks,
        )
    except ValueError as error:
        raise OutputError(f"--{error}".replace("--pe_cycles", "--pe")) from None
    if susceptible and found.susceptible is None:
        raise OutputError(
            "--susceptible: the model has no voltages\n  remedy: set reliability.rber.vth, or leave out --susceptible"
        )
    if out is not None:
        found.save(out, susceptible=susceptible)
    end = End(kept=f"{out} is written" if out is not None else "")
    if json_:
        print(json.dumps(found.to_dict(), indent=2))
        return end
    console = make_console()
    console.print(f"[bold]{escape(spec_file.stem)}[/]", soft_wrap=True)
    show_reliability(found, console, susceptible=susceptible)
    if out is not None:
        print(out)
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
