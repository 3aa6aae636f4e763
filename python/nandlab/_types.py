"""Dictionaries that the core hands out."""

from typing import TypedDict


class Problem(TypedDict):
    """One thing wrong with a spec."""

    origin: str
    line: int | None
    key: str
    message: str
    remedy: str


class PolicyRow(TypedDict):
    """One policy that can be named in a spec."""

    slot: str
    name: str
    description: str


class StepReport(TypedDict):
    """Where a run stands after a step."""

    phase: str
    done: bool
    progress: float
    requests: int
    sim_time_s: float
    page_operations: int
