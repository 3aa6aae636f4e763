"""Atomic writes: a file or directory appears under its name complete, or not at all.

The data is written to a hidden directory beside the target, `.NAME.partial-PID-RANDOM`, and renamed. A killed process
leaves its hidden directory behind; the next process that writes to the same parent directory removes it.

The hidden directory is locked. The lock ends with its process, so the next process recognises an abandoned directory.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from nandlab.errors import OutputError, os_error_text

#: Names in the hidden directory: the new data, and the data that it replaces.
NEW, OLD = "new", "old"
_HIDDEN = re.compile(r"\.(?P<name>.+)\.partial-(?P<pid>\d+)(-[0-9a-f]+)?")


@contextlib.contextmanager
def hidden_beside(target: Path) -> Iterator[Path]:
    """Create a hidden directory beside `target`, locked while it is in use, and remove it at the end.

    Raises `OSError`.
    """
    if target.name in ("", ".."):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(target))
    target = target.absolute()
    sweep(target.parent)
    hidden, lock = _make(target)
    try:
        yield hidden
    finally:
        _clear(hidden, target)
        os.close(lock)


def _make(target: Path) -> tuple[Path, int]:
    while True:
        hidden = target.with_name(f".{target.name}.partial-{os.getpid()}-{os.urandom(3).hex()}")
        hidden.mkdir()
        try:
            lock = os.open(hidden, os.O_RDONLY)
        except FileNotFoundError:
            continue  # swept before it was opened
        # On a file system without locks, `sweep` removes nothing.
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        if hidden.exists():
            return hidden, lock
        # Another thread, or a process of another PID namespace, removed the directory before it was locked: try again.
        os.close(lock)


def _clear(hidden: Path, target: Path) -> None:
    """Remove a hidden directory; replaced data in it is moved back to `target` when nothing has that name."""
    with contextlib.suppress(OSError):
        if (hidden / OLD).exists() and not target.exists():
            os.rename(hidden / OLD, target)
        shutil.rmtree(hidden)


def sweep(directory: Path) -> None:
    """Remove the hidden directories that dead processes have left in a directory.

    A process counts as dead when its PID is free and its lock can be acquired. Neither test is enough: PIDs are reused
    and differ between PID namespaces, and some file systems have no locks.
    """
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(directory)):
            found = _HIDDEN.fullmatch(entry.name)
            if found is None or not entry.is_dir(follow_symlinks=False) or _is_alive(int(found["pid"])):
                continue
            with contextlib.suppress(OSError):
                lock = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _clear(Path(entry.path), directory / found["name"])
                finally:
                    os.close(lock)


def _is_alive(pid: int) -> bool:
    """Whether another process has this PID."""
    if pid == os.getpid():
        return False  # containers often reuse a PID; a directory in use is locked
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to; the file is renamed to `path` when the block succeeds. Raises `OSError`."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is a device or a pipe and is not replaced: name a file")
    with hidden_beside(path) as hidden:
        yield hidden / NEW
        os.replace(hidden / NEW, path)


def write_file(path: Path, data: bytes) -> None:
    """Write one file atomically, synced to the disk; raises `OutputError`."""
    try:
        with whole_file(path) as partial:
            write_synced(partial, data)
    except OSError as error:
        raise OutputError(os_error_text("write", path, error)) from None


def write_synced(path: Path, data: bytes) -> None:
    """Write a new file, synced to the disk; raises `OSError`."""
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
