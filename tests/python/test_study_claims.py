"""Metrics, effects, figures and verdicts of a study."""

import json

import polars as pl
import pytest
from study_lab import BASE, STUDY, refusal


def test_a_claim_that_is_not_reproduced_is_red_in_the_report(here):
    import nandlab

    (here / "s.toml").write_text(
        STUDY.replace("value = 1.1", "value = 99.0").replace("absolute = 5.0", "absolute = 1.0")
    )
    result = nandlab.Study.load(here / "s.toml").run(here / "o")
    claims = {claim["id"]: claim for claim in result.claims}
    assert claims["low"]["verdict"] == "not reproduced"
    page = result.report.read_text()
    row = page.split('<tr id="claim-low"')[1].split("</tr>")[0]
    assert '<b class="verdict bad">not reproduced</b>' in row
    assert ".bad { color: var(--bad); }" in page
    assert "1 not reproduced" in page


VERDICTS = [
    (2.0, "tolerance = { relative = 0.1 }", "reproduced"),
    (2.1, "tolerance = { absolute = 0.1 }", "reproduced"),
    (2.3, "tolerance = { relative = 0.1 }", "not reproduced"),
    (3.0, "tolerance = { relative = 0.1 }\nbaseline = 1.0", "same direction"),
    (3.0, "baseline = 2.5", "not reproduced"),
    (3.0, 'baseline = 2.5\ndirection = "below"', "same direction"),
    (9.0, 'direction = "above"\nbaseline = { where = { variant = "greedy" } }', "not reproduced"),
    # The tolerance of the rule: a quarter of the effect of 1.2, 1.4 and 2.0, or 0.005.
    (2.3, "baseline = 1.1", "reproduced"),
    (2.5, "baseline = 1.1", "same direction"),
    (2.5, "baseline = 0.5", "reproduced"),
    (2.0049, "baseline = 2.0", "reproduced"),
    (2.0051, "baseline = 2.0", "not reproduced"),
    (2.3, "baseline = 2.3\neffect = 1.2", "reproduced"),
    (2.31, "baseline = 2.31\neffect = 1.2", "not reproduced"),
    # A reading against the words of the source.
    (2.1, "inferred = true", "inferred"),
    (3.0, "baseline = 1.0\ninferred = true", "same direction"),
    # A parameter is calibrated to the last claim.
    (2.0, "", "fitted"),
]


def test_verdicts_of_claims(tmp_path):
    """The metric `2 + 0 * waf` is 2 in every run."""
    import nandlab

    (tmp_path / "base.toml").write_text(BASE)
    claims = (
        f'[[claims]]\nid = "c{number}"\nfigure = "f"\nwhat = "W"\nvalue = {value}\n'
        f'source = "S"\n{more}\nmeasure = {{ where = {{ variant = "fifo" }} }}\n'
        for number, (value, more, _) in enumerate(VERDICTS)
    )
    (tmp_path / "s.toml").write_text(
        '[study]\ntitle = "T"\nquestion = "Q"\nbase = "base.toml"\n'
        '[variants.greedy]\nset = { "gc.victim" = "greedy" }\n[variants.fifo]\nset = { "gc.victim" = "fifo" }\n'
        '[[figures]]\nid = "f"\ntitle = "F"\nmetric = "2 + 0 * waf"\nover = "variant"\nkind = "bar"\n'
        + "".join(claims)
        + '[parameters."gc.victim"]\ncalibrated = "to 2"\n'
        f'claims = ["c{len(VERDICTS) - 1}"]\nsensitivity = "f"\nchecks = ["c0"]\n'
    )
    result = nandlab.Study.load(tmp_path / "s.toml").run(tmp_path / "o", workers=1)
    assert [claim["verdict"] for claim in result.claims] == [verdict for *_, verdict in VERDICTS]


def test_a_claim_may_have_a_direction_without_a_number(tmp_path):
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


def test_a_direction_whose_baseline_did_not_run_is_not_measured(tmp_path):
    import nandlab

    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "s.toml").write_text(
        '[study]\ntitle = "T"\nquestion = "Q"\nbase = "base.toml"\n'
        '[variants.greedy]\nset = { "gc.victim" = "greedy" }\n[variants.fifo]\nset = { "gc.victim" = "fifo" }\n'
        '[[figures]]\nid = "f"\ntitle = "F"\nmetric = "waf"\nover = "variant"\nkind = "bar"\n'
        '[[claims]]\nid = "c"\nfigure = "f"\nwhat = "W"\nsource = "S"\ndirection = "above"\n'
        'measure = { where = { variant = "fifo" } }\nbaseline = { where = { variant = "greedy" } }\n'
        '[smoke]\nvariants = ["fifo"]\n'
    )
    for smoke in (False, True):
        result = nandlab.Study.load(tmp_path / "s.toml", smoke=smoke).run(tmp_path / f"o{smoke}", workers=1)
        assert (result.claims[0]["verdict"] == "not measured") == smoke


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


def test_metrics_use_values_facts_and_other_variants(tmp_path):
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
    ("right", "wrong", "message"),
    [
        ('"{k}"', '"{kk}"', "gc.victim: unknown value {kk}"),
        ("waf['random']", "waf['rnadom']", 'unknown variant "rnadom"'),
        ("total(by_number)", "total(1)", "write at(ecc.levels, 1) or total(ecc.levels)"),
        ("half = 0.5", 'half = "x"', "workloads.zipf.facts.half: expected a number, found a string"),
        ("total(by_number)", "total(waf)", 'no metric "waf.*"'),
    ],
)
def test_errors_in_values_and_variants_are_reported(tmp_path, right, wrong, message):
    assert right in VALUES
    (tmp_path / "base.toml").write_text(BASE)
    text = VALUES.replace(right, wrong, 1)
    assert message in refusal(tmp_path / "s.toml", text, lambda study: study.run(tmp_path / "o", workers=1))


def test_expressions_select_metrics_by_number():
    from nandlab.study.expression import Expression

    values = {"ecc.levels.1": 6, "ecc.levels.3": 2, "ecc.retries": 5}
    assert Expression.parse("at(ecc.levels, 3) / total(ecc.levels)").value(values) == 0.25
    assert Expression.parse("at(ecc.levels, 2)").value(values) == 0
    assert Expression.parse("at(ecc.levels, 2)").names == ("ecc.levels.*",)
    handles = {"placement.handles.0.waf": 1.5, "placement.handles.1.waf": 1.25, "placement.handles.1.erases": 7}
    assert Expression.parse("at(placement.handles, 1, waf)").value(handles) == 1.25
    assert Expression.parse("at(placement.handles, 2, waf)").value(handles) is None
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


def test_a_run_without_a_metric_that_other_runs_have_is_no_point_of_the_figure(tmp_path):
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
    # Names that only runs of the full size have are no mistakes at smoke size.
    (tmp_path / "s.toml").write_text(SOME_HAVE + '[smoke]\nparts = ["first"]\nvariants = ["off-chip"]\n')
    small = nandlab.Study.load(tmp_path / "s.toml", smoke=True).run(tmp_path / "small", workers=1)
    assert small.results["spare"].null_count() == small.results.height == 2
    # The names that are accepted before the runs are those of the runs, of sections that a run lacks too.
    from nandlab.study.metrics import possible_names

    study = nandlab.Study.load(tmp_path / "s.toml")
    numbers = [name.rpartition(".") for name, dtype in result.results.schema.items() if dtype.is_numeric()]
    found = {f"{section}.*" if last.isdigit() else section + dot + last for section, dot, last in numbers}
    known = possible_names(study.runs) | study.definition.names | study.definition.metrics.keys()
    assert found - known == set()
    assert {"ecc.levels.*", "ecc.host.needed.*", "migration.by_count.*", "power.spent_j", "load.die_busy"} <= known
    assert not {"nandlab", "capacitor.stage", "notes"} & known


def test_a_run_without_a_workload_is_refused_before_the_runs(tmp_path):
    """`--check` accepted the study, and each run failed."""
    import nandlab

    (tmp_path / "base.toml").write_text(BASE.partition("[workload]")[0])
    (tmp_path / "s.toml").write_text(
        SOME_HAVE.replace('"workload.synthetic.address" = "uniform"', '"gc.victim" = "fifo"')
    )
    with pytest.raises(nandlab.NandlabError, match=r"base\.toml: workload: the spec has no \[workload\]"):
        nandlab.Study.load(tmp_path / "s.toml")


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("by_count", "by_cuont", 's.toml:21: metrics.second: no metric "migration.by_cuont.*"'),
        # A metric may use only the metrics above it.
        ('"drive.op"\nsecond', '"second"\nsecond', 'metrics.spare: no metric "second"'),
        ("waf - theirs", "WAF - theirs", 'no metric "WAF"\n  remedy: did you mean waf? choose from: waf,'),
        ("waf - theirs", "p99 - theirs", 'no metric "p99"\n  remedy: did you mean latency_us.'),
        ("waf - theirs", "capacitor.stage - theirs", 'no metric "capacitor.stage"'),
    ],
)
def test_a_name_that_no_run_has_is_refused_before_the_runs(tmp_path, right, wrong, message):
    """`--check` accepted such a name, and the study failed when all its runs were done."""
    import nandlab

    (tmp_path / "base.toml").write_text(BASE)
    assert right in SOME_HAVE
    (tmp_path / "s.toml").write_text(SOME_HAVE.replace(right, wrong))
    with pytest.raises(nandlab.NandlabError) as refused:
        nandlab.Study.load(tmp_path / "s.toml")
    assert message in str(refused.value)


def test_steady_waf_counts_host_writes_to_the_cache():
    from nandlab.study.metrics import steady

    programs = {"program_host": [0, 0], "program_sync": [7, 4], "program_gc": [0, 2]}
    written = {"pages_written": [5, 10], "bytes_write": [10240, 20480], "bytes_programmed": [28672, 24576]}
    series = pl.DataFrame({"time_s": [1.0, 2.0], "interval_s": [1.0, 1.0], **written, **programs})
    assert steady(series)["steady.waf_pages"] == 0.6
    assert steady(series)["steady.waf"] == 1.2


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


def test_effects_and_interactions_equal_hand_computed_values():
    from nandlab.study.effects import effects

    # A multiplies the metric by 2 with B off and by 3 with B on; B multiplies it by 4 with A off and by 6 with A on.
    values = {"none": 1.0, "A": 2.0, "B": 4.0, "AB": 12.0}
    found = {effect.key: effect for effect in effects("AB", rows_of(values), "ratio")}
    assert found["A"].reduced() == pytest.approx(6**0.5 - 1)
    assert found["B"].reduced() == pytest.approx(24**0.5 - 1)
    assert found["A:B"].reduced() == pytest.approx(3 / 2 - 1)
    # The interaction is the same with the factors in the other order.
    turned = {effect.key: effect for effect in effects("BA", rows_of({**values, "BA": 12.0}), "ratio")}
    assert turned["B:A"].reduced() == pytest.approx(found["A:B"].reduced())
    # Effects as differences instead of ratios; there a value of 0 is valid.
    values = {"none": 0.0, "A": 1.0, "B": 4.0, "AB": 8.0}
    found = {effect.key: effect.reduced() for effect in effects("AB", rows_of(values), "difference")}
    assert found == pytest.approx({"A": (1 + 4) / 2, "B": (4 + 7) / 2, "A:B": 4 - 1})


def test_effects_over_replicates():
    from nandlab.study.effects import effects

    rows = rows_of({"none": 1.0, "A": 2.0}, seed=1) + rows_of({"none": 1.0, "A": 8.0}, seed=2)
    rows += rows_of({"none": 0.0, "A": 8.0}, seed=3)  # a value of 0 has no ratio
    rows += rows_of({"none": 1.0, "A": None}, seed=4)
    (effect,) = effects("AB", rows, "ratio")
    assert (effect.names, effect.replicates) == (("A",), pytest.approx((1.0, 7.0)))
    assert [effect.reduced(how) for how in ("mean", "median", "min", "max")] == pytest.approx([3.0, 4.0, 1.0, 7.0])
    (effect,) = effects("AB", rows, "difference")
    assert effect.reduced() == pytest.approx((1 + 7 + 8) / 3)
    # C is on in every run, so it has no effect. Variants that are no set of factors (other, CA) are ignored.
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
    # With one replicate of each seed, the baseline is the mean of the largest of one.
    seeds = [(waf["B", s] / waf["none", s] * waf["AB", s] / waf["A", s]) ** 0.5 - 1 for s in (1, 2)]
    assert claims["ab"]["baseline"] == pytest.approx(sum(seeds) / 2)
    page = result.report.read_text()
    for text in ("<b>A</b>", "<div>skew</div>", "skew \u00d7 B", "Pale:", "effect of B:A on waf (ratio)"):
        assert text in page
    for kind in ("svg", "pdf"):
        assert (tmp_path / "o" / "figures" / f"f.{kind}").stat().st_size > 1000
    # If the smoke size has fewer factors, the remaining effects are shown, and claims on other effects are not
    # measured.
    (tmp_path / "s.toml").write_text(FACTORS + '[smoke]\nvariants = ["none", "A"]\n')
    small = nandlab.Study.load(tmp_path / "s.toml", smoke=True).run(tmp_path / "small", workers=1)
    assert set(small.figure("f")["x"]) == {"A"}
    assert [claim["verdict"] == "not measured" for claim in small.claims] == [False, True]


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("[factors.A]", "[factors.skew]", 's.toml:5: factors.skew: expected a letter, found "skew"'),
        ('on = { "gc.victim" = "fifo" }', "", "s.toml:5: factors.A.on: missing"),
        (
            '"gc.victim" = "fifo" }\n[factors.B]',
            '"gc.victm" = "fifo" }\n[factors.B]',
            "s.toml:8: gc.victm: unknown key",
        ),
        ('on = { "drive.op" = 0.5 }', 'on = { "gc.victim" = "fifo" }', "gc.victim: set here and in line 7"),
        ("[variants.other]", "[variants.AB]", "variants.AB: a combination of the factors has this name"),
        ('effect = "A" }', "}", "claims.0.measure.effect: missing\n  remedy: name the effect"),
        ('effect = "A" }', 'effect = "C" }', 'claims.0.measure.effect: unknown factor "C"'),
        (
            'effect = "A" }',
            'effect = "A:A" }',
            'claims.0.measure.effect: expected a factor or a pair of factors, found "A:A"',
        ),
        ('effect = "A" }', 'effect = "A", reduce = "sum" }', 'claims.0.measure.reduce: unknown value "sum"'),
        ('effect = "A" }', 'effect = "A", normalised_to = "none" }', "an effect is relative already"),
        ('effect = "A" }', 'effect = "A", where = { variant = ["none", "B"] } }', "the runs do not vary A"),
        (
            'metric = "waf"',
            'metric = "waf"\nover = "seed"',
            "figures.0.over: a figure of effects does not have this key",
        ),
        ('metric = "waf"', 'metric = "waf"\nscale = "log"', 'figures.0.scale: unknown value "log"'),
        (
            'kind = "effects"',
            'kind = "bar"\nover = "seed"',
            "claims.0.measure.effect: the figure of this claim shows no",
        ),
        (
            'metric = "waf"',
            'metric = "waf"\nwhere = { variant = ["none", "A", "B"] }',
            "the runs lack the combinations AB",
        ),
        (FACTORS[FACTORS.index("[factors.A]") : FACTORS.index("[variants")], "", "the study has no factors"),
    ],
)
def test_errors_in_factors_are_reported(tmp_path, right, wrong, message):
    assert right in FACTORS
    (tmp_path / "base.toml").write_text(BASE)
    assert message in refusal(tmp_path / "s.toml", FACTORS.replace(right, wrong, 1))


def test_exposure_counts_dirty_pages_beyond_the_capability():
    from nandlab.study.metrics import exposure

    series = pl.DataFrame({"interval_s": [1.0, 3.0], "cache_dirty_pages": [100, 60], "capacitor_pages": [80.0, 80.0]})
    assert exposure(series) == {"exposure.pages": 5.0, "exposure.pages_max": 20.0, "exposure.time_share": 0.25}
    assert exposure(series.select("interval_s")) == {}


def test_errors_of_copybacks_in_a_row_come_from_the_rber_model():
    import nandlab
    from nandlab.study.metrics import copybacks

    spec = nandlab.load(
        "drive = { blocks_per_plane = 64, pages_per_block = 8, op = 0.6, cell = 'mlc', endurance = 20_000 }",
        {
            "ecc.levels": [{"rber_max": 0.013, "sense": "50us", "transfer": "20us", "decode": "15us"}],
            "reliability.rber.vth": {"dvpp": 0.38, "cell_to_cell": 0.0688, "per_page_kind": True},
            "reliability.copyback": "propagate",
            "reliability.pe_cycles": 3000,
            "migration.policy.rcopyback.limit.measured.within": "365d",
        },
    )
    found = copybacks(spec)
    points = [nandlab.reliability(spec, [3000], [age], copybacks=number) for age, number in (("0s", 0), ("365d", 0))]
    new, old = (float(one.rber.max()) for one in points)
    for number in range(9):
        assert found[f"copybacks.rber.{number}"] == pytest.approx(old + number * new)
    assert found["copybacks.allowed"] == int((0.013 - old) / new) == 2
    # A limit that does not follow the RBER has no required retention.
    assert copybacks(spec.with_({"migration.policy.rcopyback.limit": 2})) == {}


def test_paper_and_measurement_are_side_by_side_by_workload_with_intervals(tmp_path):
    import nandlab

    (tmp_path / "base.toml").write_text(BASE)
    claim = STUDY[STUDY.index("[[claims]]") :].split("\n\n")[0]
    claim = claim.replace(
        'variant = "fifo", workload = "uniform", "drive.op" = 0.5', 'variant = "fifo", "drive.op" = 0.5'
    )
    claim = claim.replace("source =", 'by_workload = "1.25"\nsource =').replace("where =", 'reduce = "mean", where =')
    claim = claim.replace("FIFO amplifies little with much spare space", "FIFO </script><b> amplifies")
    text = (
        STUDY[: STUDY.index("[[claims]]")].replace("[study]", "[study]\nreplicates = 2").replace("[0.25, 0.5]", "[0.5]")
    )
    text = text.replace('over = "drive.op"\npanels = "workload"', 'over = "workload"\nkind = "bar"')
    (tmp_path / "s.toml").write_text(text.replace(', "drive.op" = 0.25 }', " }") + claim)
    result = nandlab.Study.load(tmp_path / "s.toml").run(tmp_path / "o", workers=2)
    (judged,) = result.claims
    page = result.report.read_text()
    assert "</script><b>" not in page
    rows = page.split('id="workloads-low"')[1].split("</figure>")[0].split("<tbody>")[1].split("<tr>")[1:]
    for row, one in zip(rows, judged["workloads"], strict=False):
        cells = [cell.split("</td>")[0] for cell in row.split("<td>")[1:]]
        assert cells[0] == one["workload"] and cells[1] == "1.25" and cells[6] == one["verdict"]
        assert [float(cell) for cell in cells[3:6]] == pytest.approx([one["measured"], *one["interval"]], rel=1e-5)
    # The figure has the intervals of all bars, and the reported value of each workload.
    bars = result.chart("waf").to_dict()
    assert '"shape": "diamond"' in json.dumps(bars)
    table = result.figure("waf")
    assert table["low"].null_count() == 0
    assert "95 % confidence intervals over the seeds" in page
    with pytest.raises(KeyError, match="no chart 'other'"):
        result.chart("other")


#: Three workloads and four values of `k`, a number that the metrics use and the drive does not.
SLOPES = """\
[study]
title = "T"
question = "Q"
base = "base.toml"
replicates = 2
[values]
k = 1
[variants.a]
set = {{ "gc.victim" = "greedy" }}
[variants.b]
set = {{ "gc.victim" = "fifo" }}
[workloads.u]
set = {{ "workload.synthetic.address" = "uniform" }}
facts = {{ share = 0.1, sign = 1, odd = 2 }}
[workloads.v]
set = {{ "workload.synthetic.address" = {{ zipf = 0.5 }} }}
facts = {{ share = 0.2, sign = 1, odd = 1 }}
[workloads.w]
set = {{ "workload.synthetic.address" = {{ zipf = 0.9 }} }}
facts = {{ share = 0.4, sign = -1, odd = 3 }}
[parts.p]
grid = {{ k = [4, 1, 2, 3] }}
[[figures]]
id = "f"
title = "F"
metric = "waf"
over = "k"
[[claims]]
id = "c"
figure = "f"
what = "W"
source = "S"
measure = {{ metric = "{metric}", where = {{ variant = "a"{where} }}{reduce} }}
{claim}
"""


def slope_claim(folder, metric, claim, *, where="", reduce=', reduce = "mean"', seeds=None):
    """The claim as judged, with metrics of known values: `0 * waf` is 0 in each run."""
    import nandlab

    (folder / "base.toml").write_text(BASE)
    text = SLOPES.format(metric=metric, claim=claim, where=where, reduce=reduce)
    (folder / "s.toml").write_text(text)
    result = nandlab.Study.load(folder / "s.toml", seeds=seeds).run(folder / "o", workers=2)
    return result.claims[0], result.report.read_text()


@pytest.mark.parametrize(
    ("metric", "slope", "steps", "verdict"),
    [
        ("k * k + 0 * waf", "rising", [3, 5, 7], "reproduced"),
        ("k * k + 0 * waf", "falling", [3, 5, 7], "not reproduced"),
        ("-k + 0 * waf", "falling", [-1, -1, -1], "reproduced"),
        # The last step is 0, so it is neither for nor against the claim.
        ("min(k, 3) + 0 * waf", "rising", [1, 1, 0], "undecided"),
        # One step against the claim decides, whatever the others are.
        ("abs(k - 2.4) + 0 * waf", "falling", [-1, 0.2, 1], "not reproduced"),
        # A difference of the seeds alone: -1 and 1, or more, whose interval contains 0 at each step.
        ("k + 100 * k * (spec.seed - 3.5) + 0 * waf", "rising", [1, 1, 1], "undecided"),
    ],
)
def test_a_monotone_claim_is_judged_step_by_step(tmp_path, metric, slope, steps, verdict):
    claim, page = slope_claim(tmp_path, metric, f'monotone = {{ over = "k", direction = "{slope}" }}')
    assert [(step["from"], step["to"]) for step in claim["steps"]] == [(1, 2), (2, 3), (3, 4)]
    assert [step["difference"] for step in claim["steps"]] == pytest.approx(steps)
    assert (claim["verdict"], claim["kind"], claim["seeds"]) == (verdict, "monotone", 2)
    assert f"{slope} with k" in page and "1 to 2: " in page


def test_steps_are_paired_by_seed(tmp_path):
    """The seeds differ by 1,000, the step of each seed is 1: paired, the interval has no width."""
    claim, _ = slope_claim(
        tmp_path, "k + 1000 * spec.seed + 0 * waf", 'monotone = { over = "k", direction = "rising" }'
    )
    assert all(step["interval"] == pytest.approx((1, 1)) for step in claim["steps"])
    assert claim["verdict"] == "reproduced"


@pytest.mark.parametrize(
    ("metric", "slope", "rho"),
    [
        ("share + 0 * waf", "rising", 1.0),
        ("1 / share + 0 * waf", "rising", -1.0),
        # Ranks 1, 2, 3 and 2, 1, 3: 1 - 6 * 2 / (3 * 8).
        ("odd + 0 * waf", "rising", 0.5),
        # Ranks 1, 2, 3 and 2.5, 2.5, 1: the ties have their mean rank, the coefficient is -1.5 / sqrt(2 * 1.5).
        ("sign + 0 * waf", "falling", -(0.75**0.5)),
    ],
)
def test_a_correlation_over_workloads_is_spearmans(tmp_path, metric, slope, rho):
    claim, page = slope_claim(tmp_path, metric, f'correlated = {{ against = "share", direction = "{slope}" }}')
    assert claim["measured"] == pytest.approx(rho)
    assert [point["property"] for point in claim["points"]] == [0.1, 0.2, 0.4]
    low, high = claim["interval"]
    assert -1 <= low <= rho + 1e-12 and rho - 1e-12 <= high <= 1
    if metric.startswith("odd"):
        assert claim["verdict"] == "undecided"
    assert f"{slope} with share" in page and "rank correlation" in page


def test_the_interval_of_a_correlation_is_that_of_resampled_workloads():
    """All 3^3 resamples of three workloads can be listed; the quantiles of the draws are those of the list."""
    import itertools

    import numpy as np
    from nandlab.study.kinds import _resampled, spearman

    x, y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 3.0])
    listed = sorted(
        float(spearman(x[None, list(chosen)], y[None, list(chosen)])[0])
        for chosen in itertools.product(range(3), repeat=3)
        if len(set(chosen)) > 1
    )
    assert _resampled(x, y) == (listed[0], listed[-1]) == pytest.approx((-1.0, 1.0))
    # With a perfect correlation every resample of two different workloads or more has it.
    assert _resampled(x, x) == pytest.approx((1.0, 1.0))
    assert _resampled(x[:2], x[:2]) is None
    # A sample without ties, against 1 - 6 sum(d^2) / (n (n^2 - 1)).
    draw = np.random.default_rng(5)
    for _ in range(20):
        a, b = draw.permutation(np.arange(9.0)), draw.permutation(np.arange(9.0))
        assert spearman(a[None], b[None])[0] == pytest.approx(1 - 6 * ((a - b) ** 2).sum() / (9 * 80))


@pytest.mark.parametrize(
    ("metric", "tally", "verdict"),
    [
        ("1 + sign / 10 + 0 * waf", (2, 1, 0), "reproduced"),
        ("1 - sign / 10 + 0 * waf", (1, 2, 0), "not reproduced"),
        # Two workloads whose interval contains the baseline can still be for the claim.
        ("1 + max(sign, 0) * (spec.seed - 3.5) + 0 * waf", (0, 1, 2), "undecided"),
    ],
)
def test_a_claim_about_most_workloads_counts_them(tmp_path, metric, tally, verdict):
    claim, page = slope_claim(
        tmp_path, metric, 'most = true\ndirection = "above"\nbaseline = 1.0', where=", k = 1", reduce=""
    )
    assert (claim["workloads_for"], claim["workloads_against"]) == tally[:2]
    assert (claim["verdict"], claim["measured"]) == (verdict, pytest.approx(tally[0] / 3))
    assert f"for {tally[0]} of 3" in page and f"against {tally[1]}, undecided {tally[2]}" in page


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ('monotone = { over = "kk", direction = "rising" }', 'unknown axis "kk"'),
        ('monotone = { over = "k", direction = "up" }', 'unknown value "up"'),
        ('monotone = { over = "k" }', "claims.0.monotone.direction: missing"),
        ('monotone = { over = "k", direction = "rising" }\nvalue = 2.0', "a claim on a slope does not have this key"),
        ('correlated = { against = "shar", direction = "rising" }', 'no metric "shar"'),
        ("most = true", "expected a claim of a direction"),
        (
            'most = true\ndirection = "above"\nbaseline = 1.0\nmonotone = { over = "k", direction = "rising" }',
            "the claim has `most` too",
        ),
    ],
)
def test_wrong_claims_on_more_than_one_number_are_refused(tmp_path, claim, message):
    (tmp_path / "base.toml").write_text(BASE)
    text = SLOPES.format(metric="waf", claim=claim, where="", reduce=', reduce = "mean"')
    found = refusal(tmp_path / "s.toml", text, lambda study: study.run(tmp_path / "o", workers=1))
    assert message in found


def test_a_deviation_has_the_measured_values_that_it_names(tmp_path):
    """A number in a text is stale after the next change of the model; a name is filled in with each result."""
    claim, page = slope_claim(
        tmp_path,
        "odd + 0 * waf",
        'value = 9.0\ndeviation = "mean {c}, under u {c.u}"',
        where=", k = 1",
    )
    assert claim["deviation"] == "mean 2, under u 2"
    assert "mean 2, under u 2" in page
    text = SLOPES.format(metric="waf", claim='value = 9.0\ndeviation = "{d} {c.x}"', where="", reduce="")
    found = refusal(tmp_path / "s.toml", text)
    assert 'claims.0.deviation: unknown claim "d"' in found and 'unknown workload "x"' in found


def test_a_deviation_may_name_a_workload_that_the_smoke_size_leaves_out(tmp_path):
    import nandlab

    (tmp_path / "base.toml").write_text(BASE)
    text = SLOPES.format(metric="waf", claim='value = 9.0\ndeviation = "{c.u} {c.v}"', where="", reduce="")
    (tmp_path / "s.toml").write_text(text + '[smoke]\nworkloads = ["v"]\n')
    assert nandlab.Study.load(tmp_path / "s.toml", smoke=True).definition.claims[0].deviation == "{c.u} {c.v}"
