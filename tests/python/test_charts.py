"""A chart has its data as a table, a specification that Vega-Lite accepts, and the same bytes as a picture."""

import csv
import io
import json
import math

import numpy as np
import pytest
from nandlab.reporting.chart import (
    Axis,
    Bars,
    Effect,
    Effects,
    Figure,
    Heat,
    Histogram,
    Limit,
    Lines,
    Mark,
    Panel,
    Series,
    csv_of,
    plain,
)
from nandlab.reporting.files import picture
from nandlab.reporting.render import as_json, csv_address, payloads
from nandlab.reporting.vega import IN_FILE_FONT, altair_of, spec_of

XS = np.array([1.0, 2.0, 4.0, 8.0])
YS = np.array([1.5, math.nan, 2.25, 3.0])
SEEDED = Series("seeded", YS, "blue", low=YS - 0.25, high=YS + 0.25, marks=(Mark(4.0, 2.0),))
LINES = Lines("Lines", Axis("op", log=True), Axis("WAF"), XS, (SEEDED, Series("b", 2 * XS, "orange", "dashed")))
BARS = Bars(
    "Bars",
    Axis("workload"),
    Axis("latency"),
    ("a", "b", "c, d", "e"),
    (
        Series("reported", XS, "slate", "outline", 0.9 * XS, 1.1 * XS),
        Series("measured", XS, "blue", low=XS, high=XS + 1, signs=("x", "", "y", "z"), marks=(Mark("b", 3.0),)),
    ),
)
CHARTS = {
    "lines": LINES,
    "stacked": Lines(
        "Stack", Axis("time"), Axis("n"), XS, (Series("a", XS, "blue"), Series("b", XS, "red")), stacked=True
    ),
    "band": Lines("Band", Axis("t"), Axis("n"), XS, (Series("a", XS, "blue"),), dots=True, band=(1, 2)),
    "named": Lines(
        "Named",
        Axis("age", log=True, ticks=((1.0, "1 s"), (8.0, "8 s"))),
        Axis("RBER", log=True),
        XS,
        (Series("a", XS, "blue", "dotted"), Series("b", XS, "blue", "faint")),
        steps=True,
        limits=(Limit(2.0, "level 1"),),
    ),
    "bars": BARS,
    "histogram": Histogram("H", Axis("P/E"), Axis("blocks"), np.arange(5.0), np.arange(4.0), "violet"),
    "heat": Heat(
        "M",
        Axis("t"),
        "die",
        ("0", "1"),
        np.arange(4.0),
        np.arange(6.0).reshape(2, 3),
        Axis("busy", low=0, high=5),
        (1,),
    ),
    "effects": Effects(
        "E",
        Axis("WAF, %"),
        (("A", "first"), ("B", "second")),
        (
            Effect(("A",), 0.2, 0.1, 0.3, "+20 %"),
            Effect(("B",), -0.2, -0.3, 0.1, "-20 %"),
            Effect(("A", "B"), 0.1, 0.05, 0.2, "+10 %"),
        ),
        0.1,
        True,
    ),
}


def of(*charts):
    return Figure("Title", "Caption", tuple(Panel(chart, chart.title if len(charts) > 1 else "") for chart in charts))


@pytest.mark.parametrize("name", CHARTS)
def test_the_schema_of_vega_lite_accepts_every_chart(name):
    altair_of(of(CHARTS[name])).to_dict()
    for panel in payloads(of(CHARTS[name])):
        assert panel["label"]
        for view in panel["views"]:
            assert json.loads(view["json"])["spec"]["width"] == "container"


def test_a_picture_has_the_same_bytes_twice():
    figure = of(*CHARTS.values())
    made = picture(figure, ("svg", "pdf"))
    assert made["svg"].startswith(b"<svg") and made["pdf"].startswith(b"%PDF")
    # Pictures in between do not change the bytes.
    picture(of(LINES), ("svg",))
    assert picture(figure, ("svg", "pdf")) == made
    assert IN_FILE_FONT.split(",")[0].encode() in made["svg"]


def test_the_table_has_values_intervals_and_reported_values():
    heads, rows = LINES.table()
    assert heads == ("op", "seeded", "seeded, low", "seeded, high", "seeded, reported", "b")
    assert rows[0] == ("1", "1.5", "1.25", "1.75", "", "2")
    assert rows[1] == ("2", "", "", "", "", "4")
    assert rows[2] == ("4", "2.25", "2", "2.5", "2", "8")
    assert of(LINES, LINES).table()[1][0] == ("Lines", *rows[0])
    heads, rows = BARS.table()
    assert [row[0] for row in rows] == list(BARS.places)
    assert rows[1][heads.index("measured, reported")] == "3"
    assert len(CHARTS["heat"].table()[1]) == 3 and len(CHARTS["histogram"].table()[1]) == 4
    assert CHARTS["effects"].table()[1][1] == ("second", "-20", "-30", "10", "replicates of different signs")


def test_the_csv_is_the_table():
    heads, rows = BARS.table()
    assert list(csv.reader(io.StringIO(csv_of((heads, rows))))) == [list(heads), *map(list, rows)]
    assert list(csv.reader(io.StringIO(csv_of((("a",), [('"x"\n',)]))))) == [["a"], ['"x"\n']]
    assert "\n" not in csv_address((heads, rows)) and '"' not in csv_address((heads, rows))


def test_intervals_are_drawn_only_where_there_are_seeds():
    def whiskers(figure):
        return picture(figure, ("svg",))["svg"].count(b"mark-rule role-mark")

    bare = Lines("Lines", LINES.x, LINES.y, XS, (Series("one seed", YS, "blue"),))
    assert whiskers(of(LINES)) > 0 and of(LINES).has_intervals
    assert whiskers(of(bare)) == 0 and not of(bare).has_intervals
    (panel,) = payloads(of(LINES))
    table = json.loads(panel["views"][0]["json"])["tables"]["data"]
    ends = [(low, high) for k, low, high in zip(table["k"], table["l"], table["h"], strict=True) if k == 0]
    assert ends == [(1.25, 1.75), (None, None), (2.0, 2.5), (2.75, 3.25)]


def test_text_cannot_leave_its_script_or_become_an_expression():
    evil = "</script><script>alert(1)</script><!-- \u2028 '] || alert(1) || ['"
    chart = Bars(evil, Axis(evil), Axis(evil), (evil,), (Series(evil, XS[:1], "blue"), Series("b", XS[:1], "red")))
    (panel,) = payloads(of(chart))
    text = str(panel["views"][0]["json"])
    assert "<" not in text and "\u2028" not in text
    assert json.loads(text)["tables"]["data"]["x"][0] == evil.replace("\u2028", " ")
    assert as_json("</script>") == '"\\u003c/script>"'
    # The names are one JSON text inside the expression of the legend.
    legend = json.dumps([evil, "b"])
    assert "\\u2028" in legend
    assert f'"labelExpr": {json.dumps(legend + "[datum.value]")}' in json.dumps(spec_of(of(chart)))
    svg = picture(of(chart), ("svg",))["svg"].decode()
    assert "<script" not in svg


def test_numbers_in_tables_have_six_digits():
    assert [plain(value) for value in (0.1 + 0.2, 1234567.0, 1e-7, math.nan, 2592000.0)] == [
        "0.3", "1234567", "1e-07", "", "2592000",
    ]  # fmt: skip
