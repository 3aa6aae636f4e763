"""Errors in a study file, in the form of errors in specs: file, line, key, message, remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from nandlab._core import NandlabError
from nandlab._types import Problem

#: The most errors that are reported at once.
MAX_PROBLEMS = 20


class StudyError(NandlabError):
    """A study that is refused; `errors` lists its errors, and the text has the first 20 with line and remedy."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.errors = list(problems)
        lines = [_text(problem) for problem in self.errors[:MAX_PROBLEMS]]
        if len(self.errors) > MAX_PROBLEMS:
            lines.append(f"and {len(self.errors) - MAX_PROBLEMS} more")
        super().__init__("\n".join(lines))


class RunsFailed(NandlabError):
    """Runs of a study have failed; finished runs are kept."""


def problem(origin: str, line: int | None, key: str, message: str, remedy: str) -> Problem:
    """One error."""
    return {"origin": origin, "line": line, "key": shown(key), "message": message, "remedy": remedy}


def shown(value: object, limit: int = 80) -> str:
    """A value of the study file for a message: at most `limit` characters, `?` for each that is not printable."""
    text = str(value)
    text = text if len(text) <= limit else text[: limit - 3] + "..."
    return "".join(char if char.isprintable() else "?" for char in text)


def _text(problem: Problem) -> str:
    where = problem["origin"] + (f":{problem['line']}" if problem["line"] is not None else "")
    key = f"{problem['key']}: " if problem["key"] else ""
    remedy = f"\n  remedy: {problem['remedy']}" if problem["remedy"] else ""
    return f"{where}: {key}{problem['message']}{remedy}"


def near(name: object, names: Iterable[str]) -> str:
    """The remedy for an unknown name: a similar name, and the known names; of more than 16 the 12 most similar."""
    wanted, known = shown(name), [shown(there, 60) for there in names]
    listed = known
    if len(known) > 16:
        # Preselect by the quick ratio: the exact ratios of a thousand long names take half a second per unknown name.
        likeness = difflib.SequenceMatcher(None, "", wanted)

        def quick(there: str) -> float:
            likeness.set_seq1(there)
            return likeness.quick_ratio()

        known = sorted(known, key=quick, reverse=True)[:12]
        listed = [*known, "..."]
    found = difflib.get_close_matches(wanted, known, n=1, cutoff=0.55)
    hint = f"did you mean {found[0]}? " if found else ""
    return f"{hint}choose from: {', '.join(listed)}" if known else f"{hint}none is defined"
