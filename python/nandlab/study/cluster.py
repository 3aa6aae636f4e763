"""Runs on a Dask cluster: the workers need the packages nandlab and distributed, and send the results back."""

from __future__ import annotations

import importlib
import logging
import queue
import re
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from nandlab.errors import OutputError
from nandlab.study.local import Event
from nandlab.study.plan import InputFile, Task, program_identity
from nandlab.study.problems import shown
from nandlab.study.work import Done, Failed, Files, Lost, Progressed, do

#: The most bytes of a file in one message.
_PIECE = 16 << 20
#: Time between two progress messages of a run.
_PROGRESS_S = 1.0
#: Time between two updates of the list of workers.
_UPDATE_S = 0.5


class DaskWorkers:
    """The workers of a Dask scheduler; workers may join and leave."""

    def __init__(self, address: str, traces: str) -> None:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise OutputError(
                "--dask needs the package distributed\n  remedy: install nandlab[dask] here and on the workers"
            ) from None
        if not re.fullmatch(r"(\w+://)?[^/]+:\d+/?", address):
            raise OutputError(f"--dask: expected an address such as tcp://host:8786, found {address}")
        try:
            self._client: Any = distributed.Client(address, timeout=5, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise OutputError(f"no Dask scheduler at {address}: {error}") from None
        # This class reports errors; the log of the package would disturb the progress display.
        for name in ("client", "core", "utils", "comm"):
            logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL)
        self._traces = traces
        self._found: dict[str, dict[str, Any]] = {}
        self._updated_s = 0.0
        #: Addresses of workers with the build of this process.
        self._checked: set[str] = set()
        self._topic = f"nandlab-{uuid.uuid4().hex}"
        self._events: queue.Queue[Any] = queue.Queue()
        self._running: dict[str, tuple[Task, Any]] = {}
        self._sent: set[tuple[str, str]] = set()
        self._client.subscribe_topic(self._topic, self._hear)
        try:
            self._wait_for_workers(30.0)
        except BaseException:
            self._client.close()
            raise

    def _hear(self, event: Any) -> None:
        _, message = event
        self._events.put(Progressed(*message))

    def _wait_for_workers(self, timeout_s: float) -> None:
        until = time.monotonic() + timeout_s
        while not self._workers():
            if time.monotonic() > until:
                raise OutputError(
                    "the Dask scheduler has no workers\n  remedy: start workers with `dask worker ADDRESS`"
                )
            time.sleep(0.1)

    def _workers(self) -> dict[str, dict[str, Any]]:
        if self._client.status != "running":
            raise OutputError(
                "the connection to the Dask scheduler is lost; finished runs are kept\n"
                "  remedy: start the scheduler and the study again"
            )
        if time.monotonic() - self._updated_s > _UPDATE_S:
            self._found = self._client.scheduler_info(n_workers=-1).get("workers", {})
            self._refuse_other_builds()
            self._updated_s = time.monotonic()
        return self._found

    def _refuse_other_builds(self) -> None:
        """Refuse workers with another build than the one that planned the study, since results depend on the build."""
        self._checked &= self._found.keys()
        new = [address for address in self._found if address not in self._checked]
        if not new:
            return
        ours = program_identity()
        wrong = []
        for address, theirs in self._client.run(program_identity, workers=new, on_error="return").items():
            if isinstance(theirs, OSError):
                continue  # the worker has just left; it is checked again if it returns
            self._checked.add(address)
            if isinstance(theirs, BaseException):
                wrong.append(f"worker {address} cannot load nandlab: {shown(theirs)}")
            elif theirs != ours:
                wrong.append(f"worker {address}: expected nandlab {ours}, found {theirs}")
        if wrong:
            more = f"\nand {len(wrong) - 8} more" if len(wrong) > 8 else ""
            raise OutputError(
                "\n".join(wrong[:8])
                + f"{more}\n  remedy: install the build of this machine on these workers and restart them, or stop "
                "them; finished runs are kept"
            )

    @property
    def slots(self) -> int:
        return sum(int(worker["nthreads"]) for worker in self._workers().values())

    @property
    def idle(self) -> int:
        return self.free

    @property
    def free(self) -> int:
        # Queue more tasks than slots, so that no slot is idle while a result travels back.
        slots = self.slots
        return max(slots + min(slots, 8) - len(self._running), 0)

    def submit(self, queue: deque[Task]) -> Task:
        task = queue.popleft()
        self._send_files(task)
        future = self._client.submit(
            _run,
            task,
            self._topic,
            self._traces,
            key=f"nandlab-{task.identity}-{uuid.uuid4().hex[:8]}",
            pure=False,
        )
        self._running[task.identity] = (task, future)
        future.add_done_callback(lambda done, identity=task.identity: self._events.put((identity, done)))
        return task

    def _send_files(self, task: Task) -> None:
        """Send each file of a task to the workers to which it has not been sent."""
        if self._traces != "send":
            return
        for file in task.files:
            missing = [address for address in self._workers() if (address, file.digest) not in self._sent]
            if not missing:
                continue
            with open(file.path, "rb") as source:
                offset = 0
                while True:
                    piece = source.read(_PIECE)
                    if offset and not piece:
                        break
                    self._client.run(_put, file, piece, offset, workers=missing, on_error="ignore")
                    offset += len(piece)
                    if not piece:
                        break
            self._sent.update((address, file.digest) for address in missing)

    def poll(self, timeout_s: float) -> Iterable[Event]:
        events: list[Event] = []
        self._workers()
        try:
            message = self._events.get(timeout=max(timeout_s, 0.001))
            while True:
                event = self._event(message)
                if event is not None:
                    events.append(event)
                message = self._events.get_nowait()
        except queue.Empty:
            pass
        return events

    def _event(self, message: Any) -> Event | None:
        if isinstance(message, Progressed):
            return message if message.identity in self._running else None
        identity, future = message
        if identity not in self._running or self._running[identity][1] is not future:
            return None
        del self._running[identity]
        try:
            outcome: Done | Failed | Lost = future.result(timeout=60)
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            # The worker was killed too often, or the future was lost with the worker.
            outcome = Lost(identity, f"{type(error).__name__}: {error}")
        finally:
            future.release()
        if isinstance(outcome, Lost):
            # A worker may be new, or may have lost its files: send all files again.
            self._sent.clear()
        return outcome

    def close(self) -> None:
        for _, future in self._running.values():
            future.cancel(force=True)
        try:
            if self._running:
                self._client.run(_stop, self._topic, on_error="ignore")
        except Exception:
            pass  # the scheduler may have ended
        self._client.close(timeout=5)


# ------------------------------------------------------------------------------------------------------ on the worker

_files: Files | None = None
_files_lock = threading.Lock()
_stopped: set[str] = set()


def _held() -> Files:
    """The files of this worker process, in a directory that is removed when the process ends."""
    global _files
    with _files_lock:
        if _files is None:
            import atexit

            _files = Files()
            atexit.register(_files.close)
        return _files


def _put(file: InputFile, piece: bytes, offset: int) -> None:
    files = _held()
    if offset == 0 and files.has(file):
        return
    if offset and not (files.directory / (file.name + ".partial")).exists():
        return  # this worker has the file already
    files.put(file, piece, offset)


def _stop(topic: str) -> None:
    _stopped.add(topic)


def _run(task: Task, topic: str, traces: str) -> Done | Failed | Lost:
    """Do one run in a thread of a Dask worker."""
    from distributed import get_worker

    worker = get_worker()
    files = _held()
    for file in task.files:
        if files.has(file):
            continue
        if traces == "path" and files.link(file, check=True):
            continue
        how = (
            "the file at this path is missing or different; copy the file there, or use --traces send"
            if traces == "path"
            else "the file has not been sent yet"
        )
        return Lost(task.identity, f"worker {worker.address} has no {Path(file.path).name}: {how}")
    sent_s = 0.0

    def tell(phase: str, share: float) -> bool:
        nonlocal sent_s
        now = time.monotonic()
        if now - sent_s >= _PROGRESS_S:
            sent_s = now
            worker.log_event(topic, (task.identity, phase, share))
        return topic not in _stopped

    outcome = do(task, files, tell)
    if isinstance(outcome, Lost):
        return replace(outcome, text=f"worker {worker.address}: {outcome.text}")
    return replace(outcome, worker=str(worker.address)) if isinstance(outcome, Done) else outcome
