"""The preset `modern-tlc-1t` beside public figures of 1 TB drives, with fewer blocks a plane and all dies."""

import random

import nandlab
import pytest

SMALL = """
seed = 1
[drive]
preset = "modern-tlc-1t"
blocks_per_plane = 24
op = 0.3
[precondition]
used = 0.83
valid = 0.9
"""

QD_1 = "workload.arrival.queue_depth=1"
QD_256 = "workload.arrival.queue_depth=256"


def summary(*sets):
    return nandlab.run(nandlab.load(SMALL, sets)).summary


def reads(requests, size="4KiB", address="uniform"):
    return (
        f"workload.synthetic={{ requests = {requests}, read_fraction = 1.0, size = '{size}', address = '{address}' }}"
    )


def test_random_reads():
    """Measured drives: 59 to 75 us at queue depth 1, 500 thousand to a million a second at 256."""
    assert 59 < summary(reads(20_000), QD_1).latency_us.read.mean < 75
    assert 500_000 < summary(reads(200_000), QD_256).iops < 1_000_000


def test_planes_that_read_independently_are_nearly_as_fast_as_as_many_dies():
    """64 planes of 16 dies, beside 64 dies of one plane on the same channels; the controller is off."""
    alone = (reads(200_000), QD_256, "host.controller=none")
    dies = (
        "drive.planes_per_die=1",
        "drive.dies_per_chip=8",
        "timing.plane_reads=together",
        "timing.multi_plane=false",
    )
    assert summary(*alone).iops > 0.95 * summary(*alone, *dies, "capacitor.capacitance=0").iops


@pytest.mark.parametrize("flushes", [False, True])
def test_random_writes_at_queue_depth_1(flushes, tmp_path):
    """Measured drives: 8 to 14 us. The capacitor protects the buffer, so a flush after each write delays none."""
    drawn = random.Random(1)
    lines = ["fio version 2 iolog", "/dev/sda add", "/dev/sda open"]
    for _ in range(10_000):
        lines.append(f"/dev/sda write {drawn.randrange(1_000_000) * 4096} 4096")
        lines.extend(["/dev/sda sync 0 0"] if flushes else [])
    trace = tmp_path / "writes.log"
    trace.write_text("\n".join([*lines, "/dev/sda close", ""]))
    found = summary(f"workload.trace={trace}", QD_1).latency_us
    assert 8 < found.write.mean < 14
    assert not flushes or 8 < found.flush.mean < 14


def test_sequential_reads_after_a_sequential_fill():
    """Data sheets: 6,000 to 7,000 MB/s."""
    fill = ("precondition.method=fill", "precondition.order=sequential", "workload.arrival.queue_depth=32")
    assert 6_000 < summary(reads(50_000, "128KiB", "sequential"), *fill).mb_per_s < 7_000
