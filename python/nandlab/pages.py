"""The report of any result, as one HTML file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from nandlab.errors import OutputError
from nandlab.lifetime import Life
from nandlab.results import REPORT, RunResult
from nandlab.whole import write_file

if TYPE_CHECKING:
    from nandlab.comparison import Comparison

#: The page of a comparison in its folder.
COMPARE_PAGE = "compare.html"


def report(
    result: RunResult | Life | Comparison | str | os.PathLike[str], out: str | os.PathLike[str] | None = None
) -> Path:
    """Write the HTML report of a run, of a life or of a comparison; returns its path.

    `result` is a result, the path of a result directory, or a comparison. `out` is the file to write, by default
    `report.html` in the result's directory, or `compare.html` in the comparison's; its name ends in .html, and an
    existing file is replaced. Raises `OutputError` for another name, when a file cannot be read or written, or when the
    extra `figures` is not installed, and `ValueError` for a result that is not saved when `out` is missing.
    """
    from nandlab.reporting.extra import need_figures

    need_figures("no report")
    from nandlab.reporting.life_page import life_page
    from nandlab.reporting.render import html_of
    from nandlab.reporting.run_page import run_page

    read: RunResult | Life | Comparison
    if isinstance(result, (str, os.PathLike)):
        read = Life.read(result) if Life.is_in(Path(result)) else RunResult.read(result)
    elif isinstance(result, (RunResult, Life)):
        read = result
    else:
        # The report of a run or of a life does not import comparisons.
        from nandlab.comparison import Comparison

        if not isinstance(result, Comparison):
            raise TypeError(f"expected a result, a comparison or a path, found {type(result).__name__}")
        read = result
    if out is None:
        if read.path is None:
            raise ValueError("the result is not saved: name the file to write with out=")
        out = read.path / (REPORT if isinstance(read, (RunResult, Life)) else COMPARE_PAGE)
    target = Path(out)
    if target.suffix.lower() not in (".html", ".htm"):
        raise OutputError(f"{target}: a report is a page: expected a file name that ends in .html")
    if isinstance(read, RunResult):
        page = run_page(read)
    elif isinstance(read, Life):
        page = life_page(read)
    else:
        from nandlab.comparison.page import compare_page

        page = compare_page(read)
    write_file(target, html_of(page).encode())
    return target
