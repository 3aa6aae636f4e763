"""The rules of studies: replicates, intervals, averages by name, verdicts, and where parameters come from."""

import json

import nandlab
import pytest
from nandlab.study.sample import Sample, student_t
from study_lab import BASE, command, refusal

RULES = """\
[study]
title = "T"
question = "Q"
base = "base.toml"
replicates = 3
setting = "main"
[variants.off]
set = { "gc.victim" = "greedy" }
[variants.on]
set = { "gc.victim" = "fifo" }
[workloads.a]
set = { "workload.synthetic.read_fraction" = 0.3 }
facts = { value = 1.0, other = 2.0, theirs = 3.0 }
[workloads.b]
set = { "workload.synthetic.read_fraction" = 0.1 }
facts = { value = 4.0, other = 6.0, theirs = 9.0 }
[parts.main]
[parts.once]
replicates = 1
[metrics]
rate = "value / other"
noisy = "value + 0.1 * (spec.seed - 4)"
[[figures]]
id = "f"
title = "F"
metric = "rate"
over = "workload"
kind = "bar"
mean = true
where = { part = "main" }
[[figures]]
id = "g"
title = "G"
metric = "noisy"
over = "workload"
kind = "bar"
where = { part = "main" }
"""


def results(tmp_path, claims, head=RULES, **options):
    """The claims of a study, by id."""
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "s.toml").write_text(head + claims)
    result = nandlab.Study.load(tmp_path / "s.toml", **options).run(tmp_path / "o", workers=2)
    return result, {claim["id"]: claim for claim in result.claims}


def claim(name, figure, rest):
    return f'[[claims]]\nid = "{name}"\nfigure = "{figure}"\nwhat = "W"\nsource = "S"\n{rest}\n'


def test_intervals_are_those_of_student():
    # NIST/SEMATECH e-Handbook, 1.3.6.7.2: 2.262 with 9 degrees of freedom, 2.000 with 60, 1.984 with 100.
    assert [round(student_t(n), 3) for n in (9, 30, 31, 60, 100)] == [2.262, 2.042, 2.039, 2.0, 1.984]
    # Mean 2, standard deviation 1, three values: 2 +- 4.3027 / sqrt(3).
    sample = Sample((1.0, 2.0, 3.0))
    assert (sample.mean, sample.interval) == (2.0, pytest.approx((2 - 2.48416, 2 + 2.48416), abs=1e-4))
    assert (Sample((5.0,)).interval, Sample((5.0,)).low, Sample((5.0,)).high) == (None, 5.0, 5.0)
    # The mean of the effects 1 and 7 is that of the factors 2 and 8.
    assert Sample((1.0, 7.0), of_ratios=True).mean == pytest.approx(3.0)


def test_replicates_have_seeds_and_points_have_intervals(tmp_path):
    result, claims = results(
        tmp_path, claim("c", "g", 'value = 1.0\nmeasure = { where = { variant = "on", workload = "a" } }')
    )
    rows = result.results.to_dicts()
    # The base spec has the seed 3.
    assert sorted({row["seed"] for row in rows if row["part"] == "main"}) == [3, 4, 5]
    assert {row["seed"] for row in rows if row["part"] == "once"} == {3}
    # noisy is 0.9, 1.0 and 1.1.
    half = 4.3027 * 0.1 / 3**0.5
    assert claims["c"]["measured"] == pytest.approx(1.0)
    assert claims["c"]["interval"] == pytest.approx([1.0 - half, 1.0 + half], abs=1e-5)
    assert claims["c"]["seeds"] == 3
    # The tolerance is a quarter of 1, and the interval of +- 0.2484 lies just within it.
    assert (claims["c"]["tolerance"], claims["c"]["verdict"]) == (0.25, "reproduced")
    points = {(r["series"], r["x"]): (r["y"], r["low"], r["high"]) for r in result.figure("g").to_dicts()}
    assert points["on", "a"] == pytest.approx((1.0, 1.0 - half, 1.0 + half), abs=1e-5)
    page = result.report.read_text()
    assert "Whiskers and shaded bands: 95 % confidence intervals" in page and "3: 3, 4, 5" in page


def test_one_seed_can_be_asked_for(tmp_path):
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "s.toml").write_text(RULES)
    assert len(nandlab.Study.load(tmp_path / "s.toml").runs) == 4 * 3 + 4
    assert len(nandlab.Study.load(tmp_path / "s.toml", seeds=2).runs) == 4 * 2 + 4
    assert len(nandlab.Study.load(tmp_path / "s.toml", smoke=True).runs) == 4 + 4
    done = command("study", "s.toml", "--quick", "--check", cwd=tmp_path)
    assert (done.returncode, "8 runs, 4 of them distinct" in done.stdout) == (0, True), done.stderr
    for options, message in (
        (["--quick", "--seeds", "2"], "leave out one"),
        (["--seeds", "0"], "--seeds: expected 1 to 10000, found 0"),
    ):
        done = command("study", "s.toml", "--check", *options, cwd=tmp_path)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_averages_have_names(tmp_path):
    on = '{ where = { variant = "on" }, average = "%s" }'
    text = "".join(
        claim(name, "f", f"value = 0.5\nmeasure = {on % name}")
        for name in ("ratio-of-means", "mean-of-ratios", "geomean")
    )
    _, claims = results(tmp_path, text)
    # value / other is 1/2 and 4/6; the means of value and other are 2.5 and 4.
    wanted = {"ratio-of-means": 2.5 / 4, "mean-of-ratios": (1 / 2 + 2 / 3) / 2, "geomean": (1 / 3) ** 0.5}
    for name, value in wanted.items():
        assert claims[name]["measured"] == pytest.approx(value)
        others = {other: number for other, number in wanted.items() if other != name}
        assert claims[name]["other_averages"] == pytest.approx(others)
        assert [one["measured"] for one in claims[name]["workloads"]] == pytest.approx([1 / 2, 2 / 3])


def test_a_ratio_of_means_relative_to_a_variant_and_through_metrics_of_the_file(tmp_path):
    head = RULES.replace('rate = "value / other"', "kept = \"waf\"\nrate = \"(kept['off'] - kept) / kept['off']\"")
    measure = 'measure = { where = { variant = "on" }, average = "ratio-of-means" }'
    normal = (
        'measure = { where = { variant = "on" }, normalised_to = "off", metric = "waf", average = "ratio-of-means" }'
    )
    result, claims = results(
        tmp_path, claim("gain", "f", f"value = 0.0\n{measure}") + claim("ratio", "f", f"value = 1.0\n{normal}"), head
    )
    waf = {(r["variant"], r["workload"], r["seed"]): r["waf"] for r in result.results.to_dicts() if r["part"] == "main"}
    ratios = [
        (waf["on", "a", seed] + waf["on", "b", seed]) / (waf["off", "a", seed] + waf["off", "b", seed])
        for seed in (3, 4, 5)
    ]
    assert claims["ratio"]["measured"] == pytest.approx(sum(ratios) / 3)
    assert claims["gain"]["measured"] == pytest.approx(1 - sum(ratios) / 3)


def test_a_normalised_figure_has_both_means(tmp_path):
    head = RULES.replace("mean = true", 'mean = true\nnormalised_to = "off"').replace(
        'metric = "rate"', 'metric = "waf"'
    )
    result, _ = results(tmp_path, "", head)
    rows = [r for r in result.results.to_dicts() if r["part"] == "main"]
    waf = {(r["variant"], r["workload"], r["seed"]): r["waf"] for r in rows}
    points = {(r["series"], r["x"]): r["y"] for r in result.figure("f").to_dicts()}
    of_means = [(waf["on", "a", s] + waf["on", "b", s]) / (waf["off", "a", s] + waf["off", "b", s]) for s in (3, 4, 5)]
    of_ratios = [waf["on", w, s] / waf["off", w, s] for s in (3, 4, 5) for w in "ab"]
    assert points["on", "ratio of means"] == pytest.approx(sum(of_means) / 3)
    assert points["on", "mean of ratios"] == pytest.approx(sum(of_ratios) / 6)


DIRECTIONS = [
    # noisy is 4.0 +- 0.248 under b with each variant; the tolerance is 0.5 % of the baseline.
    ("above", "3.7", "reproduced"),
    ("above", "3.9", "undecided"),
    ("above", "4.5", "not reproduced"),
    ("below", "4.3", "reproduced"),
    ("below", "4.1", "undecided"),
    ("below", "3.7", "not reproduced"),
    ("not above", "4.24", "reproduced"),
    ("not above", "4.1", "undecided"),
    ("not above", "3.7", "not reproduced"),
    ("not below", "3.76", "reproduced"),
    ("not below", "3.9", "undecided"),
    ("not below", "4.3", "not reproduced"),
]


def test_directions_have_a_tolerance(tmp_path):
    measure = 'measure = { where = { variant = "on", workload = "b" } }'
    text = "".join(
        claim(f"c{number}", "g", f'direction = "{direction}"\nbaseline = {baseline}\n{measure}')
        for number, (direction, baseline, _) in enumerate(DIRECTIONS)
    )
    # Differences from the same run are 0 with each seed, so that the interval has no width.
    paired = 'baseline = { where = { variant = "off" } }'
    text += claim("pair", "g", f'direction = "not above"\n{paired}\n{measure}')
    text += claim("more", "g", f'direction = "above"\n{paired}\n{measure}')
    text += claim("wide", "g", f'direction = "above"\ntolerance = {{ absolute = 0.6 }}\nbaseline = 3.4\n{measure}')
    _, claims = results(tmp_path, text)
    assert [claims[f"c{number}"]["verdict"] for number in range(len(DIRECTIONS))] == [one[2] for one in DIRECTIONS]
    found = [claims[name]["verdict"] for name in ("pair", "more", "wide")]
    assert found == ["reproduced", "not reproduced", "undecided"]


def test_an_interval_across_the_tolerance_is_undecided(tmp_path):
    measure = 'measure = { where = { variant = "on", workload = "b" } }'
    values = {"inside": 4.0, "across": 4.9, "outside": 5.7}
    text = "".join(claim(name, "g", f"value = {value}\nbaseline = 1.0\n{measure}") for name, value in values.items())
    _, claims = results(tmp_path, text)
    # The tolerances are a quarter of 3.0, 3.9 and 4.7: 0.75, 0.975 and 1.175. Measured: 4.0 +- 0.248.
    found = {name: one["verdict"] for name, one in claims.items()}
    assert found == {"inside": "reproduced", "across": "undecided", "outside": "same direction"}


def test_claims_over_workloads_list_each_workload(tmp_path):
    each = 'each = true\nmeasure = { where = { variant = "on" }, reduce = "mean" }'
    text = claim("all", "f", f'direction = "above"\nbaseline = 0.4\n{each}')
    text += claim("some", "f", f'direction = "above"\nbaseline = 0.6\n{each}')
    own = 'measure = { where = { variant = "on" }, reduce = "mean" }\nby_workload = "value / theirs"\nbaseline = 0.0'
    text += claim("own", "f", f"value = 0.58\n{own}")
    _, claims = results(tmp_path, text)
    assert (claims["all"]["verdict"], claims["some"]["verdict"]) == ("reproduced", "not reproduced")
    assert [one["verdict"] for one in claims["some"]["workloads"]] == ["not reproduced", "reproduced"]
    # Reported: 1/3 and 4/9; measured: 1/2 and 2/3, above the tolerances of a quarter.
    assert [one["reported"] for one in claims["own"]["workloads"]] == pytest.approx([1 / 3, 4 / 9])
    assert [one["verdict"] for one in claims["own"]["workloads"]] == ["same direction", "same direction"]
    assert claims["own"]["verdict"] == "reproduced"


def test_claims_whose_effect_cannot_occur_are_not_testable(tmp_path):
    rest = 'value = 0.5\nmeasure = { where = { variant = "on" }, reduce = "mean" }\ntestable = '
    text = claim("never", "f", rest + '{ why = "no such trace" }')
    text += claim("low", "f", rest + '{ why = "little", metric = "value", where = { workload = "a" }, above = 1.5 }')
    text += claim("high", "f", rest + '{ why = "little", metric = "value", where = { workload = "b" }, above = 1.5 }')
    result, claims = results(tmp_path, text)
    assert [claims[name]["verdict"] for name in ("never", "low", "high")] == ["not testable"] * 2 + ["reproduced"]
    assert [claims[name]["condition"] for name in ("never", "low", "high")] == [None, 1.0, 4.0]
    assert "no such trace" in result.report.read_text()


PARAMETERS = """\
[parameters]
"gc.victim" = { sourced = "Section 4" }
"drive.op" = { calibrated = "to c", claims = ["c"], sensitivity = "f", checks = ["d"] }
"drive" = { assumed = "small" }
"workload" = { derived = "from nothing" }
"""
TWO = claim("c", "f", "value = 0.58\nmeasure = { where = { variant = 'on', workload = 'a' } }") + claim(
    "d", "f", "value = 0.58\nmeasure = { where = { variant = 'on', workload = 'b' } }"
)


A_MEASURE = "measure = { where = { variant = 'on', workload = 'a'"
A_CLAIM = f"value = 0.58\n{A_MEASURE}"


def test_the_report_says_where_parameters_come_from(tmp_path):
    from nandlab.study.parameters import not_stated

    result, claims = results(tmp_path, TWO + PARAMETERS)
    assert [claims[name]["verdict"] for name in ("c", "d")] == ["fitted", "reproduced"]
    page = result.report.read_text()
    for text in ("calibrated", "Section 4", 'href="#figure-f">sensitivity', "not stated"):
        assert text in page
    study = nandlab.Study.load(tmp_path / "s.toml").definition
    assert not_stated(study) == ["precondition.used", "precondition.valid"]


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ('{ sourced = "Section 4" }', "{ }", "parameters.gc.victim: expected one of sourced, derived, assumed, cal"),
        ('sourced = "Section 4"', 'sourced = "S", assumed = "A"', "found sourced and assumed"),
        (', checks = ["d"]', "", "parameters.drive.op.checks: missing"),
        ('checks = ["d"]', 'checks = ["c"]', 'parameters.drive.op.checks: the value is calibrated to the claim "c"'),
        ('sensitivity = "f", ', "", "parameters.drive.op.sensitivity: missing"),
        ('sensitivity = "f"', 'sensitivity = "ff"', 'unknown figure "ff"'),
        ('claims = ["c"]', 'claims = ["e"]', 'unknown name "e"'),
        ('assumed = "small"', 'assumed = "small", checks = ["c"]', "assumed values do not have this key"),
        ('"gc.victim" = { sou', '"gc.victm" = { sou', 'no spec of this study has the key "gc.victm"'),
        (
            '{ assumed = "small" }\n"workload" = { derived = "from nothing" }',
            '{ calibrated = "x", sensitivity = "f" }\n"workload" = { calibrated = "x", sensitivity = "f" }',
            "parameters.workload: 3 calibrated parameters; the limit is 2",
        ),
        ('setting = "main"', 'setting = "mian"', 'study.setting: unknown part "mian"'),
        ("replicates = 3", "replicates = 0", "study.replicates: expected 1 to 10000, found 0"),
        ("replicates = 3", "replicates = 1.5", "study.replicates: expected a whole number, found a number"),
        (
            "[parts.main]",
            "[parts.main]\ngrid = { seed = [1] }",
            "parts.main.replicates: the grid lists the values of seed",
        ),
        (
            A_CLAIM,
            "value = 0.58\ntolerance = { absolute = 0.2 }\n" + A_MEASURE,
            "a tolerance of 0.2; the widest is 0.145",
        ),
        (
            A_CLAIM,
            "value = 0.58\nheadline = true\nmeasure = { where = { part = 'once', variant = 'on', workload = 'a'",
            'a headline is judged at the setting "main" alone',
        ),
        (
            A_CLAIM,
            "value = 0.58\nmeasure = { average = 'mean', where = { variant = 'on', workload = 'a'",
            'unknown value "mean"',
        ),
        (
            A_CLAIM,
            "value = 0.58\ntestable = { why = 'w', above = 1 }\n" + A_MEASURE,
            "claims.0.testable: expected a metric with either above or below, or neither",
        ),
    ],
)
def test_errors_against_the_rules_are_reported(tmp_path, right, wrong, message):
    text = RULES + TWO + PARAMETERS
    assert right in text
    (tmp_path / "base.toml").write_text(BASE)
    assert message in refusal(tmp_path / "s.toml", text.replace(right, wrong, 1))


MAPS = """\
[study]
title = "Maps"
question = "Q"
extends = "s.toml"
name = "maps"
[variants.on]
set = { "gc.victim" = { random = { k = 4 } } }
[parts.map]
variants = ["on"]
workloads = ["b"]
grid = { "drive.op" = [0.25, 0.5] }
[[figures]]
id = "m"
title = "M"
metric = "rate"
over = "drive.op"
"""


def test_a_study_may_extend_another_of_its_folder(tmp_path):
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "s.toml").write_text(RULES + TWO + PARAMETERS)
    (tmp_path / "maps.toml").write_text(MAPS)
    study = nandlab.Study.load(tmp_path / "maps.toml")
    # The claims and the figure that an inherited parameter names are in the other study.
    inherited = study.definition.parameters["drive.op"]
    assert (inherited.origin, inherited.claims, inherited.sensitivity) == ("calibrated", (), None)
    assert [(run.part, run.variant, run.workload) for run in study.runs] == [("map", "on", "b")] * 2
    assert study.definition.claims == () and "rate" in study.definition.metrics
    # The own variant replaces the inherited one.
    assert json.loads(study.runs[0].spec.canonical_json())["gc"]["victim"] == {"random": {"k": 4}}
    for right, wrong, message in (
        ('"s.toml"', '"../s.toml"', "study.extends: expected a file of the same folder"),
        ('"s.toml"', '"t.toml"', "study.extends: cannot read"),
        ('"s.toml"', '"base.toml"', "is no study, or extends another"),
        ('"s.toml"', '"maps.toml"', "is no study, or extends another"),
    ):
        assert message in refusal(tmp_path / "maps.toml", MAPS.replace(right, wrong))


def test_a_set_may_compute_with_values_axes_and_facts(tmp_path):
    text = RULES.replace(
        "[parts.main]",
        '[parts.main]\ngrid = { load = [0.5, 0.25] }\nset = { "drive.op" = "{value / 32 / load}" }',
    ).replace("[metrics]", "[values]\nload = 1.0\n[metrics]", 1)
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "s.toml").write_text(text)
    found = {
        (run.workload, run.point["load"]): json.loads(run.spec.canonical_json())["drive"]["op"]
        for run in nandlab.Study.load(tmp_path / "s.toml").runs
        if run.part == "main"
    }
    assert found == {("a", 0.5): 0.0625, ("a", 0.25): 0.125, ("b", 0.5): 0.25, ("b", 0.25): 0.5}
    for right, wrong, message in (
        ("{value / 32 / load}", "{value / 32 / laod}", "drive.op: unknown value {laod}"),
        ("{value / 32 / load}", "{value / 0}", "drive.op: {value / 0} has no value"),
        ("{value / 32 / load}", "{value // 2}", "drive.op: "),
    ):
        assert message in refusal(tmp_path / "s.toml", text.replace(right, wrong))


def test_the_load_of_a_run_is_a_mean_over_time_and_its_busiest_interval():
    import polars as pl
    from nandlab.study.metrics import load

    series = pl.DataFrame({"interval_s": [1.0, 3.0], "die_busy_mean": [0.8, 0.4], "channel_busy_mean": [0.1, 0.3]})
    wanted = {"load.die_busy": 0.5, "load.die_busy_peak": 0.8, "load.channel_busy": 0.25, "load.channel_busy_peak": 0.3}
    assert load(series) == pytest.approx(wanted)
