"""What is wrong with a study file, told as the specs' mistakes are: file, line, key, what, and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from nandlab._core import NandlabError
from nandlab._types import Problem

#: No more mistakes are told at once.
MAX_PROBLEMS = 20


class StudyError(NandlabError):
    """A study that is refused; `errors` lists what is wrong."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.errors = list(problems)
        told = [_text(problem) for problem in self.errors[:MAX_PROBLEMS]]
        if len(self.errors) > MAX_PROBLEMS:
            told.append(f"and {len(self.errors) - MAX_PROBLEMS} more")
        super().__init__("\n".join(told))


class RunsFailed(NandlabError):
    """Runs of a study that could not be done; the others are kept."""


def problem(origin: str, line: int | None, key: str, message: str, remedy: str) -> Problem:
    """One mistake."""
    return {"origin": origin, "line": line, "key": shown(key), "message": message, "remedy": remedy}


def shown(value: object, limit: int = 80) -> str:
    """A value of a file as an error echoes it: a part of one line."""
    text = str(value)
    text = text if len(text) <= limit else text[: limit - 3] + "..."
    return "".join(char if char.isprintable() else "?" for char in text)


def _text(problem: Problem) -> str:
    where = problem["origin"] + (f":{problem['line']}" if problem["line"] is not None else "")
    key = f"{problem['key']}: " if problem["key"] else ""
    remedy = f"\n  remedy: {problem['remedy']}" if problem["remedy"] else ""
    return f"{where}: {key}{problem['message']}{remedy}"


def near(name: object, names: Iterable[str]) -> str:
    """What may have been meant, and what there is."""
    wanted, known = shown(name), [shown(there, 60) for there in names]
    told = known
    if len(known) > 16:
        # The quick ratio first: the true one of a thousand names takes seconds.
        likeness = difflib.SequenceMatcher(None, "", wanted)

        def quick(there: str) -> float:
            likeness.set_seq1(there)
            return likeness.quick_ratio()

        known = sorted(known, key=quick, reverse=True)[:12]
        told = [*known, "..."]
    found = difflib.get_close_matches(wanted, known, n=1, cutoff=0.55)
    hint = f"did you mean {found[0]}? " if found else ""
    return f"{hint}there is: {', '.join(told)}" if known else f"{hint}there is none"
