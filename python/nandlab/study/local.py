"""Runs on this machine: worker processes that stay, so that a run costs no more than itself."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from nandlab.study.plan import Task
from nandlab.study.work import At, Done, Failed, Lost

Event = At | Done | Failed | Lost


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    connection: Connection
    task: Task | None = None
    ready: bool = False


class LocalWorkers:
    """Worker processes; one that dies is replaced."""

    def __init__(self, workers: int) -> None:
        self._workers = [_start() for _ in range(workers)]
        self._deaths = 0

    @property
    def slots(self) -> int:
        """How many runs go on at the same time."""
        return len(self._workers)

    @property
    def free(self) -> int:
        """How many tasks may be handed over now."""
        return sum(1 for worker in self._workers if worker.task is None)

    def submit(self, task: Task) -> None:
        """Hand a task to a worker that has none."""
        worker = min((w for w in self._workers if w.task is None), key=lambda w: not w.ready)
        worker.task = task
        # A worker that is dead already is found by `poll`.
        with contextlib.suppress(OSError):
            worker.connection.send(task)

    def poll(self, timeout_s: float) -> Iterable[Event]:
        """What the workers have said; waits for something, but not for long."""
        events: list[Event] = []
        by_connection: dict[Any, _Worker] = {worker.connection: worker for worker in self._workers}
        for connection in wait(list(by_connection), timeout_s):
            worker = by_connection[connection]
            try:
                said = worker.connection.recv()
            except (EOFError, OSError):
                events += self._replace(worker)
                continue
            if isinstance(said, tuple):
                worker.ready = True
                continue
            if not isinstance(said, At):
                worker.task = None
            events.append(said)
        return events

    def _replace(self, worker: _Worker) -> Iterable[Event]:
        worker.connection.close()
        status = worker.process.wait()
        if not worker.ready:
            self._deaths += 1
            if self._deaths > 2 * len(self._workers):
                raise RuntimeError(f"the worker processes do not start (exit status {status})")
        self._workers[self._workers.index(worker)] = _start()
        if worker.task is not None:
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
            yield Lost(worker.task.identity, f"its worker process died ({how})")

    def close(self) -> None:
        """End the workers, whatever they do."""
        for worker in self._workers:
            worker.connection.close()
            # One without work leaves by itself once its connection is closed, and tidies up.
            if worker.task is not None:
                worker.process.terminate()
        until = time.monotonic() + 5
        for worker in self._workers:
            try:
                worker.process.wait(max(until - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()


def _start() -> _Worker:
    ours, theirs = socket.socketpair()
    # What this process can import, the worker can.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "nandlab.study.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    return _Worker(process, Connection(ours.detach()))
