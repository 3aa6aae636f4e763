"""The report: one HTML file of a result, which opens without a network."""

import os
from pathlib import Path

from nandlab.results import REPORT, RunResult, write_file


def report(result: RunResult | str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Path:
    """Write the HTML report of a result, or of a result directory; returns its path.

    Without `out` it is `report.html` in the result's directory.
    """
    from nandlab.reporting.page import page

    read = result if isinstance(result, RunResult) else RunResult.read(result)
    if out is None:
        if read.path is None:
            raise ValueError("this result has not been saved: name the file to write with out=")
        out = read.path / REPORT
    target = Path(out)
    write_file(target, page(read).encode())
    return target
