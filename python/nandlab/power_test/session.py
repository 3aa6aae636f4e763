"""The session of a power test: a file system on a live drive, the set-up and the workload, recorded."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nandlab import live
from nandlab.errors import OutputError
from nandlab.power_test.instants import BEGIN, END, SYNCED

#: How a file system is made: nothing is initialised later in the background, and no block is trimmed.
MAKE = {
    "ext4": ("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"),
    "xfs": ("mkfs.xfs", "-q", "-f", "-K"),
    "btrfs": ("mkfs.btrfs", "-q", "-f", "-K"),
}
#: The system calls by which a program asks for durability.
_SYNCS = "fsync,fdatasync,sync,syncfs,msync,sync_file_range"
#: The most characters of an output that are shown.
_SHOWN = 2_000


def needed(fs: str, *, records: bool) -> list[str]:
    """The programs that a power test with this file system needs and this machine does not have.

    Without `records` the session is recorded already.
    """
    checks = {"ext4": ["e2fsck", "debugfs"], "xfs": ["xfs_repair"], "btrfs": ["btrfs"], "none": []}
    words = checks[fs] + (["nbdfuse", f"mkfs.{fs}"] if records and fs != "none" else [])
    return [word for word in words if shutil.which(word) is None]


def record(
    spec: Path,
    recording: Path,
    *,
    fs: str,
    mount_options: str,
    setup: str | None,
    workload: str,
    sets: Sequence[str] = (),
) -> dict[str, Any]:
    """Run set-up and workload on a live drive, and record the session in the new file `recording`.

    Returns what is known of the session beside the recording: `fs`, `mount_options`, and with strace `fsyncs`, the
    number of calls of fsync and its like in the workload.

    Raises `OutputError` when a command fails, with its output.
    """
    if fs != "none" and os.geteuid() != 0:
        raise OutputError(
            f"--fs {fs}: a file system is mounted only by root\n  remedy: run as root; or --fs none, where the "
            "workload opens the file $NANDLAB_FILE; or record in a guest, and --recording FILE"
        )
    with tempfile.TemporaryDirectory(prefix="nandlab-power-") as folder:
        place, pipe = Path(folder) / "mnt", Path(folder) / "ack"
        place.mkdir()
        # Programs of other users may work on the file system.
        Path(folder).chmod(0o711)
        place.chmod(0o755)
        os.mkfifo(pipe, 0o622)
        pipe.chmod(0o622)
        options = ["--record", os.fspath(recording), "--ack", os.fspath(pipe)]
        for one in sets:
            options += ["--set", one]
        with live.serve(spec, *options, speed="max") as drive, _mounted(drive, fs, mount_options, place) as file:
            env = {**os.environ, "NANDLAB_ACK": os.fspath(pipe), "NANDLAB_URI": drive.uri, "NANDLAB_MOUNT": ""}
            cwd = Path.cwd()
            if fs == "none":
                env["NANDLAB_FILE"] = "" if file is None else os.fspath(file)
            else:
                env["NANDLAB_MOUNT"] = os.fspath(place)
                cwd = place
            if setup is not None:
                _run("--setup", setup, env, cwd)
            _sync(fs, place, file)
            drive.mark(BEGIN)
            fsyncs = _run("--workload", workload, env, cwd, calls=Path(folder) / "calls")
            drive.mark(END)
            _sync(fs, place, file)
            drive.mark(SYNCED)
        return {"fs": fs, "mount_options": mount_options, "fsyncs": fsyncs}


@contextlib.contextmanager
def _mounted(drive: live.Drive, fs: str, options: str, place: Path) -> Iterator[Path | None]:
    """A new file system of the drive on the folder `place`; without one, the drive as a file where that is possible."""
    if fs != "none":
        drive.mount(place, fs, options=options, make=MAKE[fs])
        try:
            yield None
        finally:
            drive.unmount()
    elif live.can_be_file():
        with drive.as_file() as file:
            yield file
    else:
        yield None


def _sync(fs: str, place: Path, file: Path | None) -> None:
    target = place if fs != "none" else file
    if target is not None:
        subprocess.run(["sync", *(["-f"] if fs != "none" else []), os.fspath(target)], check=True)


def _run(option: str, command: str, env: dict[str, str], cwd: Path, calls: Path | None = None) -> int | None:
    """Run a command; with `calls`, a file, and where strace works returns the number of its calls of fsync."""
    words = ["sh", "-c", command]
    traces = calls is not None and _can_trace()
    if traces:
        words = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", os.fspath(calls or ""), "-e", f"trace={_SYNCS}", *words]
    done = subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        output = (done.stdout + done.stderr)[-_SHOWN:].rstrip()
        raise OutputError(
            f"{option}: the command ended with status {done.returncode}: {command}\n{output}\n"
            "  remedy: the commands of a power test run in the mounted file system, $NANDLAB_MOUNT"
        )
    if not traces or calls is None:
        return None
    return sum("sync" in line for line in calls.read_text(errors="replace").splitlines())


def _can_trace() -> bool:
    """Whether strace works here; some containers forbid it."""
    if shutil.which("strace") is None:
        return False
    words = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", f"trace={_SYNCS}", "true"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0
