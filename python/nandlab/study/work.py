"""Does one run of a study in any process: from a task to the bytes of its files."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nandlab import simulate
from nandlab._core import NandlabError, SharedDrives, Spec
from nandlab.python_policies import is_of_policy, traceback_in_policy, unpack
from nandlab.results import OutputDirectory
from nandlab.study.plan import InputFile, Task, file_digest, program_identity

#: Called during a run with its phase and the share done; returns `False` to stop the run.
Tell = Callable[[str, float], bool]


@dataclass(frozen=True)
class Done:
    """A finished run with its files."""

    identity: str
    files: dict[str, bytes]
    #: Wall and CPU time in the worker, in seconds.
    wall_s: float
    cpu_s: float
    worker: str


@dataclass(frozen=True)
class Failed:
    """A run that has failed, and would fail again."""

    identity: str
    text: str
    #: Whether the cause is a bug in nandlab, not an error in the input.
    is_bug: bool


@dataclass(frozen=True)
class Lost:
    """A run whose worker was lost or cannot do it; another attempt may succeed."""

    identity: str
    text: str


@dataclass(frozen=True)
class Progressed:
    """The progress of a run."""

    identity: str
    phase: str
    share: float


class _InMemory(OutputDirectory):
    """Collects the files of a result directory in memory."""

    def __init__(self) -> None:
        super().__init__(Path("."))
        self.files: dict[str, bytes] = {}

    def write(self, name: str, data: bytes) -> None:
        self.files[name] = data
        self._add(name, data)


class Files:
    """The input files of runs, named after a digest of their content, in a temporary directory."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="nandlab-study-"))

    def close(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def has(self, file: InputFile) -> bool:
        return (self.directory / file.name).exists()

    def link(self, file: InputFile, path: str | None = None, *, check: bool = False) -> bool:
        """Link to the file at its path; returns `False` if it is missing or has another size (`check`: content)."""
        target = self.directory / file.name
        if target.exists():
            return True
        source = Path(path if path is not None else file.path)
        try:
            if source.stat().st_size != file.size or (check and file_digest(str(source)) != file.digest):
                return False
            target.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                target.symlink_to(source)
        except OSError:
            return False
        return True

    def put(self, file: InputFile, data: bytes, offset: int) -> None:
        """Write a piece of a received file; the file appears with its last piece."""
        target = self.directory / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(target.name + ".partial")
        with open(partial, "r+b" if offset else "wb") as out:
            out.seek(offset)
            out.write(data)
        if offset + len(data) >= file.size:
            os.replace(partial, target)


def do(task: Task, files: Files, tell: Tell, shared: SharedDrives | None = None) -> Done | Failed | Lost:
    """Do one run, and report its progress to `tell`; `shared` may have the preconditioned drive of the run."""
    if task.build != program_identity():
        return Lost(
            task.identity,
            f"the worker has nandlab {program_identity()}, and the study was planned with {task.build}: "
            "install the same build on every worker",
        )
    stopped = False

    def progress(at: simulate.Progress) -> bool:
        nonlocal stopped
        stopped = stopped or not tell(at.phase, at.share)
        return not stopped

    begin = os.times()
    try:
        policies = [] if task.policies is None else unpack(task.policies)
        spec = Spec.load(task.text, task.name, str(files.directory), list(task.sets), policies)
        if shared is not None and task.drive is not None:
            result = simulate.run_sharing(spec, shared, progress, name=task.label)
        else:
            result = simulate.run(spec, progress=progress, name=task.label)
        if stopped or not result.complete:
            return Lost(task.identity, "stopped")
        out = _InMemory()
        result.write_to(out)
    except simulate.Stopped:
        return Lost(task.identity, "stopped")
    except NandlabError as error:
        return Failed(task.identity, str(error), False)
    except MemoryError:
        return Lost(task.identity, "the worker ran out of memory")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        if is_of_policy(error):
            # The text, since another process may not be able to read the exception.
            return Failed(task.identity, traceback_in_policy(error), False)
        # A panic in the core is a `BaseException`.
        return Failed(task.identity, traceback.format_exc(), True)
    end = os.times()
    cpu_s = end.user + end.system - begin.user - begin.system
    return Done(task.identity, out.files, end.elapsed - begin.elapsed, cpu_s, "")
