"""What each example is about happens in it, and each command of its header changes the result."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import nandlab
import pytest
import sample_traces
from nandlab.result_types import Summary

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
#: The settings that replace each scheme of `combined` by its baseline, as in the header of the file.
BASELINES = {
    "LaLDPC": {"ecc.start": "first", "ftl.map.demand.eviction": "lru"},
    "partial refresh": {"refresh.policy": "fcr", "gc.victim": "greedy"},
    "rcopyback": {"migration.policy": "off-chip"},
    "capacitor-aware cache": {"cache.sync": "none", "cache.dirty_budget": 1.0, "capacitor.flush": "plain"},
}


@cache
def summary_of(name: str, sets: tuple[str, ...] = ()) -> Summary:
    return nandlab.run(EXAMPLES / f"{name}.toml", sets=list(sets)).summary


def words(sets: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in sets.items())


def results(summary: Summary) -> dict[str, object]:
    """The values of a summary that settings do not determine."""
    return {key: value for key, value in dict(summary).items() if key not in ("spec_hash", "notes", "space")}


def collects(summary: Summary) -> None:
    assert summary.gc.victims > 0 and summary.waf > 1
    assert summary.flash.program.gc > 0 and summary.flash.erase.gc > 0


def combined(summary: Summary) -> None:
    collects(summary)
    # LaLDPC: pages of several levels, reads that start at a remembered level, and a mapping cache that evicts.
    host = summary.ecc.host
    assert host.levels[1] > 0 and sum(count for level, count in host.levels.items() if level > 1) > 10_000
    assert host.soft_starts > 1000 and host.retries > 0
    assert summary.map.evictions > 10_000 and summary.map.read.hits > 0
    partial = summary.refresh.partial
    assert partial.pages > 10_000 and partial.combination_pages > 1000 and partial.host_preads > 1000
    # The mode selector takes both of its ways.
    migration = summary.migration
    assert migration.copybacks > 1000 and migration.victims_copied_back > 100 and migration.victims_off_chip > 100
    # The measured budget is below the cache, and binds; a detection flushes with CSW.
    cache, capacitor = summary.cache, summary.capacitor
    assert capacitor.detections.count >= 2 and summary.flash.program.flush > 0
    assert 0 < capacitor.budget_pages == cache.budget_pages == cache.dirty_pages_max < cache.pages
    assert cache.syncs > 1000 and cache.blocked_updates > 0


def partial_refresh(summary: Summary) -> None:
    collects(summary)
    partial = summary.refresh.partial
    assert partial.pages > 10_000 and partial.combination_pages > 1000 and partial.host_preads > 1000
    # A combination page holds the susceptible bits of several pages.
    assert partial.pages > 2 * partial.combination_pages


def power_loss(summary: Summary) -> None:
    collects(summary)
    power = summary.power
    assert power.losses == 1 and power.flushed_pages == power.unflushed_pages > 1000 and power.lost_pages == 0
    cache = summary.cache
    assert summary.capacitor.detections.count > 1
    # The budget falls as the capacitor ages, and updates are blocked by it.
    assert 0 < cache.budget_pages < cache.dirty_pages_max < cache.pages and cache.blocked_updates > 0


def one_read_at_a_time(summary: Summary) -> None:
    read = summary.latency_us.read
    # tR + transfer + decode: 50 + 4096 * 0.0025 + 15.
    assert read.mean == read.p50 == read.max == pytest.approx(75.24, abs=1e-9)
    assert summary.flash.read.host == summary.host.read.count == summary.requests == 100_000


def steady(summary: Summary) -> None:
    collects(summary)
    rounds = summary.precondition.waf_by_round
    assert summary.precondition.steady and len(rounds) >= 5
    # The run continues at the write amplification that preconditioning has reached.
    assert summary.waf == pytest.approx(sum(rounds[-5:]) / 5, rel=0.03)


def small(summary: Summary) -> None:
    collects(summary)
    assert summary.steady_state.verdict == "steady"


def slc_cache(summary: Summary) -> None:
    slc = summary.slc
    assert slc is not None and slc.cached > 0 and slc.direct > 0
    assert slc.folded.idle + slc.folded.full + slc.folded.space > 0


def trace(summary: Summary) -> None:
    collects(summary)
    assert summary.requests == 40 * 3_000
    # The drive keeps up with the trace.
    assert summary.iops == pytest.approx(2630, rel=0.02)


#: By example: its check, and settings that shorten the run.
ABOUT: Mapping[str, tuple[Callable[[Summary], None], tuple[str, ...]]] = {
    "combined": (combined, ()),
    "demo": (collects, ("workload.requests=300000",)),
    "partial-refresh": (partial_refresh, ()),
    "power-loss": (power_loss, ()),
    "qd1-read": (one_read_at_a_time, ()),
    "slc-cache": (slc_cache, ()),
    "small": (small, ()),
    "steady": (steady, ()),
    "trace": (trace, ()),
}
#: Examples with a test of their own below.
APART = {"life"}


def test_every_example_has_a_test() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.toml")} == ABOUT.keys() | APART


@pytest.mark.parametrize("name", ABOUT)
def test_what_the_example_is_about_happens(name: str) -> None:
    check, sets = ABOUT[name]
    summary = summary_of(name, sets)
    check(summary)
    # No note says that a setting of the example had no effect. A sequential write leaves GC nothing to do.
    expected = ["no-gc"] if name == "slc-cache" else []
    assert [note.code for note in summary.notes if note.code.startswith("no-")] == expected


def commands() -> list[tuple[str, tuple[str, ...]]]:
    """The commands with `--set` of the headers: the example and its settings."""
    found = []
    for path in sorted(EXAMPLES.glob("*.toml")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("#   nandlab run ") and "--set" in line and path.stem not in APART:
                program, run, spec, *options = shlex.split(line.removeprefix("#"), comments=True)
                assert (program, run, spec) == ("nandlab", "run", f"examples/{path.name}")
                assert options[::2] == ["--set"] * (len(options) // 2), line
                found.append((path.stem, tuple(options[1::2])))
    return found


@pytest.mark.parametrize(
    ("name", "sets"), commands(), ids=lambda value: value if isinstance(value, str) else "+".join(value)
)
def test_a_command_of_the_header_changes_the_result(name: str, sets: tuple[str, ...]) -> None:
    assert results(summary_of(name, sets)) != results(summary_of(name))


def test_the_header_of_combined_replaces_each_scheme() -> None:
    told = [set(sets) for name, sets in commands() if name == "combined"]
    told = [{word.replace('"', "") for word in sets} for sets in told]
    assert told == [set(words(sets)) for sets in BASELINES.values()]


def test_without_a_scheme_its_mechanism_does_not_act() -> None:
    def without(scheme: str) -> Summary:
        return next(
            summary_of(name, sets)
            for name, sets in commands()
            if name == "combined" and {word.replace('"', "") for word in sets} == set(words(BASELINES[scheme]))
        )

    whole = summary_of("combined")
    assert without("LaLDPC").ecc.host.soft_starts == 0
    # Remembered levels spare tries.
    assert without("LaLDPC").ecc.host.retries > whole.ecc.host.retries
    assert without("LaLDPC").latency_us.read.mean > whole.latency_us.read.mean
    assert without("partial refresh").refresh.partial is None
    assert without("partial refresh").refresh.pages > 0
    assert without("rcopyback").flash.copyback.gc == 0 and without("rcopyback").flash.program.gc > 0
    assert without("capacitor-aware cache").cache.syncs == 0
    # Without a budget more pages are dirty than the aged capacitor saves.
    assert without("capacitor-aware cache").cache.dirty_pages_max > whole.capacitor.capability_pages


@pytest.mark.parametrize(
    "setting", ["ecc.start=first", "ftl.map.demand.eviction=lru", "cache.dirty_budget=1.0", "capacitor.flush=plain"]
)
def test_each_part_of_a_scheme_changes_the_result(setting: str) -> None:
    assert results(summary_of("combined", (setting,))) != results(summary_of("combined"))


def test_all_four_schemes_act_in_the_life_and_the_drive_wears_out() -> None:
    life = nandlab.life(EXAMPLES / "life.toml", windows=8, requests=20_000)
    assert life.complete and life.facts.end == "the first block reached its endurance"
    columns = life.columns
    # Wear raises the levels that pages need.
    assert 1 < columns["read_level_mean"][0] < columns["read_level_mean"].max()
    assert columns["copybacks"].sum() > 0 and columns["partial_pages"].sum() > 0
    # The capacitor ages: the budget falls below the whole cache.
    assert columns["budget_pages"].min() < columns["cache_pages"].max()
    assert columns["capacitor_loss_share"].max() > 0.1


def test_every_example_says_what_to_look_at() -> None:
    for path in [*EXAMPLES.glob("*.toml"), *EXAMPLES.glob("*.py")]:
        assert "# Look at" in path.read_text(encoding="utf-8"), path.name


def test_the_sample_traces_are_those_of_the_generator() -> None:
    for name, text in sample_traces.samples().items():
        assert (EXAMPLES / name).read_text(encoding="ascii") == text, f"{name}: run python tools/sample_traces.py"
