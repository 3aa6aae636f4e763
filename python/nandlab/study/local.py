"""Runs on this machine, in worker processes that do many runs each, so that not every run starts a process."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from nandlab.study.plan import Task
from nandlab.study.work import Done, Failed, Lost, Progressed

Event = Progressed | Done | Failed | Lost


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    connection: Connection
    #: The task that the process does, then those that wait in its connection.
    tasks: deque[Task] = field(default_factory=deque)
    ready: bool = False
    #: The key of the preconditioned drive that the process will have once it has begun its last task.
    drive: str | None = None

    def send(self, task: Task) -> None:
        self.tasks.append(task)
        self.drive = task.drive or self.drive
        # `poll` detects a dead worker.
        with contextlib.suppress(OSError):
            self.connection.send(task)


class LocalWorkers:
    """Local worker processes; a process that dies is replaced."""

    def __init__(self, workers: int) -> None:
        self._workers = [_start() for _ in range(workers)]
        self._deaths = 0

    @property
    def slots(self) -> int:
        """The number of runs that can be under way at the same time."""
        return len(self._workers)

    @property
    def idle(self) -> int:
        """The number of tasks that would be begun at once."""
        return sum(1 for worker in self._workers if not worker.tasks)

    @property
    def free(self) -> int:
        """The number of tasks that can be submitted now: each worker may have a second one, so that it never waits."""
        return sum(2 - len(worker.tasks) for worker in self._workers)

    def submit(self, queue: deque[Task]) -> Task:
        """Send a task of the queue to a worker with the fewest tasks, if there is one with the drive that it has."""
        worker = min(self._workers, key=lambda worker: (len(worker.tasks), not worker.ready))
        others = {other.drive for other in self._workers if other is not worker} - {None}
        task = next((task for task in queue if task.drive is not None and task.drive == worker.drive), None)
        # Of other drives one that no worker has yet, so that each is preconditioned once.
        task = task or next((task for task in queue if task.drive not in others), queue[0])
        queue.remove(task)
        worker.send(task)
        return task

    def poll(self, timeout_s: float) -> Iterable[Event]:
        """The events of the workers; waits for an event, at most `timeout_s`."""
        events: list[Event] = []
        by_connection: dict[Any, _Worker] = {worker.connection: worker for worker in self._workers}
        for connection in wait(list(by_connection), timeout_s):
            worker = by_connection[connection]
            try:
                message = worker.connection.recv()
            except (EOFError, OSError):
                events += self._replace(worker)
                continue
            if isinstance(message, tuple):
                worker.ready = True
                continue
            if not isinstance(message, Progressed):
                worker.tasks.popleft()
            events.append(message)
        return events

    def _replace(self, worker: _Worker) -> Iterable[Event]:
        worker.connection.close()
        status = worker.process.wait()
        if not worker.ready:
            self._deaths += 1
            if self._deaths > 2 * len(self._workers):
                raise RuntimeError(f"the worker processes cannot start (exit status {status})")
        new = self._workers[self._workers.index(worker)] = _start()
        if worker.tasks:
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
            yield Lost(worker.tasks.popleft().identity, f"the worker process died ({how})")
        for task in worker.tasks:
            new.send(task)

    def close(self) -> None:
        """End the workers; runs under way are lost."""
        for worker in self._workers:
            worker.connection.close()
            # An idle worker ends when its connection is closed, and removes its files.
            if worker.tasks:
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
    # The worker has the import path of this process.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "nandlab.study.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    return _Worker(process, Connection(ours.detach()))
