"""What is written appears under its name whole, or not at all.

It is written in a hidden directory beside the name, `.NAME.partial-PID-RANDOM`, and renamed. A process that is killed
leaves that directory; the next one that writes beside it removes it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from nandlab.errors import OutputError, os_error_text

#: In the hidden directory: what gets the name, and what had it before.
NEW, OLD = "new", "old"
_HIDDEN = re.compile(r"\.(?P<name>.+)\.partial-(?P<pid>\d+)(-[0-9a-f]+)?")


@contextlib.contextmanager
def beside(target: Path) -> Iterator[Path]:
    """A hidden directory beside `target`, to write in; it is removed at the end. Raises `OSError`.

    It is locked as long as it is in use.
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
        hidden = target.with_name(f".{target.name}.partial-{os.getpid()}-{secrets.token_hex(3)}")
        hidden.mkdir()
        lock = os.open(hidden, os.O_RDONLY)
        # Where there are no such locks nothing is ever swept.
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        if hidden.exists():
            return hidden, lock
        # To a process of another PID namespace this one looks dead, and the lock was not there yet.
        os.close(lock)


def _clear(hidden: Path, target: Path) -> None:
    """Remove a hidden directory; what `target` was before is put back where nothing has come in its place."""
    with contextlib.suppress(OSError):
        if (hidden / OLD).exists() and not target.exists():
            os.rename(hidden / OLD, target)
        shutil.rmtree(hidden)


def sweep(directory: Path) -> None:
    """Remove what dead processes have left in a directory.

    Dead is a process whose PID is free and whose lock can be had: PIDs are used again, and mean nothing in another PID
    namespace; some file systems have no locks.
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
        return False  # in containers it is often the same one; what is in use has its lock
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file to write, which takes the name `path` when the block ends well. Raises `OSError`."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is a device or a pipe, which is not replaced: name a file")
    with beside(path) as hidden:
        yield hidden / NEW
        os.replace(hidden / NEW, path)


def write_file(path: Path, data: bytes) -> None:
    """Write one file: it is there, and on the disk, whole or not at all."""
    try:
        with whole_file(path) as partial:
            write_synced(partial, data)
    except OSError as error:
        raise OutputError(os_error_text("write", path, error)) from None


def write_synced(path: Path, data: bytes) -> None:
    """Write a file that is not there yet, and have it on the disk."""
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
