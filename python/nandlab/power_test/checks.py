"""The check of an image: the file system recovers, and the command of the user says whether a promise is broken."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

#: Findings of e2fsck that are left after the replay of a journal and mean nothing.
_COUNTS = re.compile(r"Free (blocks|inodes) count wrong|^Fix\?|^Pass \d|^e2fsck |^$|: \*+ WARNING|files \(.*blocks$")
#: The most characters of an output that are kept.
OUTPUT_MAX = 4_000


@dataclass(frozen=True)
class How:
    """How images are checked."""

    #: The file system: ext4, xfs, btrfs or none.
    fs: str
    #: The command of the check, for the shell.
    command: str
    #: The longest time of a check, in seconds of this machine.
    limit_s: float
    #: The folder in which the command of the user was given, where checks start without a file system.
    folder: str


@dataclass
class Outcome:
    """The outcome of a check."""

    passed: bool
    #: The exit status of the command; `None`: it did not end in time, or the file system did not recover.
    status: int | None
    output: str
    #: What the file system's own check found after its recovery; empty: nothing.
    dirty: str = ""
    #: Why the command was not run.
    reason: str = ""


def _run(*words: str | Path, limit_s: float = 120) -> tuple[int, str]:
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=limit_s,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stdout + done.stderr


def _recover_ext4(image: Path) -> str:
    """Replay the journal of an ext4 image; returns why that is not possible, or nothing."""
    status, output = _run("e2fsck", "-y", "-E", "journal_only", image)
    # 1: something was corrected.
    return "" if status in (0, 1) else output


def _dirty_ext4(image: Path) -> str:
    """What e2fsck finds beside counts of free blocks, which a replay of the journal leaves."""
    status, output = _run("e2fsck", "-fn", image)
    if status == 0:
        return ""
    found = [line for line in output.splitlines() if not _COUNTS.search(line.strip())]
    return "\n".join(found)


@contextmanager
def _files(image: Path, fs: str, place: Path) -> Iterator[str]:
    """The files of a recovered image in the folder `place`; gives why they cannot be had, or nothing."""
    place.mkdir()
    if fs == "none":
        yield ""
        return
    if fs == "ext4":
        # The files of other users are made those of this one.
        status, output = _run("debugfs", "-R", f"rdump / {place}", image)
        shutil.rmtree(place / "lost+found", ignore_errors=True)
        yield output if status else ""
        return
    options = "loop,nouuid" if fs == "xfs" else "loop"
    status, output = _run("mount", "-o", options, image, place)
    try:
        yield output if status else ""
    finally:
        if status == 0:
            _run("umount", place)


def check(image: Path, how: How, acked: Path, lost: Path, work: Path, *, with_fsck: bool = False) -> Outcome:
    """Let the file system of an image recover, and run the check of the user. The image is changed."""
    if how.fs == "ext4":
        why = _recover_ext4(image)
        if why:
            return Outcome(False, None, why[-OUTPUT_MAX:], dirty=why, reason="the journal is not replayed")
    files = work / f"{image.name}.files"
    with _files(image, how.fs, files) as why:
        if why and how.fs != "ext4":
            return Outcome(False, None, why[-OUTPUT_MAX:], dirty=why, reason="the file system does not mount")
        env = {
            **os.environ,
            "NANDLAB_IMAGE": str(image),
            "NANDLAB_FILES": str(files),
            "NANDLAB_ACKED": str(acked),
            "NANDLAB_LOST": str(lost),
        }
        start = files if how.fs != "none" else Path(how.folder)
        try:
            done = subprocess.run(
                ["sh", "-c", how.command],
                cwd=start,
                env=env,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=how.limit_s,
                stdin=subprocess.DEVNULL,
            )
            status, output = done.returncode, done.stdout + done.stderr
            reason = ""
        except subprocess.TimeoutExpired as error:
            text = error.stdout or b""
            status, output = None, text.decode(errors="replace") if isinstance(text, bytes) else text
            reason = f"the check did not end within {how.limit_s:g} s"
    outcome = Outcome(status == 0, status, output[-OUTPUT_MAX:], reason=reason)
    if with_fsck and how.fs == "ext4":
        outcome.dirty = _dirty_ext4(image)[-OUTPUT_MAX:]
    elif with_fsck and how.fs == "xfs":
        status, output = _run("xfs_repair", "-n", image)
        outcome.dirty = output[-OUTPUT_MAX:] if status else ""
    elif with_fsck and how.fs == "btrfs":
        status, output = _run("btrfs", "check", "--readonly", image)
        outcome.dirty = output[-OUTPUT_MAX:] if status else ""
    shutil.rmtree(files, ignore_errors=True)
    return outcome


def file_of(image: Path, offset: int) -> str:
    """The file of an ext4 image that has the byte, or what else has it; empty where debugfs cannot say so."""
    _, stats = _run("dumpe2fs", "-h", image)
    size = re.search(r"^Block size:\s+(\d+)", stats, re.M)
    if size is None:
        return ""
    block = offset // int(size[1])
    _, found = _run("debugfs", "-R", f"icheck {block}", image)
    inode = re.search(rf"^{block}\s+(\d+)", found, re.M)
    if inode is None:
        return ""
    if inode[1] == "8":
        return "the journal"
    _, found = _run("debugfs", "-R", f"ncheck {inode[1]}", image)
    name = re.search(rf"^{inode[1]}\s+(.+)$", found, re.M)
    return name[1] if name else f"inode {inode[1]}"
