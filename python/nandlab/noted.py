"""Notes of several runs, gathered by code: a study and a comparison show each code once, with its runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from nandlab.result_types import Note
from nandlab.units import count

#: The severities of notes, the gravest first.
SEVERITIES = ("error", "warning", "info")

Run = TypeVar("Run")


@dataclass(frozen=True)
class Noted(Generic[Run]):
    """A note of one or more runs."""

    #: The runs with a note of this code, in the order of all runs; numbers in the texts may differ.
    of: Mapping[Run, Note]

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs with the note."""
        return tuple(self.of)

    @property
    def note(self) -> Note:
        """The note of the first of the runs."""
        return next(iter(self.of.values()))


def gather(notes: Iterable[tuple[Run, Iterable[Note]]]) -> list[Noted[Run]]:
    """The notes of runs by code: the gravest first, then those of the most runs."""
    found: dict[tuple[str, str], dict[Run, Note]] = {}
    for run, of_run in notes:
        for note in of_run:
            found.setdefault((note.severity, note.code), {}).setdefault(run, note)
    gathered = [Noted(of) for of in found.values()]
    return sorted(gathered, key=lambda one: (SEVERITIES.index(one.note.severity), -len(one.of)))


def first_sentence(text: str) -> str:
    """The first sentence of the text of a note."""
    return re.split(r"(?<=\.)\s+(?=[A-Z`])", text, maxsplit=1)[0]


def where(runs: Iterable[Mapping[str, Any]], of: Iterable[Mapping[str, Any]]) -> str:
    """The labels that single out `runs` among the runs `of`: `variant fifo; seed 1, 2`; empty if none does."""
    some, every = list(runs), list(of)
    told = []
    for label in dict.fromkeys(label for run in every for label in run):
        values = dict.fromkeys(run.get(label) for run in some)
        if len(values) < len({run.get(label) for run in every}):
            shown = [_plain(value) for value in values]
            told.append(f"{label} {', '.join(shown[:_LISTED_MAX])}{', ...' if len(shown) > _LISTED_MAX else ''}")
    return "; ".join(told)


def of_runs(some: int, every: int, labels: str) -> str:
    """How many of the runs, and which, before the text of the first: `in 3 of 12 runs (variant fifo). The first: `."""
    if every == 1:
        return ""
    which = f" ({labels})" if labels else ""
    runs = f"all {count(every)}" if some == every else f"{count(some)} of {count(every)}"
    return f"in {runs} runs{which}{'. The first' if some > 1 else ''}: "


#: The most values of a label that a text lists.
_LISTED_MAX = 6


def _plain(value: object) -> str:
    return "none" if value is None else str(value)
