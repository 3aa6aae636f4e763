"""The end of the command by a signal, or by a failed write to a standard stream.

A command never fails because of stdout: output that cannot be written is dropped, the work is finished, and the exit
status reports it. A signal is a `KeyboardInterrupt`; while a drive is simulated the first signal is only recorded.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any, TextIO, cast

_SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}
#: Signals within this time count as one, because `timeout`, shells and terminals may send a signal twice.
_TOGETHER_S = 0.5


class Stop:
    """Handles Ctrl-C, SIGTERM and SIGHUP in a `with` block: each of them raises `KeyboardInterrupt`.

    In a block of `deferred` the first signal is only recorded, and the second one raises. Signals within half a second
    of the first one have no effect. A signal that is ignored before the block stays ignored; `nohup` ignores SIGHUP.
    """

    def __init__(self) -> None:
        self._number = 0
        self._came_s = 0.0
        self._is_deferred = False
        self._before: dict[int, Any] = {}

    def __bool__(self) -> bool:
        """Whether a signal has arrived."""
        return self._number != 0

    def __str__(self) -> str:
        return f"stopped by {_SIGNALS[signal.Signals(self._number or signal.SIGINT)]}"

    @property
    def status(self) -> int:
        """The exit status of the stopped command: 128 and the number of the signal."""
        return 128 + (self._number or signal.SIGINT)

    def __enter__(self) -> Stop:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Only record the first signal; the caller checks whether one has arrived."""
        self._is_deferred = True
        try:
            yield
        finally:
            self._is_deferred = False

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        now_s = time.monotonic()
        if not self._number:
            self._number, self._came_s = number, now_s
            if self._is_deferred:
                return
        elif now_s - self._came_s < _TOGETHER_S:
            return
        raise KeyboardInterrupt


class Stream:
    """A standard stream whose writes never raise: after the first `error` the output is discarded."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._drop(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._drop(error)

    def _drop(self, error: OSError) -> None:
        self.error = self.error or error
        # The buffer is written again at exit, then to the null device.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self._stream.fileno())
        os.close(null)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def standard_streams() -> Iterator[Stream]:
    """Replace stdout and stderr by `Stream`s; yields the one of stdout."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # The stream was closed at the start, and the next file to be opened would get its descriptor. The read-only
            # null device takes the descriptor, and a write to it fails.
            null = os.open(os.devnull, os.O_RDONLY)
            os.set_inheritable(null, True)
            setattr(sys, name, open(null, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  # open until exit
    before = sys.stdout, sys.stderr
    out = Stream(sys.stdout)
    sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, Stream(sys.stderr))
    try:
        yield out
    finally:
        sys.stdout, sys.stderr = before
