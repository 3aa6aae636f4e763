"""Live drives: a simulated drive that real programs use as a block device.

    with nandlab.live.serve("drive.toml", speed="max") as drive:
        subprocess.run(["qemu-io", "-f", "raw", "-c", "write -P 7 0 4096", "-c", "flush", drive.uri])
        drive.cut()
        lost = drive.restore()              # what the power loss has cost
        print(drive.stat()["iops"])

`serve` starts the command `nandlab serve` and needs Linux; `Drive` gives orders to a drive that is served already.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nandlab.errors import OutputError

__all__ = ["Drive", "MountError", "can_be_file", "folder", "orders_path", "running", "serve"]

#: What the socket for orders is called after that of the clients.
_SUFFIX = ".orders"
#: How often is told that a server has not ended yet, in seconds.
_TOLD_EVERY_S = 2.0
#: The most bytes of the text of a mark.
_MARK_MAX = 1000


def folder() -> Path:
    """The folder of the sockets of this user: `nandlab` in $XDG_RUNTIME_DIR, else `/tmp/nandlab-UID`."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "nandlab" if runtime else Path(tempfile.gettempdir()) / f"nandlab-{os.getuid()}"


def orders_path(path: Path) -> Path:
    """The socket for orders of the drive whose clients connect to `path`."""
    return path.with_name(path.name + _SUFFIX)


def running() -> list[Path]:
    """The sockets of the drives of this user in `folder`, served or left behind."""
    return sorted(path.with_name(path.name.removesuffix(_SUFFIX)) for path in folder().glob(f"*{_SUFFIX}"))


def can_be_file() -> bool:
    """Whether `Drive.as_file` works here."""
    return shutil.which("nbdfuse") is not None and os.access("/dev/fuse", os.R_OK | os.W_OK)


class MountError(OutputError):
    """The system refuses to mount the file system of a drive."""


class Drive:
    """A live drive that is served, by the socket to which its clients connect.

    Every method raises `OutputError` when no drive is served there, or when the drive refuses the order.
    """

    def __init__(
        self, path: str | os.PathLike[str], uri: str = "", pid: int | None = None, *, is_quiet: bool = False
    ) -> None:
        #: The socket of the drive's clients.
        self.path = Path(path)
        #: The NBD URI for clients; empty if the drive was not started by `serve`.
        self.uri = uri
        #: The process of the server; `None` if the drive was not started by `serve`.
        self.pid = pid
        #: Whether errors of the drive that nbdfuse meets are not printed.
        self.is_quiet = is_quiet

    def stat(self) -> dict[str, Any]:
        """State and results so far: requests, simulated IOPS and latencies, lateness."""
        return self._order("stat")

    def state(self) -> dict[str, Any]:
        """What the drive does at the moment: dies, superblocks, background jobs, buffer, capacitor, wear."""
        return self._order("state")

    def smart(self) -> dict[str, Any]:
        """The SMART log, as `smart.json`."""
        return self._order("smart")

    def fdp(self) -> dict[str, Any]:
        """The logs of placement handles, as `fdp.json`; `nandlab.fdp.lines` prints one of them as nvme-cli does."""
        return self._order("fdp")

    def update_handle(self, placement: int) -> dict[str, Any]:
        """The placement identifier goes on in a fresh reclaim unit, as with NVMe's reclaim unit handle update."""
        if not 0 <= placement <= 0xFFFF:
            raise OutputError(f"update: {placement} is no placement identifier\n  remedy: name one from 0 to 65535")
        return self._order(f"update-handle {placement}")

    def cut(self, *, in_recovery_s: float | None = None) -> dict[str, Any]:
        """Power fails now. Replies that are complete are sent first, then every connection ends.

        With `in_recovery_s`, while power is off: power returns and fails again after this simulated time, in recovery.
        `power` of the result is `"on"` if recovery has ended before.
        """
        if in_recovery_s is not None:
            return self._order(f"cut-in-recovery {round(in_recovery_s * 1e9)}")
        return self._order("cut")

    def restore(self) -> dict[str, Any]:
        """Power returns. The result is the record of the power loss, as an entry of `losses` in `power.json`.

        `covered`, `acknowledged` and `in_flight` list the units whose writes are lost.
        """
        return self._order("restore")

    def detect(self) -> dict[str, Any]:
        """A detection of the dirty budget begins."""
        return self._order("detect")

    def save(self) -> dict[str, Any]:
        """The drive is saved with its data, and its recording begins anew: a drive with a folder of ``--data``."""
        return self._order("save")

    def mark(self, text: str = "") -> dict[str, Any]:
        """A mark with this text goes to the recording of the session; the result has its simulated time, `at_s`."""
        if "\n" in text or len(text.encode()) > _MARK_MAX:
            raise OutputError(f"mark: a text is one line of at most {_MARK_MAX} bytes")
        return self._order(f"mark {text}")

    def stop(self, *, timeout_s: float = 600.0, waiting: Callable[[float], object] | None = None) -> dict[str, Any]:
        """The server ends; the result is that of `stat` at the end.

        The order returns when the drive is saved and another server can go on with it. While that takes longer,
        `waiting` is called every two seconds with the seconds so far; after `timeout_s` seconds `OutputError` is
        raised, and the server goes on saving.
        """
        return self._order("stop", timeout_s=timeout_s, waiting=waiting)

    def mount(
        self,
        place: str | os.PathLike[str],
        kind: str = "ext4",
        *,
        options: str = "",
        make: Sequence[str] | None = (),
    ) -> None:
        """Mount the drive's file system on `place`, through nbdfuse and a loop device; needs root.

        A drive without a file system gets one, by the program `mkfs.KIND` or by the command `make`, to which the device
        is added; with `None` it gets none. `options` are those of `mount -o`. What is mounted of the drive, such as
        before a power loss, is unmounted first.

        Raises `MountError` when the system refuses to mount the file system.
        """
        self.unmount()
        file = self._make_file()
        try:
            disk = _run("losetup", "--find", "--show", file).strip()
            if make is not None and not _run("blkid", "-p", disk, may_fail=True):
                _run(*(make or (f"mkfs.{kind}", "-q")), disk)
            try:
                _run("mount", *(["-o", options] if options else []), disk, place)
            except OutputError as error:
                raise MountError(str(error)) from None
        except OutputError:
            self.unmount()
            raise

    def unmount(self) -> None:
        """Unmount the drive's file system. Without power, what was not written is lost."""
        file = str(self._file)
        # The file cannot be looked at when nbdfuse has ended with the drive's power.
        rows = (row.split(maxsplit=1) for row in _run("losetup", "-l", "-n", "-O", "NAME,BACK-FILE").splitlines())
        for disk in [row[0] for row in rows if row[1:] and row[1].strip().removesuffix(" (deleted)") == file]:
            for place in _run("findmnt", "-n", "-o", "TARGET", "-S", disk, may_fail=True).splitlines():
                # A file system that is busy, or whose drive has no power, is detached.
                if not _run("umount", place, may_fail=True, tells=True):
                    _run("umount", "-l", place)
            _run("losetup", "-d", disk, may_fail=True)
        _run("umount", "-l", self._file.parent, may_fail=True)

    @contextlib.contextmanager
    def as_file(self) -> Iterator[Path]:
        """The drive as a file, through nbdfuse, while the block runs; an ordinary user can do that."""
        file = self._make_file()
        try:
            yield file
        finally:
            for command in (["fusermount3", "-u"], ["fusermount", "-u"], ["umount"]):
                if shutil.which(command[0]) and _run(*command, file.parent, may_fail=True, tells=True):
                    break

    def _make_file(self) -> Path:
        """Let nbdfuse make the drive a file."""
        file = self._file
        file.parent.mkdir(mode=0o700, exist_ok=True)
        uri = self.uri or f"nbd+unix:///?socket={self.path.absolute()}"
        try:
            errors = subprocess.DEVNULL if self.is_quiet else None
            fuse = subprocess.Popen(
                ["nbdfuse", file, uri], start_new_session=True, stdout=subprocess.DEVNULL, stderr=errors
            )
        except FileNotFoundError:
            raise OutputError("nbdfuse is missing\n  remedy: install it (Debian: libnbd-bin)") from None
        deadline = time.monotonic() + 30
        while not file.exists():
            if fuse.poll() is not None or time.monotonic() > deadline:
                fuse.terminate()
                raise OutputError(f"nbdfuse cannot make {self.path} a file: is power on, and are you root?")
            time.sleep(0.01)
        return file

    @property
    def _file(self) -> Path:
        """The file that nbdfuse makes of the drive."""
        return self.path.absolute().with_name(f"{self.path.name}.file") / "drive"

    def _order(
        self, word: str, *, timeout_s: float | None = None, waiting: Callable[[float], object] | None = None
    ) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            try:
                connection.connect(os.fspath(orders_path(self.path)))
                connection.sendall(f"{word}\n".encode())
                if timeout_s is not None:
                    self._wait(connection, timeout_s, waiting)
                answer = b"".join(iter(lambda: self._receive(connection), b""))
            except OSError as error:
                raise OutputError(
                    f"no drive is served on {self.path}: {error.strerror or error}\n"
                    "  remedy: start one with `nandlab serve`, or name its socket with --socket"
                ) from None
        if not answer:
            raise OutputError(f"the server of {self.path} has ended without an answer")
        parsed: dict[str, Any] = json.loads(answer)
        if "error" in parsed:
            raise OutputError(f"{word.split(maxsplit=1)[0]}: {parsed['error']}")
        result: dict[str, Any] = parsed["ok"]
        return result

    def _wait(self, connection: socket.socket, timeout_s: float, waiting: Callable[[float], object] | None) -> None:
        """Wait for the first bytes of an answer."""
        begin, waited_s = time.monotonic(), 0.0
        while not select.select([connection], [], [], min(_TOLD_EVERY_S, timeout_s - waited_s))[0]:
            waited_s = min(time.monotonic() - begin, timeout_s)
            if waited_s == timeout_s:
                raise OutputError(
                    f"the server of {self.path} has not ended after {waited_s:.0f} s, and goes on saving the drive\n"
                    "  remedy: wait for its end"
                )
            if waiting is not None:
                waiting(waited_s)

    @staticmethod
    def _receive(connection: socket.socket) -> bytes:
        part = connection.recv(1 << 16)
        if part.endswith(b"\n"):
            # The answer is one line; the server would wait for further orders.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        return part


def _run(*words: str | os.PathLike[str], may_fail: bool = False, tells: bool = False) -> str:
    """The output of a program; with `tells` a text that is empty only if the program has failed."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise OutputError(f"{words[0]} is missing: install it") from None
    if done.returncode != 0 and not may_fail:
        raise OutputError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    if tells:
        return "" if done.returncode else "done"
    return done.stdout if done.returncode == 0 else ""


@contextlib.contextmanager
def serve(spec: str | os.PathLike[str], *options: str, speed: str | float = 1) -> Iterator[Drive]:
    """Serve the drive of a spec file while the block runs; `options` are those of the command `nandlab serve`.

    The drive listens on a Unix socket of its own unless `options` has --socket.
    """
    with tempfile.TemporaryDirectory(prefix="nandlab-") as own:
        path = Path(own) / "drive.sock"
        words = ["serve", os.fspath(spec), "--socket", os.fspath(path), "--speed", str(speed), *options]
        if "--socket" in options:
            path = Path(options[len(options) - 1 - options[::-1].index("--socket") + 1])
        command = [sys.executable, "-m", "nandlab", *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                uri = process.stdout.readline().strip()
                if not uri:
                    raise OutputError(f"the drive cannot be served: `nandlab {' '.join(words)}` has ended")
                yield Drive(path, uri, process.pid)
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                process.communicate()
