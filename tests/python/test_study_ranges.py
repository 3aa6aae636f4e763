"""Headlines over the ranges of the assumed parameters of a study."""

import json

import pytest
from study_lab import BASE, refusal

HEAD = """\
[study]
title = "T"
question = "Q"
base = "base.toml"
name = "lab"
setting = "paper"
ranges = "maps.toml"
[values]
k = 2
budget = 1
[parameters]
"drive" = { sourced = "S" }
"gc.victim" = { sourced = "S" }
"precondition" = { assumed = "A", untouched = "no metric depends on it" }
"workload.synthetic" = { sourced = "S" }
"workload.arrival" = { assumed = "A" }
[variants.a]
set = { "gc.victim" = "greedy" }
[variants.b]
set = { "gc.victim" = "fifo" }
[parts.paper]
grid = { budget = [1, 2] }
set = { "workload.arrival" = { queue_depth = "{k}" } }
"""

CLAIMS = """\
[[figures]]
id = "f"
title = "F"
metric = "{metric}"
over = "variant"
kind = "bar"
[[claims]]
id = "one"
figure = "f"
what = "W"
value = 2.0
tolerance = {{ absolute = 0.25 }}
baseline = 1.0
source = "S"
headline = true
measure = {{ where = {{ part = "paper", variant = "a", budget = 1 }} }}
[[claims]]
id = "two"
figure = "f"
what = "W"
source = "S"
headline = true
direction = "below"
measure = {{ where = {{ part = "paper", variant = "a", budget = 2 }} }}
baseline = {{ metric = "9", where = {{ part = "paper", variant = "b", budget = 2 }} }}
"""
MAPS = """\
[study]
title = "M"
question = "Q"
name = "lab-maps"
extends = "study.toml"
[parts.depth]
range = "workload.arrival"
grid = { "workload.arrival.queue_depth" = [1, 2, 4], budget = [1, 2] }
[[figures]]
id = "g"
title = "G"
metric = "waf"
over = "workload.arrival.queue_depth"
"""


def lab(folder, metric="2 + 0 * waf", maps=MAPS, head=HEAD):
    folder = folder / "study"
    folder.mkdir(exist_ok=True)
    (folder / "base.toml").write_text(BASE)
    (folder / "study.toml").write_text(head + CLAIMS.format(metric=metric))
    (folder / "maps.toml").write_text(maps)
    return folder


def run(folder, name, out):
    import nandlab

    return nandlab.Study.load(folder / name).run(out, workers=2)


def verdicts(result):
    return {claim["id"]: claim["verdict"] for claim in result.claims}


def test_a_headline_counts_over_its_ranges(tmp_path):
    folder = lab(tmp_path)
    before = run(folder, "study.toml", tmp_path / "lab")
    assert verdicts(before) == {"one": "reproduced at a setting", "two": "reproduced at a setting"}
    assert {claim["reason"] for claim in before.claims} == {
        "the ranges have not been run: nandlab study study/maps.toml"
    }
    maps = run(folder, "maps.toml", tmp_path / "lab-maps")
    found = json.loads((tmp_path / "lab-maps" / "ranges.json").read_text())
    points = {
        claim["id"]: [(point["point"], point["verdict"]) for point in claim["points"]] for claim in found["claims"]
    }
    depths = [f"workload.arrival.queue_depth = {depth}" for depth in (1, 2, 4)]
    # Each claim selects its budget, so a point of its ranges is a depth.
    assert points == {"one": [(depth, "reproduced") for depth in depths], "two": [(d, "reproduced") for d in depths]}
    page = maps.report.read_text()
    assert "Headlines over the ranges of the parameters" in page and 'id="ranges-one"' in page
    after = run(folder, "study.toml", tmp_path / "lab")
    assert verdicts(after) == {"one": "reproduced", "two": "reproduced"}
    assert after.claims[0]["ranges"] == {
        "points": 3,
        "reproduced": 3,
        "lowest": 2.0,
        "highest": 2.0,
        "not_at": [],
        "parts_not_run": [],
    }


def test_a_headline_that_fails_at_a_point_is_reproduced_at_a_setting(tmp_path):
    """2 at depths 1 and 2, 3 at depth 4: the central depth of 2 is within the tolerance of 0.25, depth 4 is not."""
    folder = lab(tmp_path, metric="max(2, spec.workload.arrival.queue_depth - 1) + 0 * waf")
    run(folder, "maps.toml", tmp_path / "lab-maps")
    result = run(folder, "study.toml", tmp_path / "lab")
    assert verdicts(result) == {"one": "reproduced at a setting", "two": "reproduced"}
    one = result.claims[0]
    assert one["reason"] == "not at workload.arrival.queue_depth = 4"
    assert (one["ranges"]["reproduced"], one["ranges"]["lowest"], one["ranges"]["highest"]) == (2, 2.0, 3.0)
    page = result.report.read_text()
    assert "not at workload.arrival.queue_depth = 4" in page and "1 of them at a setting only" in page


def test_a_fit_elsewhere_in_the_range_does_not_count(tmp_path):
    """3 at the central depth of 2, 2 at depth 4."""
    folder = lab(tmp_path, metric="5 - max(2, spec.workload.arrival.queue_depth - 1) + 0 * waf")
    run(folder, "maps.toml", tmp_path / "lab-maps")
    result = run(folder, "study.toml", tmp_path / "lab")
    assert verdicts(result)["one"] == "same direction"
    assert result.claims[0]["ranges"] is None


def test_an_inferred_reading_says_where_it_holds_and_never_counts(tmp_path):
    """2 at depths 1 and 2, 3 at depth 4, as in the test before; the reading is no headline."""
    folder = lab(tmp_path, metric="max(2, spec.workload.arrival.queue_depth - 1) + 0 * waf")
    text = (folder / "study.toml").read_text()
    assert text.count('source = "S"\nheadline = true\nmeasure') == 1
    reading = text.replace('source = "S"\nheadline = true\nmeasure', 'source = "S"\ninferred = true\nmeasure')
    (folder / "study.toml").write_text(reading)
    run(folder, "maps.toml", tmp_path / "lab-maps")
    one = run(folder, "study.toml", tmp_path / "lab").claims[0]
    assert (one["verdict"], one["reason"]) == ("inferred", "not at workload.arrival.queue_depth = 4")
    assert (one["ranges"]["points"], one["ranges"]["reproduced"]) == (3, 2)
    both = text.replace("headline = true\nmeasure", "headline = true\ninferred = true\nmeasure")
    assert "an inferred reading is a value, and no headline" in refusal(folder / "study.toml", both)


def test_ranges_of_another_build_or_with_a_missing_part_do_not_count(tmp_path):
    folder = lab(tmp_path)
    run(folder, "maps.toml", tmp_path / "lab-maps")
    file = tmp_path / "lab-maps" / "ranges.json"
    found = json.loads(file.read_text())
    file.write_text(json.dumps({**found, "build": "another"}))
    assert "have not been run" in run(folder, "study.toml", tmp_path / "lab").claims[0]["reason"]
    file.write_text(json.dumps(found))
    assert verdicts(run(folder, "study.toml", tmp_path / "lab"))["one"] == "reproduced"
    lab(
        tmp_path,
        maps=MAPS.replace("[[figures]]", '[parts.more]\nrange = "drive"\ngrid = { budget = [1] }\n[[figures]]'),
    )
    assert "not run: part more" in run(folder, "study.toml", tmp_path / "lab").claims[0]["reason"]


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        (', untouched = "no metric depends on it"', "", "precondition: an assumed value that no part varies"),
        ('ranges = "maps.toml"', 'ranges = "other.toml"', "study.ranges: cannot read"),
        ('ranges = "maps.toml"', 'ranges = "../maps.toml"', "study.ranges: expected a file of the same folder"),
        (
            '"drive" = { sourced = "S" }',
            '"drive" = { sourced = "S", untouched = "U" }',
            "sourced values do not have this",
        ),
    ],
)
def test_a_study_with_ranges_is_checked(tmp_path, right, wrong, message):
    assert right in HEAD
    folder = lab(tmp_path)
    text = (HEAD + CLAIMS.format(metric="waf")).replace(right, wrong)
    assert message in refusal(folder / "study.toml", text)


def test_the_study_of_ranges_is_checked(tmp_path):
    folder = lab(tmp_path)
    wrong = MAPS.replace('range = "workload.arrival"', 'range = "workload.arival"')
    assert 'parts.depth.range.0: unknown name "workload.arival"' in refusal(folder / "maps.toml", wrong)
    alone = MAPS.replace('extends = "study.toml"\n', 'base = "base.toml"\n')
    assert "no study whose headlines the part could judge" in refusal(folder / "maps.toml", alone)
    # The study that names it refuses a file that does not extend it.
    (folder / "maps.toml").write_text(alone)
    assert "does not extend this study" in refusal(folder / "study.toml", HEAD + CLAIMS.format(metric="waf"))
