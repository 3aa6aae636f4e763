"""Live drives for as long as one likes: power cuts under a program that knows what was synced, and a guest of QEMU.

NANDLAB_LIVE_MINUTES is the length; `make soak` sets it. Without it there are three cuts, and no guest.
"""

import errno
import os
import random
import re
import selectors
import subprocess
import threading
import time
from contextlib import contextmanager

import pytest
from nandlab import _core, live, simulate
from test_live import CACHE, SPEC, mounted, needs, needs_root, run

MINUTES = float(os.environ.get("NANDLAB_LIVE_MINUTES", 0))
#: Wall time between two cuts.
EVERY_S = 30.0 if MINUTES else 2.0
#: The blocks of the files are those of the file system. By itself mkfs.ext4 gives so small a drive blocks of 1 KiB, of
#: which a power loss may leave some old and some new.
BLOCK = 4096
MAKE = ("mkfs.ext4", "-q", "-b", str(BLOCK))


class Writer:
    """Writes files, and knows which content each may have after a power loss.

    Each action ends with what makes it durable: an fsync of the file, of the directory, or both. So after a power loss
    only the last action may be undone or done in part; what came before it must be there.
    """

    def __init__(self, seed):
        self.random = random.Random(seed)
        #: By name, the blocks of the file as they were synced.
        self.synced = {}
        #: The action under way: the files that it may change, with the blocks that each may have after it; `None` for a
        #: file that may be missing.
        self.under_way = {}
        self.actions = 0
        self.error = None

    def run(self, place):
        """Act until the file system fails, and keep the error."""
        try:
            while True:
                act = self.random.choice(
                    [self.create, self.overwrite, self.overwrite, self.append, self.rename, self.unlink, self.scribble]
                )
                act(place)
                self.actions += 1
        except OSError as error:
            self.error = error

    def data(self):
        return self.random.randbytes(BLOCK)

    def some(self):
        return self.random.choice(sorted(self.synced)) if self.synced else None

    def done(self):
        """The action under way is durable."""
        for name, blocks in self.under_way.items():
            if blocks is None:
                self.synced.pop(name, None)
            else:
                self.synced[name] = blocks
        self.under_way = {}

    def scribble(self, place):
        """Write a file of which nothing is synced, and nothing is known after a power loss."""
        (place / f"n{self.random.randrange(5)}").write_bytes(
            self.random.randbytes(BLOCK * self.random.randrange(1, 40))
        )

    def create(self, place):
        if len(self.synced) >= 200:
            return
        name = f"f{self.random.randrange(10**9)}"
        self.under_way = {name: [self.data() for _ in range(self.random.randrange(1, 40))]}
        with (place / name).open("wb", buffering=0) as file:
            file.write(b"".join(self.under_way[name]))
            os.fsync(file.fileno())
        sync_folder(place)
        self.done()

    def overwrite(self, place):
        if (name := self.some()) is None:
            return
        blocks = list(self.synced[name])
        places = [self.random.randrange(len(blocks)) for _ in range(self.random.randrange(1, 5))]
        for at in places:
            blocks[at] = self.data()
        self.under_way = {name: blocks}
        with (place / name).open("r+b", buffering=0) as file:
            for at in places:
                file.seek(at * BLOCK)
                file.write(blocks[at])
            os.fdatasync(file.fileno())
        self.done()

    def append(self, place):
        if (name := self.some()) is None or len(self.synced[name]) >= 60:
            return
        more = [self.data() for _ in range(self.random.randrange(1, 5))]
        self.under_way = {name: self.synced[name] + more}
        with (place / name).open("ab", buffering=0) as file:
            file.write(b"".join(more))
            os.fsync(file.fileno())
        self.done()

    def rename(self, place):
        if (name := self.some()) is None:
            return
        new = f"r{self.random.randrange(10**9)}"
        self.under_way = {name: None, new: self.synced[name]}
        (place / name).rename(place / new)
        sync_folder(place)
        self.done()

    def unlink(self, place):
        if (name := self.some()) is None or len(self.synced) < 50:
            return
        self.under_way = {name: None}
        (place / name).unlink()
        sync_folder(place)
        self.done()

    def check(self, place):
        """Compare the files with what was synced; the action under way becomes what the file system has made of it."""
        there = {path.name: path.read_bytes() for path in place.iterdir() if path.name[0] in "fr"}
        for name, after in self.under_way.items():
            before = self.synced.pop(name, None)
            found = there.get(name)
            if found is None:
                assert before is None or after is None, f"{name} was synced and is gone"
                continue
            assert before is not None or after is not None, f"{name} has come back"
            blocks = [found[at : at + BLOCK] for at in range(0, len(found), BLOCK)]
            if before is not None and after is not None:
                assert len(blocks) >= len(before), f"{name} is shorter than what was synced"
                for at, block in enumerate(blocks):
                    known = [version[at] for version in (before, after) if at < len(version)]
                    # A block that is appended may be there in part.
                    assert block in known or at >= len(before), f"block {at} of {name}"
            self.synced[name] = blocks
        self.under_way = {}
        for name, blocks in self.synced.items():
            assert name in there, f"{name} was synced and is gone"
            assert there[name] == b"".join(blocks), f"{name} is not as it was synced"
        assert set(there) == set(self.synced), "files that nobody has written"


def sync_folder(place):
    folder = os.open(place, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@needs_root
@needs("nbdfuse", "losetup", "mkfs.ext4")
@pytest.mark.parametrize("kept", [pytest.param((), id="no cache"), pytest.param(CACHE, id="cache")])
def test_what_was_synced_survives_cuts_at_any_time(tmp_path, kept):
    spec = tmp_path / "drive.toml"
    spec.write_text(SPEC)
    seed = time.time_ns() if MINUTES else 1
    writer, until, cuts, lost = Writer(seed), time.monotonic() + MINUTES * 30, 0, 0
    with live.serve(spec, *kept, speed="max") as drive:
        while cuts < 3 or time.monotonic() < until:
            with mounted(drive, tmp_path, make=MAKE) as place:
                writer.check(place)
                work = threading.Thread(target=writer.run, args=(place,))
                work.start()
                time.sleep(EVERY_S * writer.random.uniform(0.5, 1.5))
                drive.cut()
                work.join(60)
                assert not work.is_alive(), "the program hangs on a drive without power"
                assert writer.error.errno in (errno.EIO, errno.EROFS, errno.ENOTCONN, errno.ESHUTDOWN), writer.error
            losses = drive.restore()
            assert losses["covered"] == [], f"seed {seed}, cut {cuts}"
            cuts, lost = cuts + 1, lost + len(losses["acknowledged"])
        with mounted(drive, tmp_path, make=MAKE) as place:
            writer.check(place)
    print(f"seed {seed}: {cuts} cuts, {writer.actions} actions, {lost} acknowledged units lost")
    assert writer.actions > 20 * cuts, "the program did next to nothing"


def test_the_check_of_the_writer_notices_what_is_wrong(tmp_path):
    def damaged(damage):
        place = tmp_path / damage.__name__
        place.mkdir()
        writer = Writer(1)
        for _ in range(10):
            writer.create(place)
        name = writer.some()
        writer.check(place)
        damage(writer, place, name)
        with pytest.raises(AssertionError) as found:
            writer.check(place)
        return str(found.value)

    def a_block_is_old(writer, place, name):
        old = (place / name).read_bytes()
        writer.synced[name] = [writer.data(), *writer.synced[name][1:]]
        assert old != b"".join(writer.synced[name])

    def a_file_is_gone(_writer, place, name):
        (place / name).unlink()

    def a_file_is_back(writer, _place, name):
        writer.under_way = {name: None}
        writer.done()

    def a_block_is_torn(writer, place, name):
        writer.under_way = {name: [writer.data(), *writer.synced[name][1:]]}
        (place / name).write_bytes(bytes(BLOCK) + b"".join(writer.synced[name][1:]))

    def a_file_is_shorter(writer, place, name):
        writer.under_way = {name: [*writer.synced[name], writer.data()]}
        (place / name).write_bytes(b"")

    assert "not as it was synced" in damaged(a_block_is_old)
    assert "is gone" in damaged(a_file_is_gone)
    assert "nobody has written" in damaged(a_file_is_back)
    assert "block 0" in damaged(a_block_is_torn)
    assert "is shorter" in damaged(a_file_is_shorter)


#: The kernel's modules that the guest loads.
MODULES = ["virtio_pci", "virtio_blk", "virtio_console", "crc32c_generic", "ext4"]

INIT = """\
#!/bin/busybox sh
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t devtmpfs none /dev
for module in %s; do /bin/busybox insmod /$module; done
until [ -b /dev/vda ]; do /bin/busybox sleep 0.1; done
/bin/busybox mount -t ext4 /dev/vda /mnt && echo MOUNTED > /dev/ttyS0
if [ -f /mnt/synced ]; then
    /bin/busybox md5sum /mnt/synced > /dev/ttyS0
    echo END > /dev/ttyS0
fi
/bin/busybox dd if=/dev/urandom of=/mnt/synced bs=65536 count=50
/bin/busybox sync
/bin/busybox md5sum /mnt/synced > /dev/ttyS0
for port in /dev/vport*p1; do echo "synced one" > $port; echo "synced two" > $port; done
echo SYNCED > /dev/ttyS0
while true; do /bin/busybox dd if=/dev/urandom of=/mnt/other bs=65536 count=20; done
"""


def archive(files):
    """A cpio archive (newc) with these files, each with its mode; `None` is a folder."""
    out = bytearray()
    for number, (name, mode, data) in enumerate([*files, ("TRAILER!!!", 0, b"")], 1):
        kind = 0o040000 if data is None else 0o100000
        fields = [number, kind | mode if mode else 0, 0, 0, 1, 0, len(data or b""), 0, 0, 0, 0, len(name) + 1, 0]
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + bytes(1)
        out += bytes(-len(out) % 4) + (data or b"")
        out += bytes(-len(out) % 4)
    return bytes(out)


@pytest.fixture(scope="module")
def guest(tmp_path_factory):
    """A kernel and an initial RAM disk, of two packages that are unpacked and not installed."""
    if not MINUTES:
        pytest.skip("the guest is for `make soak`")
    place = tmp_path_factory.mktemp("guest")
    depends = run("apt-cache", "depends", "--important", "linux-image-cloud-amd64")
    kernel = re.search(r"Depends: (linux-image-\S+)", depends)[1]
    if subprocess.run(["apt-get", "download", kernel, "busybox-static"], cwd=place, capture_output=True).returncode:
        pytest.skip("the packages of the guest cannot be had: apt-get download")
    for package in place.glob("*.deb"):
        run("dpkg-deb", "-x", package, place)
    modules = {path.name.split(".")[0].replace("-", "_"): path for path in place.glob("lib/modules/**/*.ko")}
    order = []

    def load(name):
        if name not in modules or modules[name] in order:
            return  # built in, or loaded
        needed = re.search(rb"\0depends=([^\0]*)\0", modules[name].read_bytes())
        for other in needed[1].decode().split(",") if needed else []:
            load(other.replace("-", "_"))
        order.append(modules[name])

    for name in MODULES:
        load(name)
    files = [(name, 0o755, None) for name in ("proc", "dev", "mnt", "bin")]
    files.append(("bin/busybox", 0o755, (place / "bin/busybox").read_bytes()))
    files += [(path.name, 0o644, path.read_bytes()) for path in order]
    files.append(("init", 0o755, (INIT % " ".join(path.name for path in order)).encode()))
    (place / "initrd").write_bytes(archive(files))
    return next(place.glob("boot/vmlinuz-*")), place / "initrd"


@contextmanager
def booted(guest, drive, pipes):
    """The guest with the drive as its disk; yields a function that waits for a line of its console.

    Its virtio-serial port is connected to two pipes: the path `pipes` with the suffixes .in and .out.
    """
    kernel, initrd = guest
    disk = f"driver=nbd,node-name=disk,server.type=unix,server.path={drive.path}"
    command = ["qemu-system-x86_64", "-m", "256", "-display", "none", "-serial", "stdio", "-monitor", "none"]
    command += ["-no-reboot", "-kernel", str(kernel), "-initrd", str(initrd), "-append", "console=ttyS0 quiet panic=-1"]
    command += ["-blockdev", disk, "-device", "virtio-blk-pci,drive=disk", "-device", "virtio-serial-pci"]
    command += ["-chardev", f"pipe,id=ack,path={pipes}", "-device", "virtserialport,chardev=ack"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as qemu:
        seen = b""

        def until(text, within_s=300.0):
            nonlocal seen
            deadline = time.monotonic() + within_s
            with selectors.DefaultSelector() as ready:
                ready.register(qemu.stdout, selectors.EVENT_READ)
                while text.encode() not in seen:
                    assert time.monotonic() < deadline, f"no {text} in {seen.decode(errors='replace')}"
                    if ready.select(1.0):
                        part = os.read(qemu.stdout.fileno(), 65536)
                        assert part, f"the guest has ended: {seen.decode(errors='replace')}"
                        seen += part
            return seen.decode(errors="replace")

        try:
            yield until
        finally:
            qemu.kill()


@needs("qemu-system-x86_64", "qemu-img", "mkfs.ext4", "apt-get", "dpkg-deb")
def test_a_guest_keeps_what_it_has_synced(guest, tmp_path):
    spec = tmp_path / "drive.toml"
    spec.write_text(SPEC)
    # With a single pipe QEMU would read the lines that it has written.
    pipes, recording = tmp_path / "ack", tmp_path / "session.rec"
    for end in ("in", "out"):
        os.mkfifo(f"{pipes}.{end}")
    options = ["--ack", f"{pipes}.out", "--record", str(recording)]
    with live.serve(spec, *CACHE, *options, speed="max") as drive:
        image = tmp_path / "image"
        size = int(re.search(r'"virtual-size": (\d+)', run("qemu-img", "info", "--output=json", drive.uri))[1])
        with image.open("wb") as file:
            file.truncate(size)
        run("mkfs.ext4", "-q", image)
        run("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", image, drive.uri)
        with booted(guest, drive, pipes) as until:
            shown = until("SYNCED")
            synced = re.search(r"([0-9a-f]{32})  /mnt/synced", shown)[1]
            time.sleep(2.0)
            drive.cut()
        assert drive.restore()["covered"] == []
        with booted(guest, drive, pipes) as until:
            shown = until("END")
            assert "MOUNTED" in shown
            assert re.search(r"([0-9a-f]{32})  /mnt/synced", shown)[1] == synced
    acknowledged = _core.recording_moments(str(recording), simulate.recorded_spec(recording))["acknowledged"]
    assert [line for _, line in acknowledged][:2] == ["synced one", "synced two"]
