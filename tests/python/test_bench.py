"""The tool of `make bench`, without measuring."""

from __future__ import annotations

from pathlib import Path

import bench
import nandlab
import pytest


def test_the_interval_leaves_out_the_smallest_and_the_largest() -> None:
    assert bench.interval([9.0, 1.0, 2.0, 7.0, 3.0]) == (3.0, 2.0, 7.0)


def test_the_trace_fills_the_drive_and_then_overwrites_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "RANDOM_WRITES", 10_000)
    trace, again = tmp_path / "same-work.trace", tmp_path / "again.trace"
    bench.write_trace(trace)
    bench.write_trace(again)
    assert trace.read_bytes() == again.read_bytes()
    (tmp_path / "spec.toml").write_text(bench.SPEC)
    summary = nandlab.run(tmp_path / "spec.toml").summary
    # 65 % of 4 GiB in whole requests of 128 KiB.
    filled = int(0.65 * (4 << 30)) // (128 << 10)
    assert summary.requests == filled + 10_000
    assert summary.host.write.bytes == filled * (128 << 10) + 10_000 * 4096
    assert summary.duration_s == pytest.approx(filled * 2.5e-3 + 10_000 * 250e-6, rel=0.01)
