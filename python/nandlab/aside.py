"""Long calls of the core, which does not listen to signals."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
#: Signals are handled at once on Linux; elsewhere a wait for a thread may not be interrupted.
_LOOK_S = 0.1


def aside(call: Callable[[], _T]) -> _T:
    """Do a call on a thread of its own, so that this one hears Ctrl-C; the call is then left to itself."""
    results: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="nandlab-aside", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_S)
    if errors:
        raise errors[0]
    return results[0]
