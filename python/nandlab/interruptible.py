"""Long calls of the core that Ctrl-C can interrupt; compiled code does not handle signals."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
#: Time between two checks for signals, on systems where a signal does not interrupt the wait for a thread.
_CHECK_S = 0.1


def interruptible(call: Callable[[], _T]) -> _T:
    """Call the core on another thread, so that this thread handles Ctrl-C; an interrupted call runs on, unobserved."""
    results: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="nandlab-call", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_CHECK_S)
    if errors:
        raise errors[0]
    return results[0]
