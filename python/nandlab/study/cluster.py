"""Runs on a Dask cluster: workers need the nandlab package and nothing else; results travel back."""

from __future__ import annotations

import importlib
import logging
import queue
import re
import threading
import time
import uuid
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from nandlab.errors import OutputError
from nandlab.study.local import Event
from nandlab.study.plan import InputFile, Task, build_identity
from nandlab.study.problems import shown
from nandlab.study.work import At, Done, Failed, Files, Lost, do

#: Traces are sent in pieces of this many bytes.
_PIECE = 16 << 20
#: Between two words of a run on how far it is.
_TELL_S = 1.0
#: Between two looks at which workers there are.
_LOOK_S = 0.5


class DaskWorkers:
    """The workers of a Dask scheduler; what comes and goes there is followed."""

    def __init__(self, address: str, traces: str) -> None:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise OutputError(
                "--dask needs the package distributed: install nandlab[dask] here and on the workers"
            ) from None
        if not re.fullmatch(r"(\w+://)?[^/]+:\d+/?", address):
            raise OutputError(f"--dask {address}: not an address, such as tcp://host:8786")
        try:
            self._client: Any = distributed.Client(address, timeout=5, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise OutputError(f"no Dask scheduler at {address}: {error}") from None
        # What goes wrong is told by this class; their log would break into the progress.
        for name in ("client", "core", "utils", "comm"):
            logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL)
        self._traces = traces
        self._found: dict[str, dict[str, Any]] = {}
        self._looked_s = 0.0
        #: Workers whose build is known to be ours.
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
        self._events.put(At(*message))

    def _wait_for_workers(self, timeout_s: float) -> None:
        until = time.monotonic() + timeout_s
        while not self._workers():
            if time.monotonic() > until:
                raise OutputError("the Dask scheduler has no workers: start some with `dask worker ADDRESS`")
            time.sleep(0.1)

    def _workers(self) -> dict[str, dict[str, Any]]:
        if self._client.status != "running":
            raise OutputError(
                "the Dask scheduler is gone: finished runs are kept; start it again, and the study goes on from them"
            )
        if time.monotonic() - self._looked_s > _LOOK_S:
            self._found = self._client.scheduler_info(n_workers=-1).get("workers", {})
            self._refuse_other_builds()
            self._looked_s = time.monotonic()
        return self._found

    def _refuse_other_builds(self) -> None:
        """Every worker runs the build that the study was planned with, or the results would not be one build's."""
        self._checked &= self._found.keys()
        new = [address for address in self._found if address not in self._checked]
        if not new:
            return
        ours = build_identity()
        wrong = []
        for address, theirs in self._client.run(build_identity, workers=new, on_error="return").items():
            if isinstance(theirs, OSError):
                continue  # it has just gone; asked again should it come back
            self._checked.add(address)
            if isinstance(theirs, BaseException):
                wrong.append(f"worker {address} does not load nandlab: {shown(theirs)}")
            elif theirs != ours:
                wrong.append(f"worker {address} has nandlab {theirs}, not {ours}")
        if wrong:
            more = f"\nand {len(wrong) - 8} more" if len(wrong) > 8 else ""
            raise OutputError(
                "\n".join(wrong[:8])
                + f"{more}\n  remedy: install the build of this machine there and start the worker again, or stop it; "
                "finished runs are kept"
            )

    @property
    def slots(self) -> int:
        return sum(int(worker["nthreads"]) for worker in self._workers().values())

    @property
    def free(self) -> int:
        # One more than there are places, so that none waits for the way here and back.
        slots = self.slots
        return max(slots + min(slots, 8) - len(self._running), 0)

    def submit(self, task: Task) -> None:
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

    def _send_files(self, task: Task) -> None:
        """Have every worker hold the files of a task; each worker gets each file once."""
        if self._traces != "send":
            return
        for file in task.files:
            lacking = [address for address in self._workers() if (address, file.digest) not in self._sent]
            if not lacking:
                continue
            with open(file.path, "rb") as source:
                offset = 0
                while True:
                    piece = source.read(_PIECE)
                    if offset and not piece:
                        break
                    self._client.run(_put, file, piece, offset, workers=lacking, on_error="ignore")
                    offset += len(piece)
                    if not piece:
                        break
            self._sent.update((address, file.digest) for address in lacking)

    def poll(self, timeout_s: float) -> Iterable[Event]:
        events: list[Event] = []
        self._workers()
        try:
            said = self._events.get(timeout=max(timeout_s, 0.001))
            while True:
                event = self._event(said)
                if event is not None:
                    events.append(event)
                said = self._events.get_nowait()
        except queue.Empty:
            pass
        return events

    def _event(self, said: Any) -> Event | None:
        if isinstance(said, At):
            return said if said.identity in self._running else None
        identity, future = said
        if identity not in self._running or self._running[identity][1] is not future:
            return None
        del self._running[identity]
        try:
            outcome: Done | Failed | Lost = future.result(timeout=60)
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            # Its worker was killed too often, or the future was lost with its worker.
            outcome = Lost(identity, f"{type(error).__name__}: {error}")
        finally:
            future.release()
        if isinstance(outcome, Lost):
            # It may be that a worker is new, or has lost its files: look again.
            self._sent.clear()
        return outcome

    def close(self) -> None:
        for _, future in self._running.values():
            future.cancel(force=True)
        try:
            if self._running:
                self._client.run(_stop, self._topic, on_error="ignore")
        except Exception:
            pass  # the scheduler may be gone
        self._client.close(timeout=5)


# ------------------------------------------------------------------------------------------------------ on the worker

_files: Files | None = None
_files_lock = threading.Lock()
_stopped: set[str] = set()


def _held() -> Files:
    """The files of this worker process, in a directory that goes when it does."""
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
        return  # it had the file already
    files.put(file, piece, offset)


def _stop(topic: str) -> None:
    _stopped.add(topic)


def _run(task: Task, topic: str, traces: str) -> Done | Failed | Lost:
    """One run, in a thread of a Dask worker."""
    from distributed import get_worker

    worker = get_worker()
    files = _held()
    for file in task.files:
        if files.has(file):
            continue
        if traces == "path" and files.link(file, check=True):
            continue
        how = (
            "it is not there under this path, or differs: put it there, or use --traces send"
            if traces == "path"
            else "it has not been sent yet"
        )
        return Lost(task.identity, f"worker {worker.address} has no {Path(file.path).name}: {how}")
    told_s = 0.0

    def tell(phase: str, share: float) -> bool:
        nonlocal told_s
        now = time.monotonic()
        if now - told_s >= _TELL_S:
            told_s = now
            worker.log_event(topic, (task.identity, phase, share))
        return topic not in _stopped

    outcome = do(task, files, tell)
    if isinstance(outcome, Lost):
        return replace(outcome, text=f"worker {worker.address}: {outcome.text}")
    return replace(outcome, worker=str(worker.address)) if isinstance(outcome, Done) else outcome
