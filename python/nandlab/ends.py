"""How the command ends: a signal stops it, or what it prints cannot be written."""

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
#: Signals that come so close together are one: `timeout`, shells and terminals send theirs twice.
_TOGETHER_S = 0.5


class Stop:
    """Ctrl-C, SIGTERM and SIGHUP, while it is entered: all end the command with a `KeyboardInterrupt`.

    In a block of `gently` the first one is only noted, and the second ends the command. One that was ignored when the
    process started, as `nohup` has it, stays ignored.
    """

    def __init__(self) -> None:
        self._number = 0
        self._came_s = 0.0
        self._is_gentle = False
        self._before: dict[int, Any] = {}

    def __bool__(self) -> bool:
        """Whether a signal came."""
        return self._number != 0

    def __str__(self) -> str:
        return f"stopped by {_SIGNALS[signal.Signals(self._number or signal.SIGINT)]}"

    @property
    def status(self) -> int:
        """The exit status of a command that was stopped."""
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
    def gently(self) -> Iterator[None]:
        self._is_gentle = True
        try:
            yield
        finally:
            self._is_gentle = False

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        now_s = time.monotonic()
        if not self._number:
            self._number, self._came_s = number, now_s
            if self._is_gentle:
                return
        elif now_s - self._came_s < _TOGETHER_S:
            return
        raise KeyboardInterrupt


class Stream:
    """A standard stream whose writes do not fail: from the first `error` on, what is written is dropped."""

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
        # What is in the buffer would be tried again.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self._stream.fileno())
        os.close(null)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def standard_streams() -> Iterator[Stream]:
    """Have stdout and stderr as `Stream`s; that of stdout is given."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # It was closed, and the next file to be opened would have its number. Writing to this one fails.
            null = os.open(os.devnull, os.O_RDONLY)
            os.set_inheritable(null, True)
            setattr(sys, name, open(null, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  # to the end
    before = sys.stdout, sys.stderr
    out = Stream(sys.stdout)
    sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, Stream(sys.stderr))
    try:
        yield out
    finally:
        sys.stdout, sys.stderr = before
