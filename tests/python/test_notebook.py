"""Results in a notebook: texts, HTML, pictures and charts."""

import json
import re

import nandlab
import pytest
import vl_convert
from conftest import SPEC
from nandlab.notebook import CELL_BYTES, LINES, VEGALITE

FULL = SPEC.replace("3000", "20000") + '[precondition]\nmethod = "fill"\nused = 0.9\n'


@pytest.fixture(scope="module")
def shown():
    return {
        "run": nandlab.run(FULL, name="full"),
        "short": nandlab.run(SPEC.replace("3000", "1")),
        "comparison": nandlab.compare(SPEC, {"gc.victim": "fifo"}, seeds=2),
        "life": nandlab.life(FULL, windows=2, requests=1000),
    }


@pytest.mark.parametrize("name", ["run", "short", "comparison", "life"])
def test_a_result_in_a_cell(shown, name):
    forms = shown[name]._repr_mimebundle_(include=None, exclude=None)
    assert forms["text/plain"] == repr(shown[name])
    assert 1 <= repr(shown[name]).count("\n") + 1 <= LINES
    assert all(len(line) <= 200 for line in repr(shown[name]).splitlines())
    assert "<table" in forms["text/html"] or "<dl" in forms["text/html"]
    assert sum(len(form) for form in forms.values()) < CELL_BYTES
    # Nothing comes from elsewhere, and no script runs.
    assert not re.search(r"<script|src=|https?://(?!www\.w3\.org)", forms["text/html"])
    if name in ("run", "comparison"):
        assert forms["image/svg+xml"].startswith("<svg") and forms["image/svg+xml"] in forms["text/html"]


def test_a_text_names_what_it_shows(shown):
    assert repr(shown["run"]).startswith("<RunResult full>\nrequests 20,000, ")
    assert "WAF" in repr(shown["run"])


@pytest.mark.parametrize("chart", ["latency", "waf", "timeline", "comparison"])
def test_a_chart_in_a_cell_and_in_files(shown, tmp_path, chart):
    made = shown["comparison"].plot() if chart == "comparison" else getattr(shown["run"].plot, chart)()
    forms = made._repr_mimebundle_(include=None)
    assert forms["image/svg+xml"].startswith("<svg")
    assert sum(len(form if isinstance(form, str) else json.dumps(form)) for form in forms.values()) < CELL_BYTES
    assert VEGALITE in forms or chart == "timeline"
    if VEGALITE in forms:
        assert forms[VEGALITE]["$schema"].endswith("/v5.json")
        # The specification is one of that version.
        assert vl_convert.vegalite_to_svg(forms[VEGALITE], vl_version="5.20").startswith("<svg")
    for kind, begin in (("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
        made.save(str(tmp_path / f"c.{kind}"))
        assert (tmp_path / f"c.{kind}").read_bytes().startswith(begin)
    assert "save()" in repr(made)
    # It stays a chart of Altair.
    assert made.properties(background="white").to_dict()["background"] == "white"


def test_small_pictures_show_the_same(shown):
    """The coordinates are those of the whole picture, to a tenth of a pixel."""
    made = shown["run"].plot.latency()
    whole = vl_convert.vegalite_to_svg(made.to_dict(), vl_version="6.4")
    small = made._repr_mimebundle_()["image/svg+xml"]
    lines = [re.findall(r'<path aria-label[^>]* d="(M[^"]*L[^"]*)"', svg) for svg in (whole, small)]
    assert len(lines[0]) == len(lines[1]) > 1
    for one, other in zip(*lines, strict=True):
        numbers = [[float(number) for number in re.findall(r"-?\d+\.?\d*", path)] for path in (one, other)]
        assert numbers[1] == pytest.approx(numbers[0], abs=0.051)


def test_a_run_without_values_has_no_chart(shown):
    with pytest.raises(nandlab.OutputError, match="no chart of the time: the result has no values for it"):
        shown["short"].plot.timeline()


def test_without_the_extra_there_is_a_text(shown, monkeypatch):
    from nandlab.reporting import extra

    monkeypatch.setattr(extra, "_NEEDED", {"no_such_module": "vl-convert-python"})
    for one in shown.values():
        assert one._repr_mimebundle_().keys() == {"text/plain"}
    with pytest.raises(nandlab.OutputError, match=r"nandlab\[figures\]"):
        shown["run"].plot.waf()


def test_other_results_are_short_texts(tmp_path):
    study = nandlab.Study.from_dict(
        {
            "study": {"title": "T", "question": "Q"},
            "base": {
                "drive": {"channels": 1, "blocks_per_plane": 48},
                "workload.synthetic": {"requests": 300, "read_fraction": 0.5, "size": "4KiB", "address": "uniform"},
            },
            "variants": {"a": {}, "b": {"set": {"gc.victim": "fifo"}}},
        }
    )
    results = [
        study.run(tmp_path / "s", workers=1),
        nandlab.reliability(
            '[ecc]\nlevels = "laldpc"\n[reliability]\nrber = "vth"\n', pe_cycles=[1000], retention=["1d"]
        ),
    ]
    for result, begin in zip(results, ("<StudyResult ", "<Reliability of 1 page"), strict=True):
        assert repr(result).startswith(begin) and repr(result).count("\n") < LINES and len(repr(result)) < 400
