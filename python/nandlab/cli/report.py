"""`nandlab report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

import nandlab
from nandlab.cli.app import End, app, examples
from nandlab.errors import OutputError


@app.command(
    help_epilogue=examples(
        "nandlab report out/demo",
    )
)
def report(*directories: Annotated[Path, Parameter(name="DIR")], out: Path | None = None) -> End:
    """Write one HTML file with tables and plots of a result directory. The file opens without a network.

    Parameters
    ----------
    directories
        A result directory that `nandlab run` or `nandlab life` has written.
    out
        The file to write; DIR/report.html when absent.
    """
    from nandlab.results import REPORT

    if not directories:
        raise OutputError("name a result directory, such as out/demo")
    if len(directories) > 1:
        raise OutputError(
            f"expected one result directory, found {len(directories)}\n  remedy: call `nandlab report` for each, or "
            "compare them with `nandlab compare`"
        )
    (directory,) = directories
    written = nandlab.report(directory, out if out is not None else directory / REPORT)
    print(written)
    return End(kept=f"{written} is written")
