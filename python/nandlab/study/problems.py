"""What is wrong with a study file, told as the specs' mistakes are: file, line, key, what, and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from nandlab._core import NandlabError
from nandlab._types import Problem


class StudyError(NandlabError):
    """A study that is refused; `errors` lists what is wrong."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.errors = list(problems)
        super().__init__("\n".join(_text(problem) for problem in self.errors))


class RunsFailed(NandlabError):
    """Runs of a study that could not be done; the others are kept."""


def problem(origin: str, line: int | None, key: str, message: str, remedy: str) -> Problem:
    """One mistake."""
    return {"origin": origin, "line": line, "key": key, "message": message, "remedy": remedy}


def _text(problem: Problem) -> str:
    where = problem["origin"] + (f":{problem['line']}" if problem["line"] is not None else "")
    key = f"{problem['key']}: " if problem["key"] else ""
    remedy = f"\n  remedy: {problem['remedy']}" if problem["remedy"] else ""
    return f"{where}: {key}{problem['message']}{remedy}"


def near(name: object, names: Iterable[str]) -> str:
    """What may have been meant, and what there is."""
    known = list(names)
    found = difflib.get_close_matches(str(name), known, n=1, cutoff=0.55)
    hint = f"did you mean {found[0]}? " if found else ""
    shown = known if len(known) <= 16 else [*difflib.get_close_matches(str(name), known, n=12, cutoff=0.0)[:12], "..."]
    return f"{hint}there is: {', '.join(shown)}" if known else f"{hint}there is none"
