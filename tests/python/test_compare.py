"""Comparisons: ratios and intervals, settings without effect, cautions, kept runs, and refused input."""

import copy
import html
import json
import math
import shutil
import signal
import subprocess
import time
import tomllib

import nandlab
import numpy as np
import pytest
from conftest import NANDLAB, SPEC, hidden, reseal
from nandlab import _core, memory, simulate
from nandlab.comparison import Alone, Runs
from nandlab.comparison.cautions import notes
from nandlab.comparison.changes import Change
from nandlab.comparison.identity import identical
from nandlab.comparison.metrics import FIRST, METRICS, better, place
from nandlab.comparison.page import compare_page
from nandlab.reporting.content import Drawing
from nandlab.study.execute import State
from nandlab.study.metrics import _names_of
from nandlab.study.progress import StudyProgress
from nandlab.tables import encode

#: A drive on which GC runs, so that gc.victim has an effect.
FULL = SPEC + "[precondition]\nused = 0.8\nvalid = 0.8\n"
FIFO = {"gc.victim": "fifo"}


def change(baseline, values, words="p99 of writes", unit="us"):
    return Change("metric", words, unit, tuple(baseline), tuple(values))


def pair_of(*sources, **options):
    (pair,) = nandlab.compare(*sources, **options).pairs
    return pair


def of(pair, metric):
    (found,) = [one for one in pair.changes if one.metric == metric]
    return found


def codes(notes):
    return [note.code for note in notes]


def test_the_first_spec_may_be_a_mapping():
    as_text, as_mapping = pair_of(FULL, FIFO), pair_of(tomllib.loads(FULL), FIFO)
    assert of(as_mapping, "waf") == of(as_text, "waf") and of(as_text, "waf").ratio != 1
    with pytest.raises(nandlab.SpecError, match=r"gc\.victim"):
        nandlab.compare({"gc.victim": "nothing"}, FIFO)


def test_ratio_and_interval_are_those_of_the_logarithms():
    """Ratios 0.5, 0.8 and 1.25 of the baseline: the geometric mean is (0.5 * 0.8 * 1.25)^(1/3) = 0.5^(1/3)."""
    found = change([100.0, 200.0, 400.0], [50.0, 160.0, 500.0])
    logs = [math.log(0.5), math.log(0.8), math.log(1.25)]
    mean = sum(logs) / 3
    deviation = math.sqrt(sum((log - mean) ** 2 for log in logs) / 2)
    half = 4.302653 * deviation / math.sqrt(3)
    written = found.to_dict()
    assert written["ratio"] == pytest.approx(0.5 ** (1 / 3), rel=1e-12)
    assert written["ratio_interval"] == pytest.approx([math.exp(mean - half), math.exp(mean + half)], rel=1e-4)
    assert written["difference"] == pytest.approx((-50 - 40 + 100) / 3)
    assert found.verdict == "unclear"


def test_an_interval_is_paired_by_seed():
    """The values differ by a factor of ten from seed to seed, their ratios hardly: 0.87, 0.88 and 0.89."""
    found = change([10.0, 100.0, 1000.0], [8.7, 88.0, 890.0])
    assert found.verdict == "differs"
    # By hand: mean of the logarithms -0.127876, deviation 0.011364, half 4.3027 * 0.011364 / sqrt(3) = 0.028231.
    assert found.sentence == "p99 of writes is 12 % lower (95 % interval 9.5 to 14)"


@pytest.mark.parametrize(
    ("baseline", "values", "sentence"),
    [
        ([100.0], [88.0], "p99 of writes is 12 % lower"),
        ([100.0], [102.5], "p99 of writes is 2.5 % higher"),
        ([100.0], [100.0 + 1e-9], "p99 of writes is less than 0.01 % higher"),
        ([100.0], [340.0], "p99 of writes is 3.40 times as high"),
        ([100.0], [100.0], "p99 of writes is the same"),
        # By hand: ln 0.98 = -0.020203, ln 1.01 = 0.009950; mean -0.005126, half 12.7062 * 0.021321 / sqrt(2).
        ([100.0, 100.0], [98.0, 101.0], "no clear difference in p99 of writes (95 % interval -18 to +20 %)"),
        ([0.0], [12.0], "p99 of writes is 12 µs, not 0 µs"),
        ([12.0], [0.0], "p99 of writes is 0 µs, not 12 µs"),
        # By hand: the differences are 10, 12 and 14; half 4.3027 * 2 / sqrt(3) = 4.968.
        (
            [0.0, 0.0, 0.0],
            [10.0, 12.0, 14.0],
            "p99 of writes is 12 µs, not 0 µs (95 % interval of the difference +7.03 µs to +17.0 µs)",
        ),
        # By hand: the differences are 1 and -1; half 12.7062 * 1.41421 / sqrt(2) = 12.7062, of values up to 101.
        (
            [0.0, 101.0],
            [1.0, 100.0],
            "no clear difference in p99 of writes (95 % interval of the difference -12.7 µs to +12.7 µs)",
        ),
        # The same differences of values up to 1: the interval says nothing.
        ([0.0, 1.0], [1.0, 0.0], "no clear difference in p99 of writes (2 seeds are too few for an interval)"),
        # By hand: the logarithms are -d and d, so the interval is exp(-12.7062 d) to exp(12.7062 d), and contains half
        # and double from d = ln 2 / 12.7062 = 0.05455 on.
        (
            [100.0, 100.0],
            [100 * math.exp(-0.0544), 100 * math.exp(0.0544)],
            "no clear difference in p99 of writes (95 % interval -50 to +100 %)",
        ),
        (
            [100.0, 100.0],
            [100 * math.exp(-0.0547), 100 * math.exp(0.0547)],
            "no clear difference in p99 of writes (2 seeds are too few for an interval)",
        ),
        ([100.0, 100.0], [1.0, 4000.0], "no clear difference in p99 of writes (2 seeds are too few for an interval)"),
    ],
)
def test_a_sentence_states_the_change_in_plain_words(baseline, values, sentence):
    assert change(baseline, values).sentence == sentence


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        ("ms", 1.8e-5, "0.018 µs"),
        ("ms", 11.5, "11.5 ms"),
        ("ms", 2500.0, "2.5 s"),
        ("s", 0.0042, "4.2 ms"),
        ("us", 0.5, "0.50 µs"),
    ],
)
def test_a_time_is_shown_in_the_unit_that_fits(unit, value, text):
    assert Change("a.time", "a time", unit, (value,), (value,)).shown(value) == text


def test_every_metric_is_in_the_summary_and_has_words_of_its_own():
    from nandlab.result_types import Summary

    names = _names_of(Summary)
    for metric in METRICS:
        for name in metric.expression.names:
            assert any(there == name or there.startswith(name.removesuffix("*")) for there in names), name
    assert len({metric.words for metric in METRICS}) == len({metric.name for metric in METRICS}) == len(METRICS)


def test_two_policies_with_seeds_are_compared_run_by_run(tmp_path):
    (tmp_path / "greedy.toml").write_text(FULL)
    (tmp_path / "fifo.toml").write_text(FULL + '[gc]\nvictim = "fifo"\n')
    found = nandlab.compare(tmp_path / "greedy.toml", tmp_path / "fifo.toml", seeds=3)
    (pair,) = found.pairs
    assert [(one.name, one.seeds) for one in found.runs] == [("greedy", (1, 2, 3)), ("fifo", (1, 2, 3))]
    assert [(one.key, one.values) for one in found.settings] == [("gc.victim", ("greedy", "fifo"))]
    runs = [
        [nandlab.run(FULL, sets={"seed": seed, "gc.victim": victim}).summary for seed in (1, 2, 3)]
        for victim in ("greedy", "fifo")
    ]
    logs = [math.log(fifo.waf / greedy.waf) for greedy, fifo in zip(*runs, strict=True)]
    mean = sum(logs) / 3
    half = 4.302653 * math.sqrt(sum((log - mean) ** 2 for log in logs) / 2 / 3)
    written = of(pair, "waf").to_dict()
    assert written["ratio"] == pytest.approx(math.exp(mean), rel=1e-9)
    assert written["ratio_interval"] == pytest.approx([math.exp(mean - half), math.exp(mean + half)], rel=1e-5)
    assert of(pair, "latency_us.write.p99").values == tuple(one.latency_us.write.p99 for one in runs[1])
    erased = [sum(dict(one.flash.erase).values()) / (one.host.write.bytes / 1e9) for one in runs[0]]
    assert of(pair, "erases_per_gb_written").baseline == pytest.approx(erased)
    clear = [one for one in pair.changes if one.verdict == "differs" and not one.further]
    assert len(clear) > 3
    assert [one.metric for one in pair.changes[:2]] == ["waf", "latency_us.read.mean"]
    others = [one.size for one in clear if place(one.metric) == len(FIRST)]
    assert len(others) > 3 and others == sorted(others, reverse=True)
    places = [place(one.metric) for one in pair.changes if not one.further and one.verdict != "same"]
    assert places == sorted(places)
    assert found.sentences == tuple(one.sentence for one in pair.changes if not one.further and one.verdict != "same")
    assert pair.without_effect == ()
    assert json.loads(found.text) == json.loads(json.dumps(found.to_dict()))
    assert found.series.group_by("run", "seed").len().height == 6
    counts = found.latency.filter(run="fifo", seed=3, op="write")["count"].sum()
    assert counts == runs[1][2].host.write.count
    for text in (
        "gc.victim",
        "fifo against greedy",
        clear[0].sentence[:20],
        "The same in all: ",
        "each of two runs with",
    ):
        assert text in str(found)
    assert "from 3 ratios" in json.loads(found.text)["method"]


def test_the_seeds_are_those_of_the_first_spec_and_sets_apply_to_all():
    found = nandlab.compare(
        FULL, FULL.replace("seed = 1", "seed = 7"), seeds=2, sets={"workload.synthetic.requests": 50}
    )
    assert [one.seeds for one in found.runs] == [(1, 2), (1, 2)]
    assert {result.summary.requests for one in found.runs for result in one.results} == {50}
    assert found.settings == () and found.pairs[0].same


def test_finished_runs_are_run_anew_with_seeds(finished):
    found = nandlab.compare(finished / "a", finished / "b", seeds=2)
    assert [(one.name, one.path, one.seeds) for one in found.runs] == [
        ("a", finished / "a", (1, 2)),
        ("b", finished / "b", (1, 2)),
    ]
    first = nandlab.compare(finished / "a", finished / "b")
    assert [one.values[0] for one in first.settings] == ["greedy"]
    for old, new in zip(first.runs, found.runs, strict=True):
        assert old.results[0].summary_text.strip() == new.results[0].summary_text.strip()
    interval = of(found.pairs[0], "waf").to_dict()["ratio_interval"]
    assert interval[0] < interval[1]


def test_no_more_runs_at_a_time_than_fit_into_memory(monkeypatch):
    spec = nandlab.load(FULL)
    needed = _core.memory_needed(spec)[0]
    for available, at_once in ((5 * needed, 5), (needed // 2, 1)):
        monkeypatch.setattr(memory, "_limits", lambda resident, _, left=available: [("memory", left, resident)])
        assert memory.runs_at_once([spec, spec]) == at_once


def test_a_setting_without_effect_is_named_with_the_note_of_the_runs():
    """On an empty drive GC never runs, so that all victim policies are the same."""
    empty = nandlab.load(SPEC, {"workload.synthetic.requests": 200})
    found = nandlab.compare(empty, empty.with_({**FIFO, "output.series_rows": 50}))
    assert found.pairs[0].settings == ("gc.victim", "output.series_rows")
    assert found.pairs[0].without_effect == ("gc.victim",)
    assert found.sentences == ()
    assert "no-gc" in codes(found.notes)
    assert "gc.victim had no effect: all results of spec and spec-2 are the same to the byte." in str(found)
    (note,) = [note for note in found.notes if note.code == "no-gc"]
    assert note.text.startswith("spec, spec-2: GC never ran, so gc.victim, ")
    assert "Remedy: " in note.text
    # A note on a setting that does not differ is one sentence, behind the others.
    other = nandlab.compare(empty, empty.with_({"timing.read": "60us"}))
    assert codes(other.notes)[-1] == "no-gc"
    assert other.notes[-1].text.startswith("spec, spec-2: GC never ran") and "Remedy: " not in other.notes[-1].text
    assert other.pairs[0].without_effect == ()


def test_notes_count_the_seeds_and_errors_come_first():
    """No read level decodes the data. Power fails after 100 of the requests; a capacitor saves what is dirty."""
    cut = {"cache.size": "64KiB", "power.cut_after_requests": 100, "workload.synthetic.requests": 300}
    old = {
        "ecc.levels": "laldpc",
        "reliability.rber": "vth",
        "reliability.pe_cycles": 40_000,
        "drive.endurance": 100_000,
    }
    lost = nandlab.load(SPEC, cut | old | {"reliability.retention": "3650d", "precondition.used": 0.8})
    found = nandlab.compare(lost, {"capacitor.capacitance": "100mF"}, seeds=2)
    assert [note.severity for note in found.notes] == sorted(
        (note.severity for note in found.notes), key=("error", "warning", "info").index
    )
    first = found.notes[0]
    assert (first.code, first.severity) == ("uncorrectable", "error")
    assert first.text.startswith("spec, capacitor.capacitance=100mF: ") and "no read level decodes" in first.text
    assert str(found).startswith("spec, capacitor.capacitance=100mF: "), "an error is the first thing on the screen"
    assert str(found).count("requests failed: no read level decodes") == 1
    (destroyed,) = (note.text for note in found.notes if note.code == "data-lost")
    assert destroyed.startswith("spec: Power loss destroyed "), "with the capacitor nothing is lost"
    # One of the two seeds loses no write: power fails beyond the end of its run.
    whole, short = (
        nandlab.run(lost.with_({"seed": seed, **sets}))
        for seed, sets in ((1, {}), (2, {"workload.synthetic.requests": 50}))
    )
    runs = [Runs("a", None, (1, 2), (whole, short)), Runs("b", None, (1, 2), (short, short))]
    texts = {note.code: note.text for note in notes(runs, [])}
    assert texts["data-lost"].startswith("a (1 of 2 seeds): Power loss destroyed ")
    assert texts["never-cut"].startswith("a (1 of 2 seeds), b: Power never failed")


def test_no_effect_means_that_every_result_is_the_same_to_the_byte():
    """The outcomes in summary.json alone are not enough: one request in another bin or interval is an effect."""
    result = nandlab.run(FULL)
    assert identical(result, nandlab.run(FULL))
    for table, column in (("latency", "count"), ("series", "writes"), ("blocks", "valid_pages")):
        other = nandlab.run(FULL)
        columns = {name: values.copy() for name, values in other.numpy(table).items()}
        columns[column if column in columns else list(columns)[-1]][0] += 1
        other._raw[table] = encode(columns)
        assert not identical(result, other), table
        pair = pair_of(result, other)
        assert pair.same and not pair.identical and pair.without_effect == ()
        assert "but other files differ" in str(nandlab.compare(result, other))
    fewer = nandlab.run(FULL, sets={"output.series_rows": 10})
    assert identical(result, fewer, output_differs=True) and not identical(result, fewer)
    smart = copy.copy(result)
    smart.smart_text = result.smart_text.replace('"power_cycles": 1', '"power_cycles": 2')
    assert not identical(result, smart)


def test_keys_are_changed_one_at_a_time_to_find_those_without_effect():
    """No request leaves the drive idle, so that GC in idle times is without effect."""
    other = {"gc.victim": "fifo", "gc.idle_after": "1s", "output.series_rows": 50}
    found = nandlab.compare(FULL, other, one_at_a_time=True, seeds=2)
    (pair,) = found.pairs
    assert {one.key: one.has_effect for one in pair.alone} == {"gc.victim": True, "gc.idle_after": False}
    assert pair.without_effect == ("gc.idle_after",)
    victim, idle = sorted(pair.alone, key=lambda one: one.key == "gc.idle_after")
    # gc.idle_after has no effect, so that gc.victim has the whole effect.
    assert of(victim.in_baseline, "waf").values == of(pair, "waf").values
    assert of(victim.set_back, "waf").values == of(pair, "waf").baseline
    assert idle.set_back.baseline == pair.runs and idle.set_back.identical
    text = " ".join(str(found).split())
    assert "No effect: gc.idle_after. Changed alone in spec, and set back alone in gc.victim=fifo" in text
    assert f"gc.victim = fifo {of(victim.in_baseline, 'iops').short}" in text
    written = found.to_dict()["comparisons"][0]["one_at_a_time"]
    assert [(one["key"], one["has_effect"]) for one in written] == [(one.key, one.has_effect) for one in pair.alone]
    untested = nandlab.compare(FULL, {"gc.victim": "fifo", "gc.idle_after": "1s"})
    assert untested.pairs[0].without_effect == ()
    assert "2 keys differ; --one-at-a-time" in " ".join(str(untested).split())
    together = nandlab.compare(FULL, {"gc.idle_after": "1s", "gc.idle_valid_max": 0.5})
    assert "gc.idle_valid_max, gc.idle_after, set together, had no effect" in " ".join(str(together).split())


def test_a_key_that_cannot_be_changed_alone_is_named_with_the_reason():
    cache = {"cache.size": "64KiB", "cache.sync": "eager"}
    found = nandlab.compare(FULL, cache, one_at_a_time=True)
    (alone,) = [one for one in found.pairs[0].alone if one.key == "cache.sync"]
    assert alone.in_baseline is None and alone.set_back is not None
    assert "in spec: " in alone.problem and "without a write cache" in alone.problem
    assert "cache.sync cannot be changed alone in spec: " in " ".join(str(found).split())


def test_a_key_is_without_effect_only_if_both_of_its_runs_show_none():
    same, differs = pair_of(FULL, FULL), pair_of(FULL, FIFO)
    for in_baseline, set_back, effect in (
        (same, same, False),
        (same, differs, True),
        (differs, same, True),
        (same, None, None),
        (None, same, None),
        (None, differs, True),
        (None, None, None),
    ):
        assert Alone("gc.victim", "fifo", in_baseline, set_back).has_effect is effect


@pytest.mark.parametrize(
    ("source", "name", "values"),
    [
        ("gc.victim=fifo", "gc.victim=fifo", {"gc.victim": "fifo"}),
        ({"gc.victim": "fifo"}, "gc.victim=fifo", {"gc.victim": "fifo"}),
        (
            "gc.victim={ random = { k = 3 } },timing.read=60us",
            "gc.victim={ random = { k = 3 } } and 1 more",
            {"gc.victim": {"random": {"k": 3}}, "timing.read": "60us"},
        ),
        (
            'drive.op=0.3, workload.synthetic.size={ "4KiB" = 1, "8KiB" = 1 }',
            "drive.op=0.3 and 1 more",
            {"drive.op": 0.3},
        ),
    ],
)
def test_overrides_stand_for_the_first_spec_with_these_keys(source, name, values):
    found = nandlab.compare(SPEC, source, sets={"workload.synthetic.requests": 50})
    assert found.runs[1].name == name
    settings = {one.key: one.values[1] for one in found.settings}
    assert values.items() <= settings.items()
    assert len(settings) == len(values) + ("synthetic" in str(source))


def test_overrides_of_a_finished_run_leave_the_run_as_it_is(finished):
    found = nandlab.compare(finished / "a", "gc.victim=fifo")
    assert found.baseline.results[0].path == finished / "a"
    fifo = nandlab.RunResult.read(finished / "b").summary
    assert found.runs[1].results[0].summary.waf == fifo.waf


def test_runs_of_the_same_spec_are_one_run_and_go_seed_by_seed(monkeypatch):
    seen, ran, run = [], [], simulate.run

    def recorded(spec, **options):
        ran.append((options["name"], json.loads(spec.canonical_json())["seed"]))
        return run(spec, **options)

    monkeypatch.setattr(simulate, "run", recorded)
    found = nandlab.compare(
        FULL, FULL, FIFO, seeds=2, workers=1, progress=lambda state: seen.append((state.total, state.slots))
    )
    assert found.pairs[0].identical and not found.pairs[1].identical
    assert set(seen) == {(4, 1)}
    assert ran == [("spec", 1), ("gc.victim=fifo", 1), ("spec", 2), ("gc.victim=fifo", 2)]


def test_progress_is_a_line_on_stderr_after_two_seconds(capsys):
    state = State(total=4, kept=1, done=1)
    progress = StudyProgress("compare", bar=False, line_after_s=2.0)
    progress(state)
    assert capsys.readouterr().err == ""
    state.begin_s -= 2.0
    progress(state)
    progress(state)
    assert capsys.readouterr().err == "compare: 2 of 4 runs\n"


def test_settings_differ_key_by_key_and_policies_as_a_whole():
    spec = nandlab.load(SPEC, {"workload.synthetic.requests": 20})
    sets = [{"gc.victim": {"random": {"k": k}}, "timing.read": "60us"} for k in (2, 3)]
    found = nandlab.compare(spec, *(spec.with_(one) for one in sets))
    assert [(one.key, one.values) for one in found.settings] == [
        ("timing.read", ("50us", "60us", "60us")),
        ("gc.victim", ("greedy", {"random": {"k": 2}}, {"random": {"k": 3}})),
    ]
    assert [pair.settings for pair in found.pairs] == [("timing.read", "gc.victim")] * 2
    assert all(sentence.startswith(("spec-2: ", "spec-3: ")) for sentence in found.sentences)
    assert "{ random = { k = 2 } }" in str(found)
    (setting,) = nandlab.compare(spec.with_(sets[0]), spec.with_(sets[1])).settings
    assert (setting.key, setting.values) == ("gc.victim.random.k", (2, 3))


def test_metrics_that_only_one_has_are_named():
    pair = pair_of(FULL, nandlab.load(FULL, {"ftl.map.demand": {"cache": "512B"}}))
    assert pair.only_baseline == ()
    assert {"map.read.hit_share", "map.write_backs", "map.evictions"} <= set(pair.only_runs)
    reads = pair_of(FULL, nandlab.load(FULL, {"workload.synthetic.read_fraction": 1.0}))
    assert {"waf", "latency_us.write.p99"} <= set(reads.only_baseline)


def changed(result, tmp_path, name, **values):
    """The run folder of a result with other values in summary.json."""
    path = copy.copy(result).save(tmp_path / name)
    summary = json.loads((path / "summary.json").read_text())
    summary.update(values)
    (path / "summary.json").write_text(json.dumps(summary))
    reseal(path)
    return path


def test_cautions_about_what_misleads(tmp_path):
    steady = FULL.replace("requests = 3000", "requests = 6000")
    result = nandlab.run(steady, name="a")
    assert nandlab.compare(result, result).warnings == ()
    short = nandlab.run(FULL, sets={"workload.synthetic.requests": 300}, name="b")
    assert "not in a steady state: b (too short)" in nandlab.compare(short, short).warnings[0].text

    def warned(other, text):
        (note,) = nandlab.compare(result, other).warnings
        assert text in note.text
        return note.code

    def run(key, value):
        return nandlab.run(steady, sets={key: value}, name="b")

    assert (
        warned(run("workload.synthetic.read_fraction", 0.4), "workload.synthetic.read_fraction") == "workloads-differ"
    )
    assert warned(run("workload.repeat", 2), "requests: a 6,000, b 12,000): the ratios compare") == "workloads-differ"
    assert warned(run("seed", 2), "--seeds") == "seeds-differ"
    assert warned(run("drive.op", 0.26), "a 1.6 MiB, b 1.59 MiB") == "capacities-differ"
    assert (
        warned(changed(result, tmp_path, "b", nandlab="0.0.9"), f"a {nandlab.version()}, b 0.0.9): repeat")
        == "versions-differ"
    )
    assert warned(changed(result, tmp_path, "b", complete=False), "before the end of the workload: b") == "incomplete"
    assert warned(changed(result, tmp_path, "b", requests=5999), "a 6,000, b 5,999") == "requests-differ"
    trace = "".join(f"{10000 * at},hm,0,Write,{4096 * at},4096,100\n" for at in range(20))
    (tmp_path / "t.csv").write_text(trace)
    alike = nandlab.load(SPEC.split("[workload.synthetic]")[0] + f'[workload]\ntrace = "{tmp_path}/t.csv"\n')
    found = nandlab.compare(alike, {"timing.program": "700us"}, seeds=2)
    assert "seeds-alike" in codes(found.warnings)
    assert "seeds-alike" not in codes(nandlab.compare(steady, FIFO, seeds=2).warnings)
    failed = {"uncorrectable": 3, "worn_out": 1, "power_lost": 0}
    assert warned(changed(result, tmp_path, "b", requests_failed=failed), "a 0, b 4") == "failed-requests"
    pair = pair_of(result, tmp_path / "b")
    assert of(pair, "requests_failed").sentence == "number of failed requests is 4, not 0"


def test_runs_that_are_kept_are_not_repeated(tmp_path):
    def done(*sources, **options):
        seen = []
        nandlab.compare(*sources, out=tmp_path / "c", progress=seen.append, **options)
        return seen[-1].kept, seen[-1].done

    trace = tmp_path / "a.csv"
    trace.write_text("0,hm,0,Write,0,4096,100\n10000,hm,0,Read,0,4096,100\n")
    (tmp_path / "t.toml").write_text(SPEC.split("[workload.synthetic]")[0] + '[workload]\ntrace = "a.csv"\n')
    assert done(FULL, nandlab.load(FULL, FIFO)) == (0, 2)
    assert done(nandlab.load(FULL, FIFO), FULL) == (2, 0)
    assert done(FULL, nandlab.load(FULL, FIFO), seeds=2) == (2, 2)
    assert done(FULL, tmp_path / "t.toml") == (1, 1)
    trace.write_text("0,hm,0,Write,0,4096,100\n")
    assert done(FULL, tmp_path / "t.toml") == (1, 1), "the trace has changed"
    (damaged,) = (tmp_path / "c" / "runs").glob("spec-2-seed2-*")
    (damaged / "series.parquet").write_bytes(b"")
    assert done(FULL, nandlab.load(FULL, FIFO), seeds=2) == (3, 1)
    written = json.loads((tmp_path / "c" / "compare.json").read_text())
    assert all(nandlab.RunResult.read(path).complete for one in written["runs"] for path in one["folders"])
    assert hidden(tmp_path) == []


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with the run folders a and b, the spec s.toml, and other folders and files."""
    here = tmp_path_factory.mktemp("finished")
    nandlab.run(FULL, here / "a")
    nandlab.run(FULL, here / "b", sets=FIFO)
    (here / "s.toml").write_text(FULL)
    (here / "notes").mkdir()
    (here / "notes" / "thesis.tex").write_text("years of work")
    shutil.copytree(here / "a", here / "old")
    marker = json.loads((here / "old" / "nandlab-result.json").read_text())
    (here / "old" / "nandlab-result.json").write_text(json.dumps({**marker, "format": 0}))
    shutil.copytree(here / "a", here / "strange")
    spec = (here / "strange" / "spec.toml").read_text()
    (here / "strange" / "spec.toml").write_text(spec.replace("[gc]\n", "[gc]\ncolour = 1\n"))
    reseal(here / "strange")
    (here / "broken.toml").write_text("seed = 1\n[drive\n")
    shutil.copytree(here / "a", here / "summary")
    summary = json.loads((here / "summary" / "summary.json").read_text())
    del summary["waf_pages"]
    (here / "summary" / "summary.json").write_text(json.dumps(summary))
    reseal(here / "summary")
    (here / "trace.csv").write_text("0,hm,0,Write,0,4096,100\n")
    text = SPEC.split("[workload.synthetic]")[0] + '[workload]\ntrace = "trace.csv"\n'
    (here / "t.toml").write_text(text)
    nandlab.run(here / "t.toml", here / "traced")
    (here / "far.csv").write_text("0,hm,0,Write,999999999,4096,100\n")
    (here / "far.toml").write_text(text.replace("trace.csv", "far.csv"))
    nandlab.compare(here / "a", here / "b", out=here / "compared")
    return here


@pytest.mark.parametrize(
    ("sources", "options", "texts"),
    [
        (["a"], {}, ["expected two or more runs to compare, found one", "the baseline first"]),
        ([], {}, ["found none"]),
        (["a", "aa"], {}, ["no run folder and no spec", "did you mean", "/a?"]),
        (["a", "x/y"], {}, ["no run folder and no spec", "`nandlab run --out`"]),
        (["a", "ss.toml"], {}, ["no spec", "did you mean", "s.toml"]),
        (["a", "notes"], {}, ["notes is no run folder", "`nandlab run --out`", "a TOML file"]),
        (["a", "a/summary.json"], {}, ["is a file of a result", "name its folder"]),
        (["a", "compared"], {}, ["has the results of a comparison", "compared/runs"]),
        (["a", "old"], {}, ["old/nandlab-result.json: expected a result of format 2, found 0: run the spec again"]),
        (
            ["a", "strange"],
            {"seeds": 2},
            ["strange: its spec cannot be run again", "gc.colour", "the file of the spec"],
        ),
        (["a", "traced"], {"seeds": 2}, ["traced cannot be run again: workload.trace", "--set workload.trace=/"]),
        (["t.toml", "a"], {"sets": {"workload.trace": "no.csv"}}, ["t: workload.trace: no file", "check the path"]),
        (["gc.victim=fifo", "a"], {}, ["overrides keys of a spec", "name the spec or run folder first"]),
        (["s.toml", "gc.victm=fifo"], {}, ["gc.victm: unknown key", "did you mean gc.victim?"]),
        (["s.toml", "gc.victim="], {}, ["gc.victim"]),
        (["a", "broken.toml"], {}, ["broken.toml:2: not TOML"]),
        (["a", "summary"], {}, ["summary.json", "another version"]),
        (["a", "s.toml"], {"workers": 0}, ["workers: expected at least 1, found 0"]),
        (["a", "s.toml"], {"seeds": 0}, ["expected a number from 1 to 10,000, found 0"]),
        (["a", "s.toml"], {"sets": ["gc.victm=fifo"]}, ["gc.victm: unknown key", "did you mean gc.victim?"]),
        (["a", "s.toml"], {"out": "notes"}, ["notes has files that do not belong to a comparison (thesis.tex)"]),
        (["a", "s.toml"], {"out": "s.toml"}, ["s.toml is a file: choose another directory"]),
        (["far.toml", "a"], {"out": "f"}, ["run far, seed 1: ", "far.csv: request 1", "finished runs are kept in"]),
    ],
)
def test_wrong_input_is_refused_with_a_remedy(finished, sources, options, texts):
    if "out" in options:
        options = {**options, "out": finished / options["out"]}
    with pytest.raises(nandlab.NandlabError) as caught:
        nandlab.compare(*(source if "=" in source else finished / source for source in sources), **options)
    for text in texts:
        assert text in str(caught.value)


def test_the_command_prints_sentences_or_json(command, finished):
    done = command("compare", "a", "b", "--out", "out", cwd=finished)
    assert (done.returncode, done.stderr) == (0, "")
    for text in ("gc.victim", "b against a", "write amplification", "One seed, so no intervals"):
        assert text in " ".join(done.stdout.split())
    assert done.stdout.endswith("out/compare.json\nout/compare.html\n")
    printed = command("compare", "a", "b", "--json", cwd=finished)
    assert printed.stderr == ""
    assert printed.stdout == (finished / "out" / "compare.json").read_text()
    assert list((finished / "out" / "runs").iterdir()) == []
    refused = command("compare", "a", cwd=finished)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "found one" in refused.stderr


def test_the_command_keeps_its_runs_by_default(command, spec_file, tmp_path):
    done = command("compare", spec_file, "gc.victim=fifo", "timing.read=60us,gc.victim=fifo", "--workers", 1)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("out/compare/compare.json\nout/compare/compare.html\n")
    runs = sorted(path.name.rpartition("-")[0] for path in (tmp_path / "out" / "compare" / "runs").iterdir())
    assert runs == ["gc.victim=fifo-seed1", "small-seed1", "timing.read=60us-gc.victim=fifo-seed1"]


def test_ctrl_c_keeps_finished_runs(finished, tmp_path):
    (tmp_path / "long.toml").write_text(FULL + "[workload]\nrepeat = 1000000\n")
    arguments = ["compare", finished / "s.toml", tmp_path / "long.toml", "--out", "c"]
    with subprocess.Popen([*NANDLAB, *arguments], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 20
        while not list(tmp_path.glob("c/runs/s-seed1-*")) and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "stopped by Ctrl-C: finished runs are kept in c" in said
    (kept,) = (tmp_path / "c" / "runs").iterdir()
    assert nandlab.RunResult.read(kept).complete
    assert hidden(tmp_path) == []


def test_the_page_has_the_sentences_the_ratios_with_intervals_and_the_curves(tmp_path):
    comparison = nandlab.compare(FULL, FIFO, seeds=3, out=tmp_path / "c")
    page = nandlab.report(comparison)
    assert page == tmp_path / "c" / "compare.html"
    text = page.read_text()
    assert len(text) < 2_500_000
    (pair,) = comparison.pairs
    assert "gc.victim: fifo against greedy" in text
    cells = [
        cell for one in pair.changes if not one.further and one.verdict != "same" for cell in (one.words, one.judged)
    ]
    assert all(html.escape(cell) in text for cell in cells)
    assert "gc.victim" in text and comparison.method[0].split("; ")[0] in text
    drawn = {
        part.figure.title: part.figure
        for section in compare_page(comparison).sections
        for part in flat_parts(section.parts)
        if isinstance(part, Drawing)
    }
    heads, rows = drawn["Ratio to spec"].table()
    assert heads == ("metric", "gc.victim=fifo", "gc.victim=fifo, low", "gc.victim=fifo, high")
    shown = {row[0].rstrip(" \u2190\u2192"): [float(cell) for cell in row[1:]] for row in rows}
    assert {"write amplification \u2190", "IOPS \u2192"} <= {row[0] for row in rows}
    for one in pair.changes[:5]:
        low, high = one.ratio.interval
        assert shown[one.words] == pytest.approx([1 + one.ratio.mean, 1 + low, 1 + high], rel=1e-5)
    # A curve over the seeds is their mean at each latency, and ends at 1 % where 1 % of the requests is slower.
    (chart,) = [panel.chart for panel in drawn["Slowest writes"].panels]
    of_runs = [result.summary.latency_us.write for result in comparison.baseline.results]
    slower = {one.name: one.y for one in chart.series}["spec"]
    at_p99 = np.interp(np.mean([of.p99 for of in of_runs]), chart.xs, slower)
    assert at_p99 == pytest.approx(0.01, rel=0.4)
    assert {"Slowest reads", "Slowest writes", "IOPS", "WAF"} <= set(drawn)
    assert all(len(panel.chart.series) == 2 for title in ("IOPS", "WAF") for panel in drawn[title].panels)


def change_of(baseline, values, better="lower"):
    return Change("metric", "words", "us", baseline, values, better=better)


@pytest.mark.parametrize(
    ("one", "change", "interval", "judged"),
    [
        (change_of((10.0,), (12.0,)), "+20 %", "", "worse"),
        (change_of((10.0,), (12.0,), "higher"), "+20 %", "", "better"),
        (change_of((10.0,), (12.0,), ""), "+20 %", "", "differs"),
        (change_of((10.0,), (8.0,)), "-20 %", "", "better"),
        (change_of((10.0,), (30.0,)), "x 3.00", "", "worse"),
        (change_of((0.0,), (3.0,)), "+3 µs", "", "worse"),
        (change_of((5.0,), (5.0,)), "0 %", "", "same"),
        (change_of((10.0, 10.0), (9.0, 9.1)), "-9.5 %", "-16 to -2.9", "better"),
        (change_of((10.0, 10.0), (9.0, 11.0)), "-0.5 %", "too few seeds", "unclear"),
        (change_of((10.0, 10.0), (30.0, 31.0)), "x 3.05", "2.48 to 3.76", "worse"),
        (change_of((0.0, 0.0), (3.0, 3.0)), "+3 µs", "+3 µs to +3 µs", "worse"),
    ],
)
def test_a_change_in_a_table(one, change, interval, judged):
    assert (one.change, one.interval, one.judged) == (change, interval, judged)


def test_the_frame_of_a_comparison():
    comparison = nandlab.compare(FULL, FIFO, seeds=2)
    (pair,) = comparison.pairs
    frame = comparison.frame
    assert frame.columns == [
        *("run", "metric", "unit", "baseline", "value", "ratio", "low", "high", "better", "verdict")
    ]
    assert frame["metric"].to_list() == [one.metric for one in pair.changes]
    (waf,) = frame.filter(metric="waf").to_dicts()
    one = of(pair, "waf")
    assert waf["ratio"] == 1 + one.ratio.mean and waf["better"] == "lower"
    assert (waf["low"], waf["high"]) == tuple(1 + end for end in one.ratio.interval)
    assert waf["value"] == pytest.approx(sum(one.values) / 2)
    zero = frame.filter(metric="requests_failed").to_dicts()[0]
    assert zero["ratio"] is None and zero["low"] is None and zero["verdict"] == "same"
    assert repr(comparison).count("\n") < 10 and "gc.victim: fifo against greedy" in repr(comparison)


@pytest.mark.parametrize("name", [metric.name for metric in METRICS])
def test_every_metric_has_a_place(name):
    assert 0 <= place(name) <= len(FIRST) and better(name) in ("lower", "higher", "")
    assert name != "waf" or place(name) == 0


def test_curves_over_time_are_those_of_the_runs():
    comparison = nandlab.compare(FULL, FIFO)
    curves = dict(charts_over_time(comparison))
    for one in comparison.runs:
        table = one.results[0].numpy("series")
        (series,) = [line for line in curves["IOPS"].series if line.name == one.name]
        known = np.isfinite(series.y)
        step = curves["IOPS"].xs[1] - curves["IOPS"].xs[0]
        assert series.y[known].sum() * step == pytest.approx(one.results[0].summary.requests, rel=0.05)
        assert series.low is None
        assert table["iops"].max() >= np.nanmax(series.y)


def test_a_page_of_runs_without_a_difference_says_so(tmp_path):
    page = nandlab.report(nandlab.compare(FULL, FULL), tmp_path / "same.html").read_text()
    assert "All results are the same to the byte." in page
    assert "Ratio to" not in page


def flat_parts(parts):
    for part in parts:
        yield part
        yield from flat_parts(getattr(part, "parts", ()))


def charts_over_time(comparison):
    for section in compare_page(comparison).sections:
        if section.title == "Over time":
            for part in flat_parts(section.parts):
                if isinstance(part, Drawing):
                    yield part.figure.title, part.figure.panels[0].chart
