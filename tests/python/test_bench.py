"""The tools of `make bench` and `make instructions`, without measuring."""

from __future__ import annotations

from pathlib import Path

import bench
import instructions
import nandlab
import pytest

PROFILE = """\
events: Ir
fl=/build/crates/nandlab/src/sched/agenda.rs
fn=nandlab::drive::Drive::step
10 7
fi=/rustc/library/core/src/option.rs
20 5
fi=/build/crates/nandlab/src/base/slab.rs
25 4
fe=/build/crates/nandlab/src/ftl/mod.rs
30 3
cfi=/build/crates/nandlab/src/host/stats.rs
cfn=nandlab::host::record
calls=4 40
31 1000
32 2
fl=/build/crates/nandlab/src/host/stats.rs
fn=nandlab::host::record
40 1000
fl=/libc/memcpy.S
fn=memcpy
1 11
"""


def test_instructions_belong_to_the_phase_of_their_file_or_else_of_their_function() -> None:
    counts = instructions.by_phase(PROFILE)
    # `agenda.rs` 7; `option.rs` 5 and `slab.rs` 4, inlined into a function of `drive`; `ftl/mod.rs` 3 + 2, without the
    # 1,000 of the call.
    assert counts == {"device": 7, "drive": 9, "map": 5, "results": 1000, "other": 11}


def test_differences_count_beyond_two_percent_and_a_few_instructions() -> None:
    def case(host: float, gc: float) -> instructions.Case:
        phases = dict.fromkeys(instructions.PHASES, 0.0) | {"host": host, "gc": gc}
        return {"page_operations": 10, "instructions": phases}

    filed = case(900.0, 100.0)
    assert instructions.differences("plain", filed, case(917.0, 103.0)) == []
    assert len(instructions.differences("plain", filed, case(900.0, 105.0))) == 1, "the phase alone"
    assert len(instructions.differences("plain", filed, case(919.0, 104.0))) == 2, "a phase, and the whole"
    assert len(instructions.differences("plain", filed, {**filed, "page_operations": 11})) == 1


def test_instructions_may_not_grow_with_a_backlog_by_more_than_a_tenth() -> None:
    few = (1_000_000, 1000)
    assert instructions.growth("plain", few, (1_100_000, 1000), 1.1) is None
    assert instructions.growth("plain", few, (1_101_000, 1000), 1.1) == (
        "plain: 1000.0 instructions, 1101.0 with the larger backlog"
    )
    # The same requests with fewer page operations, each of which takes longer: the requests take no longer.
    assert instructions.growth("plain", few, (1_050_000, 900), 1.1) is None
    # More page operations that take no longer.
    assert instructions.growth("plain", few, (1_300_000, 1200), 1.1) is None
    assert instructions.growth("plain", few, (1_300_000, 900), 1.1) is not None


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
