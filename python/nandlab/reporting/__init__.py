"""The report: one HTML file for a result; it opens without a network."""

import os
from pathlib import Path

from nandlab.lifetime import Life
from nandlab.results import REPORT, RunResult
from nandlab.whole import write_file


def report(result: RunResult | Life | str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Path:
    """Write the HTML report of a run or of a life; returns its path.

    `result` is a result, or the path of a result directory. `out` is the file to write, by default `report.html` in the
    result's directory; an existing file is replaced. Raises `OutputError` when a file cannot be read or written, or the
    extra `figures` is not installed, and `ValueError` for a result that is not saved when `out` is missing.
    """
    from nandlab.reporting.extra import need_figures

    need_figures("no report")
    from nandlab.reporting.life_page import life_page
    from nandlab.reporting.render import html_of
    from nandlab.reporting.run_page import run_page

    if isinstance(result, (RunResult, Life)):
        read = result
    else:
        read = Life.read(result) if Life.is_in(Path(result)) else RunResult.read(result)
    if out is None:
        if read.path is None:
            raise ValueError("the result is not saved: name the file to write with out=")
        out = read.path / REPORT
    target = Path(out)
    write_file(target, html_of(life_page(read) if isinstance(read, Life) else run_page(read)).encode())
    return target
