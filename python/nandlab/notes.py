"""What a reader of a result should know before believing its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Note:
    """What makes the headline numbers other than they look, or never happened though the spec asks for it."""

    #: `"error"` (data is lost, requests have failed), `"warning"` (a headline number misleads) or `"info"` (something
    #: never happened, or made no difference).
    severity: str
    #: What it is about, such as `"no-gc"`.
    code: str
    #: A sentence or more, with the keys that it is of and the remedy.
    text: str


def notes(summary: Mapping[str, Any]) -> list[Note]:
    """The notes of a summary, those that matter most first; `summary["notes"]` holds the same."""
    return [Note(note["severity"], note["code"], note["text"]) for note in summary.get("notes") or []]


def failed(summary: Mapping[str, Any], reason: str) -> int:
    """Requests that failed for a reason: `"uncorrectable"`, `"worn_out"` or `"power_lost"`."""
    by_reason = summary.get("requests_failed")
    return int(by_reason.get(reason) or 0) if isinstance(by_reason, Mapping) else 0
