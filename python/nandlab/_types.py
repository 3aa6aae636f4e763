"""Dictionaries that the core returns."""

from typing import TypedDict


class Problem(TypedDict):
    """One error in a spec or in a study file."""

    #: The file, or `--set`.
    origin: str
    #: From 1; `None` for an error without a line.
    line: int | None
    key: str
    message: str
    remedy: str


class PolicyRow(TypedDict):
    """One policy that a spec can name."""

    #: The spec key, such as `gc.victim`.
    slot: str
    name: str
    description: str


class StepReport(TypedDict):
    """The progress of a run after a step."""

    phase: str
    done: bool
    progress: float
    requests: int
    sim_time_s: float
    page_operations: int
    #: What the user should know of the kept drive, if anything.
    note: str | None
