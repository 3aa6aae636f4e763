"""Studies: their files, their identities, their verdicts; killed, resumed and spread over processes."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[2]

BASE = """\
seed = 3
[drive]
channels = 1
chips_per_channel = 1
planes_per_die = 1
blocks_per_plane = 64
pages_per_block = 16
op = 0.25
endurance = 1000000
[precondition]
used = 0.7
valid = 0.9
[workload]
synthetic = { requests = 4000, read_fraction = 0.3, size = "4KiB", address = "uniform" }
arrival = { queue_depth = 2 }
"""

STUDY = """\
[study]
title = "Small"
question = "Which victim?"
base = "base.toml"

[variants.greedy]
set = { "gc.victim" = "greedy" }
[variants.fifo]
title = "First in, first out"
set = { "gc.victim" = "fifo" }

[workloads.uniform]
set = { "workload.synthetic.address" = "uniform" }
[workloads.skewed]
set = { "workload.synthetic.address" = { zipf = 0.9 } }

[grid]
"drive.op" = [0.25, 0.5]

[metrics]
gc_share = "flash.program.gc / (flash.program.gc + flash.program.host)"

[[figures]]
id = "waf"
title = "Write amplification"
metric = "steady.waf"
over = "drive.op"
panels = "workload"

[[figures]]
id = "relative"
title = "Relative to greedy"
metric = "waf"
over = "workload"
normalised_to = "greedy"
kind = "bar"

[[figures]]
id = "reads"
title = "Reads"
metric = "latency_us.read"
kind = "cdf"
where = { workload = "uniform", "drive.op" = 0.25 }

[[claims]]
id = "low"
figure = "waf"
what = "FIFO amplifies little with much spare space"
value = 1.1
tolerance = { absolute = 5.0 }
source = "section 1"
measure = { where = { variant = "fifo", workload = "uniform", "drive.op" = 0.5 } }

[[claims]]
id = "mean"
figure = "waf"
what = "It amplifies"
value = 1000.0
tolerance = { relative = 0.01 }
baseline = 1.0
source = "section 2"
measure = { reduce = "mean" }
deviation = "a drive of a few blocks"
"""

#: What readers see; the same bytes however the study was run.
OUTCOME = ["results.parquet", "claims.json", "report.html"] + [
    f"figures/{name}.{kind}" for name in ("waf", "relative", "reads") for kind in ("svg", "pdf")
]


@pytest.fixture
def here(tmp_path):
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "s.toml").write_text(STUDY)
    return tmp_path


def command(*arguments, cwd, **options):
    return subprocess.run(
        [sys.executable, "-m", "nandlab", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "120", "NO_COLOR": "1"},
        timeout=240,
        **options,
    )


def start(*arguments, cwd, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "nandlab", *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def outcome(directory):
    return {name: (directory / name).read_bytes() for name in OUTCOME}


def finished(directory):
    return sorted(path.parent.name for path in Path(directory).glob("runs/[!.]*/run.json"))


def wait_for(what, seconds=60.0):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)


def wait_for_runs(directory, count):
    wait_for(lambda: len(finished(directory)) >= count)


def test_a_study_from_end_to_end(here):
    done = command("study", "s.toml", "--workers", "2", cwd=here)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "8 runs done" in done.stdout
    assert "out/s/report.html" in done.stdout
    out = here / "out" / "s"
    assert all(data for data in outcome(out).values())
    assert len(finished(out)) == 8
    claims = {claim["id"]: claim for claim in json.loads((out / "claims.json").read_text())["claims"]}
    assert claims["low"]["verdict"] == "reproduced"
    assert claims["mean"]["verdict"] == "same direction"
    page = (out / "report.html").read_text()
    for text in ("Which victim?", "First in, first out", "a drive of a few blocks", "section 2", "drive.op", "<svg"):
        assert text in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert str(here) not in page
    again = command("study", "s.toml", cwd=here)
    assert "0 runs done, 8 were there" in again.stdout
    # A kept run is a result like any other.
    assert command("report", out / "runs" / finished(out)[0], "--out", "r.html", cwd=here).returncode == 0


def test_results_are_one_tidy_table(here):
    import nandlab

    study = nandlab.Study.load(here / "s.toml")
    assert len(study.runs) == 8
    result = study.run(here / "o", workers=2)
    table = study.results
    assert table.height == 8
    assert set(table["variant"]) == {"greedy", "fifo"}
    assert set(table["drive.op"]) == {0.25, 0.5}
    assert table["run"].n_unique() == 8
    share = table["flash.program.gc"] / (table["flash.program.gc"] + table["flash.program.host"])
    assert (table["gc_share"] - share).abs().max() < 1e-12
    figure = result.figure("relative")
    assert (figure.filter(figure["series"] == "greedy")["y"] == 1.0).all()
    pandas = pytest.importorskip("pandas")
    assert isinstance(study.to_pandas(), pandas.DataFrame)
    assert list(study.to_pandas().columns) == table.columns


def test_a_run_in_a_study_is_the_run_alone(here):
    import nandlab

    study = nandlab.Study.load(here / "s.toml")
    study.run(here / "o", workers=1)
    for run in study.runs[:2]:
        alone = nandlab.run(run.spec, name="alone")
        assert (here / "o" / "runs" / run.identity / "summary.json").read_text() == alone.summary_text


SLOW = 'set = { "gc.victim" = "fifo", "workload.synthetic.requests" = 60000 }'


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The outcome of the slow study when nothing happens to it."""
    here = tmp_path_factory.mktemp("undisturbed")
    (here / "base.toml").write_text(BASE)
    (here / "s.toml").write_text(STUDY.replace('set = { "gc.victim" = "fifo" }', SLOW))
    assert command("study", "s.toml", "--out", "whole", cwd=here).returncode == 0
    return outcome(here / "whole")


def test_killed_and_resumed_is_the_same_as_undisturbed(here, undisturbed):
    (here / "s.toml").write_text(STUDY.replace('set = { "gc.victim" = "fifo" }', SLOW))
    for wanted in (1, 3):
        process = start("study", "s.toml", "--out", "killed", "--workers", "2", cwd=here)
        wait_for_runs(here / "killed", wanted)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.communicate()
        assert len(finished(here / "killed")) >= wanted
        assert not (here / "killed" / "report.html").exists()
    before = {name: (here / "killed/runs" / name / "run.json").stat().st_mtime_ns for name in finished(here / "killed")}
    done = command("study", "s.toml", "--out", "killed", cwd=here)
    assert done.returncode == 0, done.stderr
    # The workers see that their study is gone, and keep nothing.
    assert f"{8 - len(before)} runs done, {len(before)} were there" in done.stdout
    for name, changed in before.items():
        assert (here / "killed/runs" / name / "run.json").stat().st_mtime_ns == changed
    assert outcome(here / "killed") == undisturbed
    assert [path.name for path in (here / "killed").rglob(".*")] == [".lock"]


def children(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(line) for line in found.split()]


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps")
def test_a_worker_that_is_killed_costs_its_run_only(here, undisturbed):
    (here / "s.toml").write_text(STUDY.replace('set = { "gc.victim" = "fifo" }', SLOW))
    process = start("study", "s.toml", "--out", "hurt", "--workers", "2", cwd=here)
    wait_for_runs(here / "hurt", 1)
    os.kill(children(process.pid)[0], signal.SIGKILL)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "lost and tried again" in out
    assert outcome(here / "hurt") == undisturbed


def test_ctrl_c_keeps_finished_runs_and_leaves_no_process(here):
    long = SLOW.replace("60000", "30000000")
    (here / "s.toml").write_text(STUDY.replace('set = { "gc.victim" = "fifo" }', long))
    process = start("study", "s.toml", "--out", "o", "--workers", "2", cwd=here)
    wait_for_runs(here / "o", 1)
    workers = children(process.pid) if shutil.which("ps") else []
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "finished runs are kept" in err
    assert "Traceback" not in err
    assert finished(here / "o")
    for worker in workers:
        assert not Path(f"/proc/{worker}").exists()


def test_two_studies_do_not_share_a_folder(here):
    import nandlab
    from nandlab.study.store import Store

    store = Store(here / "o")
    store.open("other")
    try:
        with pytest.raises(nandlab.OutputError, match="another study is writing"):
            nandlab.Study.load(here / "s.toml").run(here / "o")
    finally:
        store.close()
    (here / "mine").mkdir()
    (here / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(nandlab.OutputError, match="not of a study"):
        nandlab.Study.load(here / "s.toml").run(here / "mine")


def test_a_wrong_claim_turns_red(here):
    import nandlab

    (here / "s.toml").write_text(
        STUDY.replace("value = 1.1", "value = 99.0").replace("absolute = 5.0", "absolute = 1.0")
    )
    result = nandlab.Study.load(here / "s.toml").run(here / "o")
    claims = {claim["id"]: claim for claim in result.claims}
    assert claims["low"]["verdict"] == "not reproduced"
    page = result.report.read_text()
    row = page.split('id="claim-low"')[0].rsplit("<tr ", 1)[1]
    assert 'class="v-bad"' in row
    assert "tr.v-bad td.verdict { color: var(--bad); }" in page
    assert "1 not reproduced" in page


VERDICTS = [
    (2.0, "{ relative = 0.1 }", "", "reproduced"),
    (2.1, "{ absolute = 0.1 }", "", "reproduced"),
    (2.3, "{ relative = 0.1 }", "", "not reproduced"),
    (3.0, "{ relative = 0.1 }", "baseline = 1.0", "same direction"),
    (3.0, "{ relative = 0.1 }", "baseline = 2.5", "not reproduced"),
    (3.0, "{ relative = 0.1 }", 'baseline = 2.5\ndirection = "below"', "same direction"),
    (
        9.0,
        "{ relative = 0.1 }",
        'direction = "above"\nbaseline = { where = { variant = "greedy" } }',
        "not reproduced",
    ),
]


def test_verdicts(tmp_path):
    """The metric `2 + 0 * waf` is 2 in every run."""
    import nandlab

    (tmp_path / "base.toml").write_text(BASE)
    claims = (
        f'[[claims]]\nid = "c{number}"\nfigure = "f"\nwhat = "W"\nvalue = {value}\ntolerance = {tolerance}\n'
        f'source = "S"\n{more}\nmeasure = {{ where = {{ variant = "fifo" }} }}\n'
        for number, (value, tolerance, more, _) in enumerate(VERDICTS)
    )
    (tmp_path / "s.toml").write_text(
        '[study]\ntitle = "T"\nquestion = "Q"\nbase = "base.toml"\n'
        '[variants.greedy]\nset = { "gc.victim" = "greedy" }\n[variants.fifo]\nset = { "gc.victim" = "fifo" }\n'
        '[[figures]]\nid = "f"\ntitle = "F"\nmetric = "2 + 0 * waf"\nover = "variant"\nkind = "bar"\n' + "".join(claims)
    )
    result = nandlab.Study.load(tmp_path / "s.toml").run(tmp_path / "o", workers=1)
    assert [claim["verdict"] for claim in result.claims] == [verdict for *_, verdict in VERDICTS]


def test_a_direction_without_a_number_is_a_claim(tmp_path):
    import nandlab

    (tmp_path / "base.toml").write_text(BASE)
    head = (
        '[study]\ntitle = "T"\nquestion = "Q"\nbase = "base.toml"\n'
        '[variants.greedy]\nset = { "gc.victim" = "greedy" }\n'
        '[[figures]]\nid = "f"\ntitle = "F"\nmetric = "2 + 0 * waf"\nover = "variant"\nkind = "bar"\n'
    )
    claim = '[[claims]]\nid = "{0}"\nfigure = "f"\nwhat = "W"\nsource = "S"\nbaseline = 1.0\ndirection = "{0}"\n'
    (tmp_path / "s.toml").write_text(head + claim.format("above") + claim.format("below"))
    result = nandlab.Study.load(tmp_path / "s.toml").run(tmp_path / "o", workers=1)
    assert [claim["verdict"] for claim in result.claims] == ["reproduced", "not reproduced"]
    assert [claim["reported"] for claim in result.claims] == [None, None]
    assert "above 1" in result.report.read_text()
    (tmp_path / "s.toml").write_text(head + claim.format("above").replace('direction = "above"', ""))
    with pytest.raises(nandlab.NandlabError, match=r"claims\.0\.value: missing"):
        nandlab.Study.load(tmp_path / "s.toml")


VALUES = """\
[study]
title = "T"
question = "Q"
base = "base.toml"
[values]
k = 2
alpha = 0.9
[variants.random]
set = { "gc.victim" = { random = { k = "{k}" } } }
[variants.greedy]
set = { "gc.victim" = "greedy" }
[workloads.zipf]
set = { "workload.synthetic.address" = { zipf = "{alpha}" } }
facts = { half = 0.5 }
[workloads.uniform]
set = { "workload.synthetic.address" = "uniform" }
facts = { half = 0.25 }
[parts.default]
[parts.ks]
grid = { k = [4, 8] }
[metrics]
gain = "waf['random'] - waf"
twice = "2 * gain['greedy']"
blocks = "total(by_number)"
[[figures]]
id = "f"
title = "F"
metric = "gain"
over = "workload"
kind = "bar"
where = { part = "default" }
mean = true
[[figures.reference]]
name = "half"
expression = "half"
where = { variant = "greedy" }
[[claims]]
figure = "f"
what = "W"
value = 0.0
tolerance = { absolute = 1e-9 }
source = "S"
measure = { where = { variant = "random" }, reduce = "mean" }
"""


def test_values_facts_means_and_other_variants(tmp_path):
    import nandlab

    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "s.toml").write_text(VALUES.replace('blocks = "total(by_number)"\n', ""))
    study = nandlab.Study.load(tmp_path / "s.toml")
    found = {
        (run.part, run.point.get("k")): json.loads(run.spec.canonical_json())["gc"]["victim"]["random"]["k"]
        for run in study.runs
        if run.variant == "random"
    }
    assert found == {("default", None): 2, ("ks", 4): 4, ("ks", 8): 8}
    result = study.run(tmp_path / "o", workers=2)
    rows = {(r["part"], r["variant"], r["workload"], r["k"]): r for r in result.results.to_dicts()}
    for (part, variant, workload, k), row in rows.items():
        other = rows[(part, "random", workload, k)]
        assert row["gain"] == other["waf"] - row["waf"]
        assert row["twice"] == 2 * rows[(part, "greedy", workload, k)]["gain"]
        assert variant != "random" or row["gain"] == 0
    bars = {(r["series"], r["x"]): r["y"] for r in result.figure("f").to_dicts()}
    assert bars[("greedy", "mean")] == pytest.approx((bars[("greedy", "zipf")] + bars[("greedy", "uniform")]) / 2)
    assert (bars[("half", "zipf")], bars[("half", "uniform")], bars[("half", "mean")]) == (0.5, 0.25, 0.375)
    assert result.claims[0]["verdict"] == "reproduced"


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ('"{k}"', '"{kk}"', "gc.victim: nothing is called {kk}"),
        ("waf['random']", "waf['rnadom']", 'there is no variant "rnadom"'),
        ("total(by_number)", "total(1)", "write at(ecc.levels, 1) or total(ecc.levels)"),
        ("half = 0.5", 'half = "x"', "workloads.zipf.facts.half: expected a number, found a string"),
        ("total(by_number)", "total(waf)", 'no metric "waf.*"'),
    ],
)
def test_mistakes_with_values_and_variants(tmp_path, right, wrong, told):
    import nandlab

    assert right in VALUES
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "s.toml").write_text(VALUES.replace(right, wrong, 1))
    with pytest.raises(nandlab.NandlabError) as refused:
        nandlab.Study.load(tmp_path / "s.toml").run(tmp_path / "o", workers=1)
    assert told in str(refused.value)


def test_metrics_kept_by_number():
    from nandlab.study.expression import Expression

    values = {"ecc.levels.1": 6, "ecc.levels.3": 2, "ecc.retries": 5}
    assert Expression.parse("at(ecc.levels, 3) / total(ecc.levels)").value(values) == 0.25
    assert Expression.parse("at(ecc.levels, 2)").value(values) == 0
    assert Expression.parse("at(ecc.levels, 2)").names == ("ecc.levels.*",)
    assert Expression.parse("total(ecc.tries)").value(values) is None
    nth = Expression.parse("at(ecc.levels, nth + 1)")
    assert nth.names == ("ecc.levels.*", "nth")
    assert [nth.value(values | {"nth": n}) for n in (0, 1, 2, 0.5)] == [6, 0, 2, None]
    assert nth.value(values) is None


SOME_HAVE = """\
[study]
title = "T"
question = "Q"
base = "base.toml"
[variants.off-chip]
set = { "migration.policy" = "off-chip" }
[variants.copyback]
set = { "migration.policy" = { rcopyback-greedy = { limit = 2 } } }
[workloads.plain]
set = { "workload.synthetic.address" = "uniform" }
[workloads.reported]
set = { "gc.victim" = { random = { k = 3 } } }
facts = { theirs = 1.5 }
[parts.first]
[parts.second]
variants = ["copyback"]
grid = { "drive.op" = [0.3, 0.4] }
[metrics]
above = "waf - theirs"
spare = "drive.op"
second = "at(migration.by_count, 2)"
tried = "spec.gc.victim.random.k"
[[figures]]
id = "f"
title = "F"
metric = "above + 0 * spare"
over = "workload"
kind = "bar"
[[figures.reference]]
name = "theirs"
expression = "theirs"
"""


def test_a_run_without_a_name_that_others_have_is_no_point(tmp_path):
    import nandlab

    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "s.toml").write_text(SOME_HAVE)
    result = nandlab.Study.load(tmp_path / "s.toml").run(tmp_path / "o", workers=2)
    for row in result.results.to_dicts():
        assert (row["above"] is None) == (row["workload"] == "plain")
        assert row["spare"] == row["drive.op"] and (row["spare"] is None) == (row["part"] == "first")
        assert row["tried"] == (3 if row["workload"] == "reported" else None)
        assert (row["second"] is None) == (row["variant"] == "off-chip")
    assert set(result.figure("f")["x"]) == {"reported"}
    # Nor are the names of what the small size leaves out mistakes.
    (tmp_path / "s.toml").write_text(SOME_HAVE + '[smoke]\nparts = ["first"]\nvariants = ["off-chip"]\n')
    small = nandlab.Study.load(tmp_path / "s.toml", smoke=True).run(tmp_path / "small", workers=1)
    assert small.results["spare"].null_count() == small.results.height == 2
    # What no run has is refused, though the run that ends first cannot tell.
    (tmp_path / "s.toml").write_text(SOME_HAVE.replace("by_count", "by_cuont"))
    with pytest.raises(nandlab.NandlabError, match=r's\.toml:21: metrics\.second: no metric "migration\.by_cuont\.\*"'):
        nandlab.Study.load(tmp_path / "s.toml").run(tmp_path / "o", workers=1)
    # A metric is made of those above it.
    (tmp_path / "s.toml").write_text(SOME_HAVE.replace('"drive.op"\nsecond', '"second"\nsecond'))
    with pytest.raises(nandlab.NandlabError, match=r'metrics\.spare: no metric "second"'):
        nandlab.Study.load(tmp_path / "s.toml").run(tmp_path / "o", workers=1)


def test_steady_waf_counts_what_the_host_wrote_to_the_cache():
    from nandlab.study.metrics import steady

    programs = {"program_host": [0, 0], "program_sync": [7, 4], "program_gc": [0, 2]}
    written = {"pages_written": [5, 10], "bytes_write": [10240, 20480], "bytes_programmed": [28672, 24576]}
    series = pl.DataFrame({"time_s": [1.0, 2.0], "interval_s": [1.0, 1.0], **written, **programs})
    assert steady(series)["steady.waf_pages"] == 0.6
    assert steady(series)["steady.waf"] == 1.2


def test_a_trace_named_by_the_environment(tmp_path, monkeypatch):
    import nandlab

    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "t.csv").write_text("0,a,0,Write,0,4096,0\n128166372003061629,a,0,Write,0,4096,0\n")
    (tmp_path / "base.toml").write_text(BASE.split("[workload]")[0])
    (tmp_path / "s.toml").write_text(
        '[study]\ntitle = "T"\nquestion = "Q"\nbase = "base.toml"\n[workloads.t]\ntrace = "$NANDLAB_TRACES/t.csv"\n'
    )
    monkeypatch.delenv("NANDLAB_TRACES", raising=False)
    with pytest.raises(nandlab.NandlabError, match="the environment has no NANDLAB_TRACES"):
        nandlab.Study.load(tmp_path / "s.toml")
    monkeypatch.setenv("NANDLAB_TRACES", str(tmp_path / "far"))
    assert len(nandlab.Study.load(tmp_path / "s.toml").runs) == 1


# ------------------------------------------------------------------------------------------------------------- factors

FACTORS = """\
[study]
title = "T"
question = "Q"
base = "base.toml"
[factors.A]
title = "skew"
off = { "gc.victim" = "greedy" }
on = { "gc.victim" = "fifo" }
[factors.B]
on = { "drive.op" = 0.5 }
[variants.other]
set = { "gc.victim" = "fifo", "drive.op" = 0.4 }
[grid]
seed = [1, 2]
[[figures]]
id = "f"
title = "F"
kind = "effects"
metric = "waf"
[[claims]]
id = "a"
figure = "f"
what = "W"
direction = "above"
source = "S"
measure = { effect = "A" }
[[claims]]
id = "ab"
figure = "f"
what = "W"
direction = "below"
baseline = { effect = "B", reduce = "max" }
source = "S"
measure = { effect = "B:A" }
"""


def rows_of(values, **columns):
    return [({"variant": name, **columns}, value) for name, value in values.items()]


def test_effects_by_hand():
    from nandlab.study.effects import effects

    # A alone doubles, with B on it triples; B alone makes 4 of it.
    values = {"none": 1.0, "A": 2.0, "B": 4.0, "AB": 12.0}
    found = {effect.key: effect for effect in effects("AB", rows_of(values), "ratio")}
    assert found["A"].reduced() == pytest.approx(6**0.5 - 1)
    assert found["B"].reduced() == pytest.approx(24**0.5 - 1)
    assert found["A:B"].reduced() == pytest.approx(3 / 2 - 1)
    # The same from the other side.
    turned = {effect.key: effect for effect in effects("BA", rows_of({**values, "BA": 12.0}), "ratio")}
    assert turned["B:A"].reduced() == pytest.approx(found["A:B"].reduced())
    # On the scale of differences; 0 is a value there.
    values = {"none": 0.0, "A": 1.0, "B": 4.0, "AB": 8.0}
    found = {effect.key: effect.reduced() for effect in effects("AB", rows_of(values), "difference")}
    assert found == pytest.approx({"A": (1 + 4) / 2, "B": (4 + 7) / 2, "A:B": 4 - 1})


def test_effects_over_replicates():
    from nandlab.study.effects import effects

    rows = rows_of({"none": 1.0, "A": 2.0}, seed=1) + rows_of({"none": 1.0, "A": 8.0}, seed=2)
    rows += rows_of({"none": 0.0, "A": 8.0}, seed=3)  # no ratio to 0
    rows += rows_of({"none": 1.0, "A": None}, seed=4)
    (effect,) = effects("AB", rows, "ratio")
    assert (effect.names, effect.replicates) == (("A",), pytest.approx((1.0, 7.0)))
    assert [effect.reduced(how) for how in ("mean", "median", "min", "max")] == pytest.approx([3.0, 4.0, 1.0, 7.0])
    (effect,) = effects("AB", rows, "difference")
    assert effect.reduced() == pytest.approx((1 + 7 + 8) / 3)
    # What every run has on is no effect; what is not of the factors is passed over.
    rows = rows_of({"C": 1.0, "AC": 2.0, "BC": 3.0, "ABC": 6.0, "other": 5.0, "CA": 5.0})
    assert [effect.key for effect in effects("ABC", rows, "ratio")] == ["A", "B", "A:B"]
    assert effects("ABC", rows_of({"none": 1.0, "A": 2.0, "B": 3.0}), "ratio") == []


def test_factors_make_variants_and_effects(tmp_path):
    import nandlab

    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "s.toml").write_text(FACTORS)
    study = nandlab.Study.load(tmp_path / "s.toml")
    assert list(dict.fromkeys(run.variant for run in study.runs)) == ["other", "none", "A", "B", "AB"]
    spec = json.loads(next(run for run in study.runs if run.variant == "AB").spec.canonical_json())
    assert (spec["gc"]["victim"], spec["drive"]["op"]) == ("fifo", 0.5)
    result = study.run(tmp_path / "o", workers=2)
    waf = {(r["variant"], r["seed"]): r["waf"] for r in result.results.to_dicts()}
    ratio = [(waf["A", s] / waf["none", s] * waf["AB", s] / waf["B", s]) ** 0.5 for s in (1, 2)]
    shown = {(r["series"], r["x"]): r["y"] for r in result.figure("f").to_dicts()}
    assert shown["effect", "A"] == pytest.approx((ratio[0] * ratio[1]) ** 0.5 - 1)
    assert shown["smallest replicate", "A"] == pytest.approx(min(ratio) - 1)
    assert shown["largest replicate", "A"] == pytest.approx(max(ratio) - 1)
    claims = {claim["id"]: claim for claim in result.claims}
    assert claims["a"]["measured"] == pytest.approx(shown["effect", "A"])
    assert claims["a"]["baseline"] == 0.0
    assert claims["a"]["verdict"] == ("reproduced" if shown["effect", "A"] > 0 else "not reproduced")
    assert claims["ab"]["measured"] == pytest.approx(shown["effect", "A:B"])
    assert claims["ab"]["baseline"] == pytest.approx(shown["largest replicate", "B"])
    page = result.report.read_text()
    for text in ("<b>A</b> skew", "skew \u00d7 B", "Pale:", "effect of B:A on waf (ratio)"):
        assert text in page
    for kind in ("svg", "pdf"):
        assert (tmp_path / "o" / "figures" / f"f.{kind}").stat().st_size > 1000
    # Fewer of the factors at the small size: what is left is shown, and claims of the rest are not measured.
    (tmp_path / "s.toml").write_text(FACTORS + '[smoke]\nvariants = ["none", "A"]\n')
    small = nandlab.Study.load(tmp_path / "s.toml", smoke=True).run(tmp_path / "small", workers=1)
    assert set(small.figure("f")["x"]) == {"A"}
    assert [claim["verdict"] == "not measured" for claim in small.claims] == [False, True]


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("[factors.A]", "[factors.skew]", 's.toml:5: factors.skew: "skew" is no letter'),
        ('on = { "gc.victim" = "fifo" }', "", "s.toml:5: factors.A.on: missing"),
        (
            '"gc.victim" = "fifo" }\n[factors.B]',
            '"gc.victm" = "fifo" }\n[factors.B]',
            "s.toml:8: gc.victm: unknown key",
        ),
        ('on = { "drive.op" = 0.5 }', 'on = { "gc.victim" = "fifo" }', "gc.victim: set here and in line 7"),
        ("[variants.other]", "[variants.AB]", "variants.AB: the factors make a variant of this name"),
        ('effect = "A" }', "}", "claims.0.measure.effect: missing\n  remedy: say which"),
        ('effect = "A" }', 'effect = "C" }', 'claims.0.measure.effect: there is no factor "C"'),
        ('effect = "A" }', 'effect = "A:A" }', 'claims.0.measure.effect: "A:A" is neither a factor nor a pair'),
        ('effect = "A" }', 'effect = "A", reduce = "sum" }', 'claims.0.measure.reduce: unknown value "sum"'),
        ('effect = "A" }', 'effect = "A", normalised_to = "none" }', "an effect is relative already"),
        ('effect = "A" }', 'effect = "A", where = { variant = ["none", "B"] } }', "its runs do not vary A"),
        ('metric = "waf"', 'metric = "waf"\nover = "seed"', "figures.0.over: a figure of effects has none"),
        ('metric = "waf"', 'metric = "waf"\nscale = "log"', 'figures.0.scale: unknown value "log"'),
        (
            'kind = "effects"',
            'kind = "bar"\nover = "seed"',
            "claims.0.measure.effect: the figure of this claim shows no",
        ),
        ('metric = "waf"', 'metric = "waf"\nwhere = { variant = ["none", "A", "B"] }', "not all there: no AB"),
        (FACTORS[FACTORS.index("[factors.A]") : FACTORS.index("[variants")], "", "the study has no factors"),
    ],
)
def test_mistakes_with_factors(tmp_path, right, wrong, told):
    import nandlab

    assert right in FACTORS
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "s.toml").write_text(FACTORS.replace(right, wrong, 1))
    with pytest.raises(nandlab.NandlabError) as refused:
        nandlab.Study.load(tmp_path / "s.toml")
    assert told in str(refused.value)


def test_exposure_is_what_the_capacitor_cannot_save():
    from nandlab.study.metrics import exposure

    series = pl.DataFrame({"interval_s": [1.0, 3.0], "cache_dirty_pages": [100, 60], "capacitor_pages": [80.0, 80.0]})
    assert exposure(series) == {"exposure.pages": 5.0, "exposure.pages_max": 20.0, "exposure.time_share": 0.25}
    assert exposure(series.select("interval_s")) == {}


# ------------------------------------------------------------------------------------------------------------ mistakes

MISTAKES = [
    ('title = "Small"', "", "study.title: missing"),
    ('question = "Which victim?"', "question = 5", "s.toml:3: study.question: expected a string, found a number"),
    ('base = "base.toml"', 'base = "bsae.toml"', "s.toml:4: study.base: cannot read"),
    ("[variants.fifo]", "[varaints.fifo]", "varaints: unknown key\n  remedy: did you mean variants?"),
    ('"gc.victim" = "fifo"', '"gc.victim" = "fif"', 's.toml:10: gc.victim: unknown value "fif"'),
    ('"gc.victim" = "fifo"', '"gc.victm" = "fifo"', "s.toml:10: gc.victm: unknown key"),
    ("[0.25, 0.5]", "[0.25, 0.5, -3]", "s.toml:18: drive.op: the number -3 is out of range"),
    ("[0.25, 0.5]", "[0.25, 0.25]", "s.toml:18: grid.drive.op.1: 0.25 is there already"),
    ('over = "drive.op"', 'over = "drive.po"', "s.toml:27: figures.0.over: no column"),
    ('kind = "bar"', 'kind = "pie"', 's.toml:36: figures.1.kind: unknown value "pie"'),
    ('normalised_to = "greedy"', 'normalised_to = "gredy"', "did you mean greedy?"),
    ('metric = "steady.waf"', 'metric = "steady.waf +"', "is no expression"),
    ('metric = "waf"', 'metric = "open(waf)"', "there is no function open"),
    ('metric = "steady.waf"', 'metric = "steady.wfa"', 'figures.waf.metric: no metric "steady.wfa"'),
    ('figure = "waf"\nwhat = "It', 'figure = "wafs"\nwhat = "It', 'claims.1.figure: there is no figure "wafs"'),
    ("value = 1.1", 'value = "1.1"', "s.toml:49: claims.0.value: expected a number, found a string"),
    ("{ absolute = 5.0 }", "{ absolute = -5.0 }", "s.toml:50: claims.0.tolerance.absolute: -5.0 is below 0"),
    ("{ absolute = 5.0 }", "5", "tolerance: expected { relative = 0.02 } or { absolute = 0.1 }, found a number"),
    ('variant = "fifo", workload', 'variant = "fof", workload', "s.toml:52: claims.0.measure.where.variant: 'fof'"),
    ('workload = "uniform", "drive.op" = 0.5', 'workload = "uniform"', "matches 2 runs, and one is wanted"),
    ("[grid]", "[grid\n", "s.toml:17: "),
    ("[workloads.skewed]", '[workloads.skewed]\ntrace = "no.csv"', "s.toml:15: workload.trace: cannot read no.csv"),
    ('[variants.greedy]\nset = { ', '[variants.greedy]\nset = { "drive.op" = 1.0, ', "for the same run"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "told"), MISTAKES)
def test_a_mistake_is_told_with_its_line(here, right, wrong, told):
    import nandlab

    assert right in STUDY
    (here / "s.toml").write_text(STUDY.replace(right, wrong, 1))
    with pytest.raises(nandlab.NandlabError) as refused:
        nandlab.Study.load(here / "s.toml").run(here / "o", workers=1)
    assert told in str(refused.value).replace(f"{here}/", "")
    assert not (here / "o" / "report.html").exists()


def refused(path):
    """What is told of a study file that is refused, at once and briefly."""
    import nandlab
    import nandlab.study.definition  # it takes its time, and is no part of the answer

    begin = time.process_time()
    with pytest.raises(nandlab.NandlabError) as error:
        nandlab.Study.load(path)
    assert time.process_time() - begin < 3
    text = str(error.value).replace(f"{path.parent}/", "")
    assert len(text) < 25_000 and text.replace("\n", "").isprintable()
    return text


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "..", ".hidden", "a/b", "a b", "", "x" * 101])
@pytest.mark.parametrize("what", ["study.name", "figures.0.id"])
def test_a_name_does_not_leave_the_folder(here, what, name):
    right = {"study.name": ('title = "Small"', f'title = "Small"\nname = "{name}"', 3)}
    right["figures.0.id"] = ('id = "waf"', f'id = "{name}"', 24)
    before, after, line = right[what]
    (here / "s.toml").write_text(STUDY.replace(before, after, 1))
    told = refused(here / "s.toml")
    assert f's.toml:{line}: {what}: "{name[:77]}' in told
    assert "cannot name a file\n  remedy: letters, digits" in told


@pytest.mark.parametrize(
    ("file", "name"), [("a b.toml", "a-b"), ("...toml", "study"), ("x/study.toml", "x"), ("x/y/../study.toml", "x")]
)
def test_a_study_without_a_name_is_called_as_its_file(tmp_path, file, name):
    import nandlab

    (tmp_path / "x" / "y").mkdir(parents=True)
    (tmp_path / file).write_text('[study]\ntitle = "T"\nquestion = "Q"\n[base]\nseed = 1\n[base.drive]\nchannels = 1\n')
    assert nandlab.Study.load(tmp_path / file).name == name


SECRETS = [
    ("root:S3CRET:19000:0:99999", "1: not TOML"),
    ("a = 1\nroot:S3CRET:19000", "2: not TOML"),
    ('S3CRET = 1\nS3CRET = "S3CRET"', "2: not TOML"),
    ("S3CRET = " + 5000 * "9", "1: not TOML"),
    ("S3CRET = " + 5000 * "[", "1: not TOML"),
    ("S3CRET = " + 50 * "[" + 50 * "]", "1: nested more than 32 deep"),
    ("S3CRET" * 100_000, "more than 256 KiB"),
    ("\udcffS3CRET", "not UTF-8 text"),
]


@pytest.mark.parametrize(("secret", "told"), SECRETS, ids=range(len(SECRETS)))
def test_what_is_in_a_base_that_is_no_spec_is_not_told(here, secret, told):
    (here / "base.toml").write_text(secret, errors="surrogateescape")
    text = refused(here / "s.toml")
    assert text.startswith("s.toml:4: study.base: ") and told in text and "remedy: " in text
    assert "S3CRET" not in text


def test_what_only_the_core_refuses_in_a_base_is_not_told(here, monkeypatch):
    from nandlab.study import definition

    (here / "base.toml").write_text("root:S3CRET:19000:0")
    parse = definition.parse
    monkeypatch.setattr(definition, "parse", lambda text, origin: parse("" if "S3C" in text else text, origin))
    text = refused(here / "s.toml")
    assert "base.toml:1: not TOML" in text and "S3CRET" not in text


@pytest.mark.parametrize("key", ["base", "trace"])
def test_what_has_no_end_is_not_read(here, key):
    os.mkfifo(here / "pipe")
    for path in ("pipe", "/dev/zero"):
        text = STUDY.replace("base.toml", path) if key == "base" else STUDY + f'[workloads.w]\ntrace = "{path}"\n'
        (here / "s.toml").write_text(text)
        told = f"cannot read {path}: Not a file" if key == "base" else f"{path} can be read only once, like a pipe"
        assert told in refused(here / "s.toml")


EXPRESSIONS = [
    "(" * 9000 + "a",
    "(" * 400 + "a" + ")" * 400,
    "-" * 9000 + "a",
    "-" * 900 + "a",
    "+".join("a" * 400),
    ".".join("a" * 400),
    "a" + "['x']" * 190,
    "not " * 240 + "a",
    "9" * 5000,
]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=range(len(EXPRESSIONS)))
def test_an_expression_has_limits(here, expression):
    (here / "s.toml").write_text(STUDY.replace('metric = "steady.waf"', f'metric = "{expression}"'))
    told = refused(here / "s.toml")
    what = "operations or brackets more than 50 deep"
    if len(expression) > 1000:
        what = f"an expression of {len(expression):,} characters; the limit is 1,000"
    remedy = "make parts of it metrics of their own, under [metrics]"
    assert told == f"s.toml:26: figures.0.metric: {what}\n  remedy: {remedy}"


def test_expressions_within_the_limits():
    from nandlab.study.expression import Expression

    for text, value in [("-" * 50 + "a", 2), ("+".join("a" * 51), 102), ("(" * 50 + "a" + ")" * 50, 2)]:
        assert Expression.parse(text).value({"a": 2}) == value
    # Neither endless nor complex.
    for text in ("10**10**10**10", "9" * 999, "(0-8)**0.5", "abs((0-8)**0.5)", "at(n, (0-8)**0.5)", "at(n, 10**300)"):
        assert Expression.parse(text).value({"n.1": 1}) in (None, 0)


LIMITS = [
    ("x = " + "[" * 50 + "]" * 50, "s.toml:9: nested more than 32 deep"),
    ("x = " + "{a=" * 20_000 + "1" + "}" * 20_000, "s.toml:9: not TOML: cannot recurse further"),
    ("x = " + "[" * 20_000, "s.toml:9: not TOML: cannot recurse further"),
    ("a." * 100_000 + "a = 1", "s.toml:9: not TOML: more than 64 points in a key"),
    ("[" + "a." * 100_000 + "a]", "s.toml:9: not TOML: more than 64 points in a key"),
    ("x = [ } ]", "s.toml:9: "),
    ("x", "s.toml:9: "),
    ("x = " + "9" * 5000, "4300 digits"),
    ("x = 0x" + "f" * 5000, "s.toml:9: values.x: a number beyond 64 bits"),
    ("x = inf", "s.toml:9: values.x: a number that is not finite"),
    ("x = 2024-01-01", "s.toml:9: values.x: a date or time"),
    ('x = "a\\u001b[2J"', "s.toml:9: values.x: a control character"),
    ("x = [" + "1," * 1001 + "]", "s.toml:9: values.x: 1,001 entries; the limit is 1,000"),
    ("\n".join(f"x{i} = 1" for i in range(1001)), "s.toml:8: values: 1,001 entries; the limit is 1,000"),
    ("x" * 101 + " = 1", "s.toml:9: values." + "x" * 70 + "...: not a name"),
    (f'x = "{"y" * 10_001}"', "s.toml:9: values.x: a string of 10,001 characters; the limit is 10,000"),
    (f'x = "{"y" * 1001}"', "s.toml:9: values.x: more than 1,000 characters"),
    ("#" * 300_000, "s.toml: more than 256 KiB"),
    ("[grid]\nseed = [" + ",".join(map(str, range(1000))) + ']\n"drive.op" = [1,2,3,4,5,6]', "more than 10,000 runs"),
    ("[grid]\n" + "\n".join(f'"k{i}" = [1, 2, 3]' for i in range(1000)), "s.toml:9: grid: more than 10,000 runs"),
    ("".join(f"[variants.v{i}]\n[parts.p{i}]\n" for i in range(200)), "grid: more than 10,000 runs"),
    ("[[figures]]\n" * 1001, "s.toml:9: figures: 1,001 entries"),
    ("[[claims]]\n" * 1001, "s.toml:9: claims: 1,001 entries"),
    ("[[claims]]\n" * 1000, "claims.3.figure: missing"),
    (f'[variants.v]\nset = {{ "gc.victim" = [{"9999," * 1000}], "gc.pacing" = [{"[9999]," * 1000}], '
     f'"ecc.levels" = [{"[9999]," * 1000}] }}', "the run v sets keys of the spec in more than 20,000 characters"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "told"), LIMITS, ids=range(len(LIMITS)))
def test_a_study_file_has_limits(here, text, told):
    head = (
        '[study]\ntitle = "T"\nquestion = "Q"\nbase = "base.toml"\n[variants.a]\n[variants.b]\n[variants.c]\n[values]\n'
    )
    (here / "s.toml").write_text(head + text + "\n")
    assert told in refused(here / "s.toml")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('kind = "bar"', 'kind = "{}"'),
        ('over = "drive.op"', 'over = "{}"'),
        ('panels = "workload"', 'panels = "{}"'),
        ('panels = "workload"', 'series = ["{}", 1, [2]]'),
        ('normalised_to = "greedy"', 'normalised_to = "{}"'),
        ('metric = "steady.waf"', 'metric = "[{}"'),
        ('workload = "uniform"', 'workload = "{}"'),
        ('figure = "waf"', 'figure = "{}"'),
        ('reduce = "mean"', 'reduce = "{}"'),
        ("[0.25, 0.5]", '[0.25, "{}"]'),
        ("[0.25, 0.5]", '["{0}", "{0}"]'),
        ('"gc.victim" = "fifo"', '"gc.victim" = "{{{}}}"'),
        ("[workloads.skewed]", '[workloads.skewed]\ntrace = "${}"'),
    ],
)
def test_an_error_tells_no_more_than_a_part_of_a_line(here, right, wrong):
    (here / "s.toml").write_text(STUDY.replace(right, wrong.format("x" * 900), 1))
    told = refused(here / "s.toml")
    assert "x" * 90 not in told and "xxx..." in told


def test_names_like_a_wrong_one_among_many(here):
    variants = "".join(f"[variants.{'v' * 80}{i}]\nset = {{ seed = {i} }}\n" for i in range(900))
    wrong = ", ".join(f'"{"v" * 79}x{i}"' for i in range(900))
    (here / "s.toml").write_text(
        STUDY.replace("[grid]", variants + "[grid]").replace(
            '"greedy"\nkind', f'"greedy"\nwhere = {{ variant = [{wrong}] }}\nkind'
        )
    )
    assert refused(here / "s.toml").count("remedy: did you mean vvv") == 20


def test_all_mistakes_are_told_at_once_and_nothing_runs(here):
    text = STUDY.replace('kind = "bar"', 'kind = "pie"').replace("value = 1.1", "vlaue = 1.1").replace('"Small"', "1")
    (here / "s.toml").write_text(text)
    done = command("study", "s.toml", cwd=here)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for told in ("s.toml:2: study.title", "s.toml:36: figures.1.kind", "s.toml:49: claims.0.vlaue: unknown key"):
        assert told in done.stderr
    assert "did you mean value?" in done.stderr
    assert not (here / "out").exists()


def test_a_mistake_in_the_base_is_told_there(here):
    (here / "base.toml").write_text(BASE.replace("op = 0.25", "po = 0.25"))
    done = command("study", "s.toml", cwd=here)
    assert done.returncode == 2
    assert "base.toml:8: drive.po: unknown key" in done.stderr
    assert done.stderr.count("drive.po: unknown key") == 1, "once, not once a run"


def test_a_base_written_into_the_study(here):
    import nandlab

    inline = "\n".join(
        f"[base.{row[1:]}" if row.startswith("[") else row for row in BASE.splitlines() if row[:4] != "seed"
    )
    (here / "s.toml").write_text(STUDY.replace('base = "base.toml"\n', "") + inline.replace("[base.", "\n[base.", 1))
    assert len(nandlab.Study.load(here / "s.toml").runs) == 8
    (here / "s.toml").write_text(
        (here / "s.toml").read_text().replace("blocks_per_plane = 64", "blocks_per_plane = -1")
    )
    with pytest.raises(nandlab.StudyError, match=r"s\.toml:\d+: drive\.blocks_per_plane"):
        nandlab.Study.load(here / "s.toml")


def test_a_run_that_fails_keeps_the_others_and_writes_no_report(here):
    (here / "t.csv").write_text("128166372003061629,hm,0,Write,0,4096,100\nmalformed\n")
    text = STUDY.replace(
        '[workloads.skewed]\nset = { "workload.synthetic.address" = { zipf = 0.9 } }',
        '[workloads.skewed]\ntrace = "t.csv"\narrival = "trace"',
    )
    base = BASE.replace(
        'synthetic = { requests = 4000, read_fraction = 0.3, size = "4KiB", address = "uniform" }\n', ""
    )
    text = text.replace('"workload.synthetic.address" = "uniform"', '"workload.synthetic" = { requests = 4000 }')
    (here / "s.toml").write_text(text)
    (here / "base.toml").write_text(base)
    done = command("study", "s.toml", "--workers", "2", cwd=here)
    assert done.returncode == 2, done
    assert ":2" in done.stderr
    assert "4 of 8 runs could not be done" in done.stderr
    assert len(finished(here / "out/s")) == 4
    assert not (here / "out/s/report.html").exists()


TRACED = """\
[study]
title = "A trace"
question = "Q"
base = "base.toml"
[workloads.traced]
trace = "t.csv"
"""


def traced(directory):
    (directory / "base.toml").write_text(BASE.split("[workload]")[0] + '[workload]\nbeyond = "wrap"\n')
    (directory / "s.toml").write_text(TRACED)
    rows = [
        f"{128166372003061629 + 10_000 * i},hm,0,{'Read' if i % 3 else 'Write'},{4096 * i},4096,100" for i in range(300)
    ]
    (directory / "t.csv").write_text("\n".join(rows) + "\n")


def test_identity_is_that_of_the_content(tmp_path):
    """Moving or touching a trace changes nothing; another byte in it, or another setting, does."""
    import nandlab

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        traced(tmp_path / name)

    def identity(name):
        return nandlab.Study.load(tmp_path / name / "s.toml").runs[0].identity

    first = identity("a")
    assert identity("b") == first
    trace = tmp_path / "b" / "t.csv"
    trace.write_text(trace.read_text().replace("Write,0,", "Write,8192,"))
    assert identity("b") != first
    (tmp_path / "a" / "t.csv").rename(tmp_path / "a" / "u.csv")
    (tmp_path / "a" / "s.toml").write_text(TRACED.replace("t.csv", "./u.csv"))
    assert identity("a") == first
    (tmp_path / "a" / "base.toml").write_text(
        (tmp_path / "a" / "base.toml").read_text().replace("seed = 3", "seed = 4")
    )
    assert identity("a") != first


def test_a_saved_drive_counts_by_its_content(tmp_path):
    import nandlab

    alone = BASE.replace("requests = 4000", "requests = 400")
    nandlab.run(alone, save_drive=tmp_path / "a.drive")
    base = alone.split("[precondition]")[0] + "[workload]" + alone.split("[workload]")[1]
    (tmp_path / "base.toml").write_text(base)
    study = '[study]\ntitle = "T"\nquestion = "Q"\nbase = "base.toml"\n'
    (tmp_path / "s.toml").write_text(study + '[variants.aged]\nset = { "precondition.load" = "a.drive" }\n')
    first = nandlab.Study.load(tmp_path / "s.toml")
    assert first.run(tmp_path / "o", workers=1).results["requests"].to_list() == [400]
    nandlab.run(alone.replace("seed = 3", "seed = 4"), save_drive=tmp_path / "a.drive")
    assert nandlab.Study.load(tmp_path / "s.toml").runs[0].identity != first.runs[0].identity


def test_a_damaged_run_is_done_again(here):
    import nandlab

    study = nandlab.Study.load(here / "s.toml")
    study.run(here / "o", workers=2)
    before = outcome(here / "o")
    runs = finished(here / "o")
    (here / "o/runs" / runs[0] / "series.parquet").write_bytes(b"PAR1")
    (here / "o/runs" / runs[1] / "run.json").unlink()
    result = study.run(here / "o", workers=2)
    assert (result.runs_done, result.runs_kept) == (2, 6)
    assert outcome(here / "o") == before
    assert study.run(here / "o", workers=2, fresh=True).runs_done == 8
    assert outcome(here / "o") == before


ONE_RUN = '[study]\ntitle = "T"\nquestion = "Q"\nbase = "base.toml"\n'


@pytest.fixture
def kept(here):
    """A study of one run, done; and the folder of that run."""
    import nandlab

    (here / "one.toml").write_text(ONE_RUN)
    study = nandlab.Study.load(here / "one.toml")
    assert study.run(here / "o", workers=1).runs_done == 1
    return study, here / "o" / "runs" / study.runs[0].identity


def test_a_kept_run_that_was_changed_at_the_same_size_is_done_again(kept):
    study, folder = kept
    before = (folder / "summary.json").read_text()
    changed = before.replace("1", "2", 1)
    assert len(changed) == len(before) and changed != before
    (folder / "summary.json").write_text(changed)
    result = study.run(folder.parents[1], workers=1)
    assert (result.runs_done, result.runs_kept) == (1, 0)
    assert (folder / "summary.json").read_text() == before
    result = study.run(folder.parents[1], workers=1)
    assert (result.runs_done, result.runs_kept) == (0, 1)


@pytest.mark.parametrize("without", ["sha256", "identity"])
def test_a_kept_run_that_is_not_known_to_be_whole_is_done_again(kept, without):
    study, folder = kept
    facts = json.loads((folder / "run.json").read_text())
    assert set(facts["sha256"]) == {path.name for path in folder.iterdir()} - {"run.json"}
    del facts[without]
    (folder / "run.json").write_text(json.dumps(facts))
    assert study.run(folder.parents[1], workers=1).runs_done == 1


def test_equal_runs_are_done_once(here):
    import nandlab

    (here / "s.toml").write_text(STUDY.replace('set = { "gc.victim" = "fifo" }', 'set = { "gc.victim" = "greedy" }'))
    result = nandlab.Study.load(here / "s.toml").run(here / "o", workers=2)
    assert result.runs_done == 4
    assert result.results.height == 8


# ----------------------------------------------------------------------------------------------------------------- Dask


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler on loopback and how to start a worker, processes of their own, in directories of their own."""
    pytest.importorskip("distributed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    processes = []

    def begin(*arguments, **environment):
        directory = tmp_path / f"dask{len(processes)}"
        directory.mkdir()
        with open(directory / "log", "w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]],
                cwd=directory,
                stdout=log,
                stderr=log,
                env=os.environ | environment,
            )
        processes.append(process)
        return process

    begin("dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--no-show")

    def listening():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_for(listening)

    def worker(**environment):
        return begin("dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", **environment)

    try:
        yield address, worker
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(scheduler):
    """A scheduler and two workers."""
    address, worker = scheduler
    return address, [worker(), worker()]


@pytest.fixture
def other_build(tmp_path):
    """A folder with the same version of nandlab, but for one byte of its core."""
    import nandlab

    shutil.copytree(Path(nandlab.__file__).parent, tmp_path / "other" / "nandlab")
    with open(tmp_path / "other" / "nandlab" / Path(nandlab._core.__file__).name, "ab") as core:
        core.write(b"\0")
    return tmp_path / "other"


def test_a_dask_worker_of_another_build_is_refused_by_name(here, scheduler, other_build):
    from nandlab.study.plan import build_identity

    address, worker = scheduler
    (here / "s.toml").write_text(STUDY)
    worker(PYTHONPATH=str(other_build))
    done = command("study", "s.toml", "--out", "o", "--dask", address, cwd=here)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    told = re.fullmatch(
        r"worker (tcp://127\.0\.0\.1:\d+) has nandlab (\S+), not (\S+)\n  remedy: install the build .*\n", done.stderr
    )
    assert told and told[3] == build_identity() != told[2]
    assert told[2].split("+")[0] == told[3].split("+")[0], "the version alone does not tell them apart"
    assert not finished(here / "o")


def test_a_dask_worker_without_nandlab_is_refused_by_name(here, scheduler):
    address, worker = scheduler
    (here / "none" / "nandlab").mkdir(parents=True)
    (here / "none" / "nandlab" / "__init__.py").write_text('raise ImportError("not here")')
    worker(PYTHONPATH=str(here / "none"))
    done = command("study", "s.toml", "--out", "o", "--dask", address, cwd=here)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert re.match(r"worker tcp://127\.0\.0\.1:\d+ does not load nandlab: ", done.stderr), done.stderr


def test_a_dask_worker_of_another_build_that_comes_later(scheduler, other_build):
    import nandlab
    from nandlab.study.cluster import DaskWorkers

    address, worker = scheduler
    worker()
    workers = DaskWorkers(address, "send")
    try:
        worker(PYTHONPATH=str(other_build))
        with pytest.raises(nandlab.OutputError, match=r"(?s)worker tcp://\S+ has nandlab .*finished runs are kept"):
            wait_for(lambda: workers.poll(0.1))
    finally:
        workers.close()


def test_a_dask_worker_killed_in_the_middle_of_a_run(here, cluster):
    address, workers = cluster
    (here / "s.toml").write_text(STUDY.replace('set = { "gc.victim" = "fifo" }', SLOW.replace("60000", "400000")))
    assert command("study", "s.toml", "--out", "whole", cwd=here).returncode == 0
    process = start("study", "s.toml", "--out", "dask", "--dask", address, cwd=here)
    wait_for_runs(here / "dask", 1)
    before = len(finished(here / "dask"))
    workers[0].send_signal(signal.SIGKILL)
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    assert 1 <= before < 8, "the worker was killed before the study was over"
    assert "8 runs done" in out
    assert outcome(here / "dask") == outcome(here / "whole")


@pytest.mark.parametrize("how", ["send", "path"])
def test_dask_workers_get_traces(tmp_path, cluster, how):
    address, _ = cluster
    traced(tmp_path)
    assert command("study", "s.toml", "--out", "local", cwd=tmp_path).returncode == 0
    done = command("study", "s.toml", "--out", "dask", "--dask", address, "--traces", how, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("results.parquet", "report.html", "claims.json"):
        assert (tmp_path / "dask" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()
    one = next((tmp_path / "local" / "runs").iterdir())
    for name in ("summary.json", "spec.toml", "series.parquet"):
        assert (tmp_path / "dask" / "runs" / one.name / name).read_bytes() == (one / name).read_bytes()


def test_no_scheduler_is_told(here):
    pytest.importorskip("distributed")
    done = command("study", "s.toml", "--dask", "tcp://127.0.0.1:9", cwd=here)
    assert done.returncode == 2
    assert "no Dask scheduler at tcp://127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr


# ------------------------------------------------------------------------------------------------------------ the cost


def test_a_hundred_short_runs(here, capsys):
    """Prints how busy the processors are and what a run costs beyond itself; a slow machine fails nothing."""
    import nandlab

    seeds = ", ".join(str(seed) for seed in range(100))
    (here / "s.toml").write_text(
        '[study]\ntitle = "T"\nquestion = "Q"\nbase = "base.toml"\n'
        f'[variants.one]\nset = {{ "workload.synthetic.requests" = 50000 }}\n[grid]\nseed = [{seeds}]\n'
    )
    study = nandlab.Study.load(here / "s.toml")
    cores = len(os.sched_getaffinity(0))
    alone = []
    for number, run in enumerate(study.runs[:10]):
        begin = time.perf_counter()
        nandlab.run(run.spec, here / f"alone{number}")
        alone.append(time.perf_counter() - begin)
    before = resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)
    begin = time.perf_counter()
    result = study.run(here / "o", workers=2)
    wall_s = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = sum(b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime for a, b in zip(before, after, strict=True))
    run_s = sorted(alone)[len(alone) // 2]
    runs_s = json.loads((here / "o" / "sim.json").read_text())["runs_wall_s"] / 100
    assert (result.runs_done, result.results.height, len(finished(here / "o"))) == (100, 100, 100)
    with capsys.disabled():
        print(f"\n100 runs on 2 workers ({cores} cores): {wall_s:.1f} s, {cpu_s:.1f} s CPU, {cpu_s / wall_s:.2f} busy")
        print(
            f"a run alone {1e3 * run_s:.0f} ms, in a worker {1e3 * runs_s:.0f} ms, all told {20 * wall_s:.0f} ms of one"
        )


# ---------------------------------------------------------------------------------------------------- what is shipped


def test_the_shipped_study_at_smoke_size(tmp_path):
    done = command("study", "garbage-collection", "--smoke", "--workers", "2", "--out", tmp_path / "gc", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    claims = {c["id"]: c["verdict"] for c in json.loads((tmp_path / "gc" / "claims.json").read_text())["claims"]}
    assert claims["fifo-0.28"] == claims["random-0.28"] == "reproduced"
    assert set(claims.values()) <= {"reproduced", "same direction", "not measured"}
    assert "smoke size" in (tmp_path / "gc" / "report.html").read_text()


def test_the_laldpc_study_at_smoke_size(tmp_path):
    done = command("study", "laldpc", "--smoke", "--workers", "2", "--out", tmp_path / "laldpc", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    claims = {c["id"]: c for c in json.loads((tmp_path / "laldpc" / "claims.json").read_text())["claims"]}
    measured = {name for name, claim in claims.items() if claim["verdict"] != "not measured"}
    assert measured == {
        "redundant", "read-response", "system-response", "soft-starts", "hit-ratio", "new-against-lru", "soft-workloads"
    }  # fmt: skip
    assert {claims[name]["verdict"] for name in measured} <= {"reproduced", "same direction", "not reproduced"}
    assert claims["soft-workloads"]["verdict"] == "reproduced"
    # Entries are evicted, or the two evictions could not be told apart.
    assert claims["new-against-lru"]["measured"] < claims["new-against-lru"]["baseline"]

    # What is measured comes from the runs.
    runs = pl.read_parquet(tmp_path / "laldpc" / "results.parquet").filter(pl.col("part") == "basic")
    mean = {
        variant: dict(
            runs.filter(pl.col("variant") == variant).select("workload", "ecc.host.flash_read_us").iter_rows()
        )
        for variant in ("ldpc-in-ssd", "ideal", "laldpc-new")
    }
    first, ideal, new = mean.values()
    shares = [(first[name] - new[name]) / (first[name] - ideal[name]) for name in first]
    assert claims["redundant"]["measured"] == pytest.approx(sum(shares) / len(shares))


def test_the_study_of_all_schemes_at_smoke_size(tmp_path):
    done = command("study", "together", "--smoke", "--workers", "2", "--out", tmp_path / "t", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    runs = pl.read_parquet(tmp_path / "t" / "results.parquet")
    runs = runs.filter(pl.col("part") == "all")
    assert runs["variant"].n_unique() == runs.height == 16
    claims = {c["id"]: c for c in json.loads((tmp_path / "t" / "claims.json").read_text())["claims"]}
    # Each pair of runs that differ in LaLDPC only.
    read = dict(runs.select("variant", "latency_us.read.mean").iter_rows())
    pairs = [(name, "L" + name.replace("none", "")) for name in read if "L" not in name]
    ratios = [read[on] / read[off] for off, on in pairs]
    assert len(ratios) == 8 and max(ratios) < 1
    mean = 1.0
    for ratio in ratios:
        mean *= ratio ** (1 / 8)
    assert claims["laldpc-reads"]["measured"] == pytest.approx(mean - 1)
    assert claims["laldpc-rcopyback"]["verdict"] != "not measured"


def test_claims_of_the_shipped_studies_hold_no_results():
    for path in sorted((ROOT / "studies").glob("*/study.toml")):
        for claim in tomllib.loads(path.read_text())["claims"]:
            assert "measure" in claim and not {"measured", "verdict"} & set(claim)


def test_a_study_of_traces_names_its_folder_by_the_environment(monkeypatch):
    from nandlab.study import definition

    monkeypatch.setenv("NANDLAB_TRACES", "/traces")
    found = definition.read(ROOT / "studies" / "laldpc" / "real.toml")
    paths = [override.value for choice in found.parts[0].workloads for override in choice.sets]
    assert any(str(path).endswith("traces/oltp.blkparse.xz") for path in paths)


def test_the_shipped_studies_are_right_at_full_size():
    for path in sorted((ROOT / "studies").glob("*/study.toml")):
        done = command("study", path, "--check", cwd=ROOT)
        assert done.returncode == 0, done.stderr


def test_the_example_script(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "study.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "6 runs done" in done.stdout
    assert "reproduced" in done.stdout
