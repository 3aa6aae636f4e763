"""The store of finished runs: a directory per run, named by the run's identity and written completely or not at all.

The identity has the build (version and compiled core, `build_identity`). A worker must have the same program (the build
and the Python modules, `program_identity`). So a change of a report repeats no run, and no worker does runs with other
modules.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from nandlab import _core
from nandlab.errors import OutputError, os_error_text
from nandlab.study.plan import Task, file_digest
from nandlab.study.work import Done
from nandlab.whole import sweep, write_file, write_synced

MARKER = "nandlab-study.json"


class Store:
    """The folder of a study, or of a work of another `kind` with many runs; a lock admits one at a time."""

    def __init__(self, path: Path, kind: str = "study") -> None:
        self.path = path
        self.kind = kind
        self._marker = MARKER if kind == "study" else f"nandlab-{kind}.json"
        self.runs = path / "runs"
        self._lock: IO[str] | None = None

    def open(self, name: str) -> None:
        """Create and lock the folder, and remove the unfinished files of a killed study; raises `OutputError`."""
        path = self.path
        try:
            if path.exists() and not path.is_dir():
                raise OutputError(f"{path} is a file: choose another directory with --out")
            if path.is_dir() and not (path / self._marker).exists() and any(path.iterdir()):
                raise OutputError(
                    f"{path} has files that do not belong to a {self.kind}: choose another directory with --out"
                )
            self.runs.mkdir(parents=True, exist_ok=True)
            self._lock = open(path / ".lock", "w")  # noqa: SIM115  # held until close()
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OutputError(
                    f"another {self.kind} is writing to {path}: wait for its end, or choose another --out"
                ) from None
            for left in self.runs.glob(".*.partial"):
                shutil.rmtree(left)
            for directory in (path, path / "figures"):
                sweep(directory)
            if not (path / self._marker).exists():
                text = json.dumps({"format": 1, self.kind: name}, indent=2) + "\n"
                write_file(path / self._marker, text.encode())
        except OSError as error:
            raise OutputError(os_error_text("write to", path, error)) from None

    def close(self) -> None:
        if self._lock is not None:
            # Removing the lock file would allow two studies to lock two files.
            self._lock.close()
            self._lock = None

    def directory(self, identity: str) -> Path:
        return self.runs / identity

    def has(self, identity: str) -> bool:
        """Whether a run is stored, and its files have their recorded hashes."""
        directory = self.directory(identity)
        try:
            kept = json.loads((directory / "run.json").read_text(encoding="utf-8"))
            digests: Mapping[str, str] = kept["sha256"]
            return kept["identity"] == identity and all(
                file_digest(directory / name) == digest for name, digest in digests.items()
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return False

    def put(self, task: Task, done: Done) -> None:
        """Store a run, synced to the disk; raises `OutputError`."""
        directory = self.directory(task.identity)
        partial = self.runs / f".{task.identity}.partial"
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            facts = {
                "identity": task.identity,
                "label": task.label,
                "program": task.build,
                "version": _core.version(),
                "files": {file.name: file.digest for file in task.files},
                "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in done.files.items()},
            }
            for name, data in done.files.items():
                write_synced(partial / name, data)
            write_synced(partial / "run.json", (json.dumps(facts, indent=2) + "\n").encode())
            _sync(partial)
            if directory.exists():
                shutil.rmtree(directory)
            os.rename(partial, directory)
            _sync(self.runs)
        except OSError as error:
            with contextlib.suppress(OSError):
                shutil.rmtree(partial, ignore_errors=True)
            raise OutputError(os_error_text("write", directory, error)) from None

    def forget(self, identity: str) -> None:
        """Remove a stored run."""
        shutil.rmtree(self.directory(identity), ignore_errors=True)

    def read_json(self, identity: str, name: str) -> dict[str, Any]:
        path = self.directory(identity) / name
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise OutputError(os_error_text("read", path, error)) from None
        except ValueError:
            raise OutputError(f"{path} is damaged: remove {path.parent}, and start the {self.kind} again") from None
        return found


def _sync(directory: Path) -> None:
    """Sync the entries of a directory to the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
