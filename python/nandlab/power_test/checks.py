"""The check of an image: the file system recovers, and the command of the user says whether a promise is broken."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from nandlab import _core, live
from nandlab.errors import OutputError

#: Findings of e2fsck that are left after the replay of a journal and mean nothing.
_COUNTS = re.compile(r"Free (blocks|inodes) count wrong|^Fix\?|^Pass \d|^e2fsck |^$|: \*+ WARNING|files \(.*blocks$")
#: The most characters of an output that are kept.
OUTPUT_MAX = 4_000
#: Loop devices that every kernel has.
LOOP_DEVICES = 8


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


@dataclass(frozen=True)
class Image:
    """An image of the drive in a file. A unit that the drive cannot read has zeros there."""

    path: Path
    unit_bytes: int = 1
    #: Addresses of the units that cannot be read, in bytes.
    unreadable: Sequence[int] = ()

    def ranges(self) -> str:
        """The text of `$NANDLAB_LOST`: a line with offset and length of each unit that cannot be read."""
        return "".join(f"{offset} {self.unit_bytes}\n" for offset in self.unreadable)


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


def note(path: Path, text: str) -> None:
    """Write a file of the temporary folder."""
    path.write_text(text)


def _run(*words: str | Path, limit_s: float = 120) -> tuple[int, str]:
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=limit_s,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C"},
    )
    return done.returncode, done.stdout + done.stderr


def _recover_ext4(image: Path) -> str:
    """Replay the journal of an ext4 image; returns why that is not possible, or nothing."""
    status, output = _run("e2fsck", "-y", "-E", "journal_only", image)
    # 1: something was corrected. Blocks that cannot be read are left out, which a kernel does not do.
    return "" if status in (0, 1) and "Input/output error" not in output else output


def _recover_served(drive: live.Drive, image: Path) -> str:
    """Replay the journal of an ext4 image that is served, with its errors where nbdfuse can make it a file."""
    try:
        with drive.as_file() as file:
            return _recover_ext4(file).replace(str(file), "the image")
    except OutputError:
        return _recover_ext4(image)


def _dirty_ext4(image: Path) -> str:
    """What e2fsck finds beside counts of free blocks, which a replay of the journal leaves."""
    status, output = _run("e2fsck", "-fn", image)
    if status == 0:
        return ""
    found = [line for line in output.splitlines() if not _COUNTS.search(line.strip())]
    return "\n".join(found)


def can_mount() -> bool:
    """Whether a served image can be mounted here, so that its file system meets the errors of the drive."""
    return os.geteuid() == 0 and shutil.which("nbdfuse") is not None and Path("/dev/loop-control").exists()


@contextmanager
def _served(image: Image, work: Path) -> Iterator[live.Drive]:
    """The image over NBD: reads of the units that are lost fail."""
    path = work / "served" / f"{image.path.name}.sock"
    server = _core.ImageServer(os.fspath(image.path), os.fspath(path), image.unit_bytes, list(image.unreadable))
    try:
        yield live.Drive(path, server.uri, is_quiet=True)
    finally:
        server.close()


@contextmanager
def _mounted(drive: live.Drive, fs: str, place: Path, work: Path) -> Iterator[str]:
    """The file system of a served image on the folder `place`; gives why it cannot be mounted, or nothing."""
    # Checks that mount wait for one another where a kernel might have no further loop device.
    with (work.parent / f"loop-{os.getpid() % LOOP_DEVICES}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        why = ""
        try:
            drive.mount(place, fs, options="nouuid" if fs == "xfs" else "", make=None)
        except live.MountError as error:
            # The same words each time: without the device and the folder of this image.
            text = str(error).rsplit(f"mount: {place}: ")[-1]
            why = re.sub(r"/dev/loop\d+", "the drive", text.splitlines()[0])
        try:
            yield why
        finally:
            drive.unmount()


@contextmanager
def _files(image: Path, fs: str, place: Path) -> Iterator[str]:
    """The files of a recovered image in the folder `place`; gives why they cannot be had, or nothing."""
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


def check(image: Image, how: How, acked: Path, work: Path, *, with_fsck: bool = False) -> Outcome:
    """Let the file system of an image recover, and run the check of the user. The image is changed.

    Where units of the image cannot be read, the image is served over NBD, which reports them as errors. A file system
    is then mounted from there, and recovers with these errors, if this process may mount. Otherwise the journal of ext4
    is replayed through nbdfuse, where it can be, and the files have zeros in the place of what is lost.
    """
    lost, files = work / f"{image.path.name}.lost", work / f"{image.path.name}.files"
    note(lost, image.ranges())
    files.mkdir()
    env = {
        **os.environ,
        "NANDLAB_IMAGE": str(image.path),
        "NANDLAB_FILES": str(files),
        "NANDLAB_ACKED": str(acked),
        "NANDLAB_LOST": str(lost),
        "NANDLAB_URI": "",
    }
    is_mounted = bool(image.unreadable) and how.fs != "none" and can_mount()
    with ExitStack() as stack:
        drive = None
        if image.unreadable or how.fs == "none":
            drive = stack.enter_context(_served(image, work))
            env["NANDLAB_URI"] = drive.uri
            env["NANDLAB_FILE"] = str(image.path)
            if image.unreadable and how.fs == "none":
                with suppress(OutputError):
                    env["NANDLAB_FILE"] = str(stack.enter_context(drive.as_file()))
        if how.fs == "ext4" and not is_mounted:
            why = _recover_ext4(image.path) if drive is None else _recover_served(drive, image.path)
            if why:
                return Outcome(False, None, why[-OUTPUT_MAX:], dirty=why, reason="the journal is not replayed")
        if is_mounted and drive is not None:
            why = stack.enter_context(_mounted(drive, how.fs, files, work))
        else:
            why = stack.enter_context(_files(image.path, how.fs, files))
        if why and (is_mounted or how.fs != "ext4"):
            return Outcome(False, None, why[-OUTPUT_MAX:], dirty=why, reason="the file system does not mount")
        outcome = _command(how, files, env)
    if with_fsck and how.fs != "none":
        outcome.dirty = _dirty(image.path, how.fs)[-OUTPUT_MAX:]
    shutil.rmtree(files, ignore_errors=True)
    return outcome


def _command(how: How, files: Path, env: dict[str, str]) -> Outcome:
    """Run the command of the user; what it has started ends with it when it takes too long."""
    with subprocess.Popen(
        ["sh", "-c", how.command],
        cwd=files if how.fs != "none" else Path(how.folder),
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=how.limit_s)
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)
            # The pipes are not read to their end: a process that has left the group may hold them.
            text = error.stdout or b""
            output = text.decode(errors="replace") if isinstance(text, bytes) else text
            return Outcome(False, None, output[-OUTPUT_MAX:], reason=f"the check did not end within {how.limit_s:g} s")
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return Outcome(process.returncode == 0, process.returncode, (output + errors)[-OUTPUT_MAX:])


def _dirty(image: Path, fs: str) -> str:
    """What the file system's own check finds, after its own recovery."""
    if fs == "ext4":
        return _dirty_ext4(image)
    words = ("xfs_repair", "-n") if fs == "xfs" else ("btrfs", "check", "--readonly")
    status, output = _run(*words, image)
    return output if status else ""


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
