"""Errors in a study file, in the form of errors in specs: file, line, key, message, remedy."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

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
    """The remedy for an unknown name: a similar name, and the known names; of more than 16 the 12 most similar.

    Upper and lower case are alike, `-` and `_` too. A dotted name is also similar to one whose last part is.
    """
    wanted, known = shown(name), [shown(there, 60) for there in names]
    listed = known
    exact = _likeness(wanted, difflib.SequenceMatcher.ratio)
    if len(known) > 16:
        # Preselect by the quick ratio: the exact ratios of a thousand long names take half a second per unknown name.
        known = sorted(known, key=_likeness(wanted, difflib.SequenceMatcher.quick_ratio), reverse=True)[:12]
        known.sort(key=exact, reverse=True)
        listed = [*known, "..."]
    found = max(known, key=exact, default=None)
    hint = f"did you mean {found}? " if found is not None and exact(found)[0] >= 0.55 else ""
    return f"{hint}choose from: {', '.join(listed)}" if known else f"{hint}none is defined"


def _likeness(
    wanted: str, ratio: Callable[[difflib.SequenceMatcher[str]], float]
) -> Callable[[str], tuple[float, float]]:
    """The similarity of a name to `wanted`, whole or by its last part, and whole."""
    matcher = difflib.SequenceMatcher(None, "", _plain(wanted))

    def of(name: str) -> float:
        matcher.set_seq1(name)
        return ratio(matcher)

    def likeness(name: str) -> tuple[float, float]:
        whole = of(_plain(name))
        return max(whole, _PART * of(_plain(name).rpartition(".")[2])), whole

    return likeness


#: The weight of a similarity to the last part of a name.
_PART = 0.9


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_")
