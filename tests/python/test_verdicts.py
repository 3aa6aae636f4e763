"""The tables of verdicts in the READMEs of the studies are those of the kept results."""

import json

import pytest
import verdicts
from study_lab import BASE

STUDY = """\
[study]
title = "T"
question = "Q"
base = "base.toml"
name = "small"
[variants.a]
set = { "gc.victim" = "greedy" }
[[figures]]
id = "f"
title = "F"
metric = "2 + 0 * waf"
over = "variant"
kind = "bar"
[[claims]]
id = "one"
figure = "f"
what = "W | one"
value = 2.1
source = "Fig. 1"
headline = false
[[claims]]
id = "two"
figure = "f"
what = "W two"
value = 3.0
source = "Fig. 2"
deviation = "half of {one}"
"""
README = "# S\n\n<!-- verdicts: study.toml -->\nold\n<!-- end of verdicts -->\n\nText.\n"


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A study with its results, in a folder of studies."""
    import nandlab

    folder = tmp_path / "studies" / "small"
    folder.mkdir(parents=True)
    (folder / "base.toml").write_text(BASE)
    (folder / "study.toml").write_text(STUDY)
    (folder / "README.md").write_text(README)
    monkeypatch.setattr(verdicts, "STUDIES", tmp_path / "studies")
    nandlab.Study.load(folder / "study.toml").run(tmp_path / "out", workers=1)
    return folder


def test_the_table_has_every_claim_with_its_verdict(small, tmp_path):
    verdicts.main(["keep", str(tmp_path / "out")])
    text = (small / "README.md").read_text()
    assert text.startswith("# S\n\n<!-- verdicts: study.toml -->\n\n| claim |") and text.endswith("-->\n\nText.\n")
    assert "| W \\| one | 2.1 \u00b1 0.525 | 2 | reproduced | Fig. 1 |" in text
    assert "| W two | 3 \u00b1 0.75 | 2 | not reproduced: half of 2 | Fig. 2 |" in text
    assert verdicts.faults(small) == []
    # Writing again changes nothing.
    verdicts.main(["write"])
    assert (small / "README.md").read_text() == text


def test_a_study_without_verdicts_is_found(small, tmp_path):
    assert verdicts.faults(small) == ["small/study.toml: its claims have no verdicts in verdicts.json"]
    verdicts.main(["keep", str(tmp_path / "out")])
    assert verdicts.faults(small) == []
    (small / "more.toml").write_text(STUDY.replace('name = "small"', 'name = "more"'))
    assert verdicts.faults(small) == ["small/more.toml: its claims have no verdicts in verdicts.json"]


def test_what_is_out_of_date_is_found(small, tmp_path):
    verdicts.main(["keep", str(tmp_path / "out")])
    (small / "README.md").write_text((small / "README.md").read_text().replace("| 2 | reproduced", "| 3 | reproduced"))
    assert verdicts.faults(small) == ["small: README.md"]
    verdicts.main(["write"])
    (small / "study.toml").write_text(STUDY.replace("value = 2.1", "value = 2.2").replace('id = "two"', 'id = "three"'))
    assert verdicts.faults(small) == [
        "small/study.toml: claim three is in only one of the study and verdicts.json",
        "small/study.toml: claim two is in only one of the study and verdicts.json",
        "small/study.toml: claim one has another reported in verdicts.json",
    ]
    with pytest.raises(SystemExit, match="claim three"):
        verdicts.main(["check"])


def test_results_at_smoke_size_are_not_kept(small, tmp_path):
    file = tmp_path / "out" / "claims.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"smoke": True}))
    with pytest.raises(SystemExit, match="smoke size"):
        verdicts.main(["keep", str(tmp_path / "out")])


def test_the_tables_of_the_studies_are_up_to_date():
    verdicts.main(["check"])
