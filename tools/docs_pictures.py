"""The pictures of the site: drawings as SVG in the page, and charts of values that the build computes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import nandlab


class Drawing:
    """An SVG drawing of boxes, arrows and texts. Its colours are those of the page (docs/assets/site.css)."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._size = (width, height)
        self._title = title
        self._parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, text: str = "", mark: bool = False) -> None:
        """A box with lines of text in its middle."""
        kind = "mark" if mark else "box"
        self._parts.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3"/>')
        lines = text.split("\n") if text else []
        for place, line in enumerate(lines):
            self.text(x + width / 2, y + height / 2 + 4.5 + 15 * (place - (len(lines) - 1) / 2), line, "middle")

    def text(self, x: float, y: float, text: str, anchor: str = "start", small: bool = False) -> None:
        """A line of text."""
        kind = ' class="small"' if small else ""
        self._parts.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{kind}>{escape(text)}</text>')

    def arrow(self, *points: tuple[float, float], head: bool = True) -> None:
        """A line through points, with a head at its end."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self._parts.append(f'<polyline class="arrow" points="{path}"/>')
        if head:
            (x0, y0), (x1, y1) = points[-2:]
            angle = math.atan2(y1 - y0, x1 - x0)
            sides = [(x1 - 8 * math.cos(angle + turn), y1 - 8 * math.sin(angle + turn)) for turn in (-0.4, 0.4)]
            corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in [(x1, y1), *sides])
            self._parts.append(f'<polygon class="head" points="{corners}"/>')

    def svg(self) -> str:
        """The drawing."""
        width, height = self._size
        kind = f'viewBox="0 0 {width} {height}" width="{width}" role="img" data-search-exclude'
        return f'<svg {kind} aria-label="{escape(self._title)}">{"".join(self._parts)}</svg>'


def drive() -> Drawing:
    """The parts of a drive."""
    d = Drawing(680, 250, "Host, controller and flash of a simulated drive")
    d.box(5, 85, 70, 60, "host")
    d.arrow((75, 105), (125, 105))
    d.arrow((125, 125), (75, 125))
    d.text(100, 95, "link", "middle", small=True)
    d.box(125, 20, 190, 205)
    d.text(220, 38, "controller", "middle")
    d.box(140, 50, 160, 36, "write cache (DRAM)")
    d.box(140, 94, 160, 36, "FTL: map, allocation")
    d.box(140, 138, 160, 36, "GC, refresh, reclaim")
    d.box(140, 182, 160, 32, "decoder")
    d.box(345, 20, 40, 205, "off-\nchip\npath")
    d.arrow((315, 120), (345, 120))
    for row in range(2):
        y = 20 + 110 * row
        d.arrow((385, y + 47), (445, y + 47))
        d.text(415, y + 38, f"channel {row}", "middle", small=True)
        d.box(445, y, 225, 95)
        d.text(557, y + 15, "chip", "middle", small=True)
        for die in range(2):
            x = 455 + 107 * die
            d.box(x, y + 22, 98, 66)
            d.text(x + 49, y + 36, "die", "middle", small=True)
            for plane in range(2):
                d.box(x + 6 + 45 * plane, y + 42, 41, 40, "plane", mark=True)
    return d


def phases() -> Drawing:
    """The phases of operations on die and channel."""
    d = Drawing(680, 275, "Phases of a read, a program, an off-chip copy and a copyback on die and channel")
    rows: list[tuple[str, list[tuple[str, str, int]]]] = [
        ("read", [("die", "sense", 110), ("channel", "transfer out", 90), ("controller", "decode", 60)]),
        ("program", [("channel", "transfer in", 90), ("die", "program", 200)]),
        ("off-chip copy", [("die", "sense", 110), ("channel", "out, decode, in", 150), ("die", "program", 200)]),
        ("copyback", [("die", "sense", 110), ("die", "program", 200)]),
        ("erase", [("die", "erase", 300)]),
    ]
    for place, (name, parts) in enumerate(rows):
        y = 12 + 46 * place
        d.text(5, y + 22, name)
        x = 110
        for where, what, width in parts:
            d.box(x, y, width, 34, what, mark=where == "die")
            x += width
    d.box(110, 245, 14, 14, mark=True)
    d.text(130, 257, "occupies the die", small=True)
    d.box(250, 245, 14, 14)
    d.text(270, 257, "occupies the channel or the controller", small=True)
    return d


def blocks() -> Drawing:
    """The states of a block."""
    d = Drawing(680, 130, "States of a block: free, open, full, victim, and again free or retired")
    names = [("Free", "erased"), ("Open", "a stream fills it"), ("Full", "candidate of GC"), ("Victim", "is emptied")]
    for place, (name, about) in enumerate(names):
        x = 5 + 178 * place
        d.box(x, 15, 130, 48, f"{name}\n{about}", mark=name == "Victim")
        if place:
            d.arrow((x - 48, 39), (x, 39))
    d.arrow((604, 63), (604, 95), (70, 95), (70, 63))
    d.text(337, 90, "erase; at drive.endurance the block is retired", "middle", small=True)
    return d


def levels() -> Drawing:
    """The tries of a read that needs level 3."""
    d = Drawing(680, 175, "Tries of a read that needs level 3: from level 1, and from the remembered level")
    d.text(5, 38, "first")
    d.text(5, 98, "last-level")
    x = 110
    for level, width in ((1, 85), (2, 109), (3, 133)):
        d.box(x, 15, width, 36, f"level {level}{'' if level == 3 else ' fails'}", mark=level == 3)
        x += width
    d.box(110, 75, 133, 36, "level 3", mark=True)
    d.arrow((243, 93), (x, 93), head=False)
    d.text((243 + x) / 2, 87, "redundant read latency", "middle", small=True)
    d.text(110, 145, "sense 50 + 14 (L - 1) µs on the die, transfer 20 + 10 (L - 1) µs on the channel, decode 15 µs")
    return d


def references() -> Drawing:
    """Three read references around the boundary of two states, and the regions between them."""
    d = Drawing(680, 215, "Two states, three read references around their boundary, and the four regions between them")

    def state(middle: float) -> None:
        d.arrow(*((x, 150 - 110 * math.exp(-(((x - middle) / 75) ** 2) / 2)) for x in range(20, 660, 5)), head=False)

    state(225)
    state(455)
    d.arrow((20, 150), (660, 150))
    d.text(650, 168, "threshold voltage", "end", small=True)
    for number, x in enumerate((300, 340, 380), 1):
        d.arrow((x, 20), (x, 178), head=False)
        d.text(x, 14, str(number), "middle", small=True)
    for x, text in ((180, "surely 1"), (320, "1?"), (360, "0?"), (520, "surely 0")):
        d.text(x, 200, text, "middle")
    return d


def copyback() -> Drawing:
    """Copybacks in a row, and the copy that corrects."""
    d = Drawing(680, 150, "A page is copied back within its plane up to a limit, then moved off-chip and corrected")
    for count in range(3):
        x = 5 + 150 * count
        d.box(x, 40, 100, 50, f"b({count})\n{count} in a row")
        if count:
            d.arrow((x - 50, 65), (x, 65))
            d.text(x - 25, 30, "copyback", "middle", small=True)
    d.box(490, 40, 180, 50, "controller\ncorrects all errors", mark=True)
    d.arrow((405, 65), (490, 65))
    d.text(447, 30, "limit reached", "middle", small=True)
    d.arrow((580, 90), (580, 125), (55, 125), (55, 90))
    d.text(320, 120, "off-chip, back to b(0)", "middle", small=True)
    return d


def partial_refresh() -> Drawing:
    """A base page and its combination page."""
    d = Drawing(680, 190, "Susceptible bits of several base pages go to one combination page; a pread reads both")
    for place in range(3):
        y = 15 + 55 * place
        d.box(5, y, 190, 40)
        d.text(14, y + 25, f"base page {place + 1}")
        d.box(165 - 30 * place, y, 14, 40, mark=True)
        d.arrow((195, y + 20), (300, 90))
    d.box(300, 70, 60, 40, "VSM")
    d.arrow((360, 90), (430, 90))
    d.box(430, 60, 240, 60)
    for place in range(3):
        d.box(440 + 75 * place, 70, 70, 40, f"of {place + 1}", mark=True)
    d.text(550, 140, "combination page, on another die if possible", "middle", small=True)
    d.text(550, 50, "susceptible bits", "middle", small=True)
    return d


def outage() -> Drawing:
    """What happens at a power loss."""
    d = Drawing(680, 120, "Power loss: operations end, emergency flush, outage, recovery")
    parts = [("operations end", 110, False), ("emergency flush", 180, True), ("recovery", 130, False)]
    x = 110
    d.text(5, 47, "power fails")
    d.arrow((75, 43), (108, 43))
    for name, width, mark in parts:
        d.box(x, 20, width, 45, name, mark=mark)
        x += width
    d.arrow((x, 43), (x + 40, 43))
    d.text(x + 45, 47, "host continues")
    d.arrow((110, 85), (400, 85), head=False)
    d.text(255, 102, "on the energy of the capacitor", "middle", small=True)
    return d


def windows() -> Drawing:
    """The windows of a life."""
    d = Drawing(680, 95, "A life in windows: simulated windows, skipped time between them")
    for place in range(5):
        x = 5 + 134 * place
        d.box(x, 15, 26, 40)
        d.box(x + 26, 15, 26, 40, mark=True)
        if place < 4:
            d.arrow((x + 52, 35), (x + 134, 35))
            d.text(x + 93, 29, "skipped", "middle", small=True)
    d.box(5, 72, 14, 14)
    d.text(25, 84, "settling phase", small=True)
    d.box(135, 72, 14, 14, mark=True)
    d.text(155, 84, "window that counts", small=True)
    return d


def waf_by_op() -> str:
    """WAF of FIFO by over-provisioning: small runs, and the closed form."""
    import altair as alt

    spec = nandlab.load("""
seed = 1
[drive]
channels = 1
chips_per_channel = 1
planes_per_die = 1
blocks_per_plane = 512
pages_per_block = 32
[gc]
victim = "fifo"
background_free = 0.0001
foreground_free = 0.0
[ftl]
wear_levelling = "none"
[precondition]
method = "pts"
rounds_max = 5
[workload]
synthetic = { requests = 60_000, read_fraction = 0.0, size = "4KiB", address = "uniform" }
arrival = { queue_depth = 1 }
""")
    measured = []
    for op in (0.1, 0.15, 0.2, 0.3, 0.5):
        result = nandlab.run(spec.with_({"drive.op": op}))
        measured.append({"op": result.summary.space.spare_share, "waf": result.summary.waf})
    form = [{"op": op / 100, "waf": fifo_waf(op / 100)} for op in range(7, 51)]
    x = alt.X("op:Q", title="effective over-provisioning", scale=alt.Scale(zero=False))
    y = alt.Y("waf:Q", title="write amplification")
    line = alt.Chart(_data(form)).mark_line().encode(x=x, y=y)
    dots = alt.Chart(_data(measured)).mark_point(filled=True, size=70, color="#d95f02").encode(x=x, y=y)
    return chart_svg((line + dots).properties(width=520, height=260))


def fifo_waf(op: float) -> float:
    """WAF of uniform random writes under FIFO (Xiang and Kurkoski 2012): A / (A + W(-A exp(-A))) with A = 1 + op."""
    a = 1.0 + op
    # The principal branch of Lambert's W, by Newton's method.
    w, z = -0.5, -a * math.exp(-a)
    for _ in range(100):
        w -= (w * math.exp(w) - z) / (math.exp(w) * (w + 1.0))
    return a / (a + w)


def rber() -> str:
    """RBER over retention for several P/E cycles, by the model `vth`."""
    import altair as alt

    spec = nandlab.load('[drive]\npreset = "laldpc-32g"\n[reliability]\nrber = "vth"\n')
    days = [10 ** (step / 24 * math.log10(365)) for step in range(25)]
    found = nandlab.reliability(
        spec, pe_cycles=[2_000, 5_000, 8_000, 10_000, 12_000], retention=[f"{round(day * 86400)}s" for day in days]
    )
    rows = [
        {"pe": f"{row['pe_cycles']:,}", "days": row["retention_s"] / 86400, "rber": row["rber"]}
        for row in found.to_dict()["points"]
    ]
    chart = (
        alt.Chart(_data(rows))
        .mark_line()
        .encode(
            x=alt.X("days:Q", title="retention in days", scale=alt.Scale(type="log")),
            y=alt.Y("rber:Q", title="RBER"),
            color=alt.Color("pe:N", title="P/E cycles", sort=None),
        )
    )
    return chart_svg(chart.properties(width=480, height=260))


def code_levels() -> str:
    """The RBER that each level of the shipped codes of 4 KiB decodes, at a Gaussian boundary."""
    import altair as alt

    rows = []
    for rate in ("8/9", "16/17"):
        for placement, name in (("equidistant", "equidistant"), ("mmi", "most information")):
            codec = f'{{ codec = {{ rate = "{rate}", references = "{placement}", fer = 0.01 }} }}'
            spec = nandlab.load(
                f'[drive]\npreset = "laldpc-32g"\n[ecc]\nlevels = {codec}\n[reliability]\nrber = "vth"\n'
            )
            limits = nandlab.reliability(spec, pe_cycles=[1000], retention=["1d"]).levels["rber_max"]
            rows += [
                {"level": level, "rber": float(limit), "code": f"{rate}, {name}"}
                for level, limit in enumerate(limits.tolist(), 1)
            ]
    laldpc = (0.005, 0.006, 0.008, 0.009, 0.010, 0.012, 0.013)
    rows += [{"level": level, "rber": rber, "code": "LaLDPC, Table II"} for level, rber in enumerate(laldpc, 1)]
    chart = (
        alt.Chart(_data(rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("level:O", title="references at each boundary"),
            y=alt.Y("rber:Q", title="RBER decoded"),
            color=alt.Color("code:N", title="rate and placement", sort=None),
        )
    )
    return chart_svg(chart.properties(width=440, height=260))


#: The drive of the tutorial "Why was this request slow?", without its workload.
_BUSY = """
seed = 1
[drive]
channels = 2
chips_per_channel = 1
dies_per_chip = 2
planes_per_die = 1
blocks_per_plane = 64
pages_per_block = 64
page_size = "4KiB"
op = 0.2
[precondition]
used = 0.95
valid = 0.75
[workload]
synthetic = { requests = 20_000, read_fraction = 0.7, size = "4KiB", address = "uniform" }
arrival = { iops = 3000, process = "poisson" }
[output]
explain = 20
"""
_SUSPENDS = {
    "timing.suspend.program": '{ enter = "20us", resume = "10us", min_progress = "50us", max = 10 }',
    "timing.suspend.erase": '{ enter = "30us", resume = "20us", min_progress = "100us", max = 10 }',
}


def why_slow() -> str:
    """What reads and writes wait for, on a drive without suspension and on one that suspends programs and erases."""
    spec = nandlab.load(_BUSY)
    rows = []
    for name, sets in (("no suspension", {}), ("suspension", _SUSPENDS)):
        explained = nandlab.run(spec.with_([f"{key}={value}" for key, value in sets.items()])).explained
        assert explained is not None
        rows += [{"drive": name, **row} for op in ("read", "write") for row in _waits(explained.sum_of(op), parts=8)]
    return _waits_chart(rows, column="drive")


def database_waits() -> str:
    """What the requests of commits wait for: two writes and a flush, with reads beside them."""
    import random
    import tempfile
    from pathlib import Path

    draw, pages = random.Random(1), 12_000
    lines = ["fio version 2 iolog", "db add", "db open"]
    for commit in range(6_000):
        # The log is written in order; pages of the table and the reads are anywhere.
        places = (commit % pages, draw.randrange(pages), draw.randrange(pages))
        lines += [
            f"db {what} {4096 * place} 4096" for what, place in zip(("write", "write", "read"), places, strict=True)
        ]
        lines.append("db datasync 0 0")
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "commits.log"
        trace.write_text("\n".join(lines) + "\n", encoding="utf-8")
        text = (
            _BUSY[: _BUSY.index("[workload]")]
            + f"""[workload]
trace = "{trace}"
arrival = {{ queue_depth = 4 }}
[output]
explain = 20
"""
        )
        explained = nandlab.run(nandlab.load(text)).explained
    assert explained is not None
    return _waits_chart([row for op in ("read", "write", "flush") for row in _waits(explained.sum_of(op), parts=6)])


def _waits(sum_: Any, parts: int) -> list[dict[str, object]]:
    from nandlab.explained import largest, words

    shown = largest(sum_.parts_ns, parts)
    rows: list[dict[str, object]] = [
        {"op": sum_.op, "part": words(part), "us": ns / sum_.requests * 1e-3} for part, ns in shown
    ]
    rest = sum_.latency_ns - sum(ns for _, ns in shown)
    return [*rows, {"op": sum_.op, "part": "all others", "us": rest / sum_.requests * 1e-3}]


def _waits_chart(rows: list[dict[str, object]], column: str = "") -> str:
    """Bars of the parts, a row of charts for each kind of request; with `column` one chart for each of its values."""
    import altair as alt

    def of(op: object) -> Any:
        chart = (
            alt.Chart(_data([row for row in rows if row["op"] == op]), title=f"{op}s" if op != "flush" else "flushes")
            .mark_bar()
            .encode(
                x=alt.X("us:Q", title="mean time a request, µs"),
                y=alt.Y("part:N", title=None, sort="-x"),
                **({"column": alt.Column(f"{column}:N", title=None, sort=None)} if column else {}),
            )
            .properties(width=230 if column else 420, height=150)
        )
        return chart.resolve_scale(y="independent") if column else chart

    ops = dict.fromkeys(row["op"] for row in rows)
    return chart_svg(alt.vconcat(*(of(op) for op in ops)))


def _data(rows: Sequence[Mapping[str, object]]) -> Any:
    import altair as alt

    return alt.Data(values=rows)  # type: ignore[no-untyped-call]


def chart_svg(chart: object) -> str:
    """A chart of Altair as SVG."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(chart.to_dict()))  # type: ignore[attr-defined]


#: The drawings, by the name in `<!-- drawing: NAME -->`.
DRAWINGS: dict[str, Callable[[], Drawing]] = {
    "drive": drive,
    "phases": phases,
    "blocks": blocks,
    "levels": levels,
    "references": references,
    "copyback": copyback,
    "partial-refresh": partial_refresh,
    "outage": outage,
    "windows": windows,
}
#: The charts, by the name of the file in pictures/.
CHARTS: dict[str, Callable[[], str]] = {
    "waf-by-op": waf_by_op,
    "rber": rber,
    "code-levels": code_levels,
    "why-slow": why_slow,
    "database-waits": database_waits,
}
