"""The page of a code: frame error rates and iterations against RBER, by number of references."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nandlab import _core
from nandlab.ldpc.measure import CodecResult, Mixture
from nandlab.presentation import Figure as Tile
from nandlab.reporting.chart import Axis, Floats, Lines, Series
from nandlab.reporting.content import Block, Cell, Listing, Page, Words, sections_of
from nandlab.reporting.run_charts import single
from nandlab.units import number

#: What the intervals of frame error rates are.
_OF_RATE = "95 % confidence intervals of the rate"
_COLOURS = ("blue", "teal", "green", "orange", "red", "rose", "violet")


def codec_page(result: CodecResult) -> Page:
    """The page."""
    sections: list[tuple[str, Sequence[Block | None]]] = [
        ("Frame error rate", [_rates(result), _boundaries(result)]),
        ("Hard decisions below Monte Carlo", [] if result.mixture is None else [_mixture(result.mixture)]),
        ("Iterations", [_iterations(result)]),
        ("Points", [_points(result)]),
        ("Method", [Words(text) for text in _METHOD]),
    ]
    rate = result.data_bits / result.bits
    tiles = [Tile("data bits", f"{result.data_bits:,}"), Tile("rate", number(rate))]
    tiles += [Tile(f"boundary, {_named(curve.references)}", f"{curve.boundary:.5f}") for curve in result.curves]
    return Page(
        kind="codec",
        title=result.name,
        lead=f"{result.bits:,} bits at a rate of {number(rate)}; references: {result.placement}. A boundary is the "
        "RBER at which 1 % of the frames fail.",
        tiles=tuple(tiles),
        notes=(),
        sections=sections_of(sections),
        footer=f"seed {result.seed}",
        version=_core.version(),
    )


def _named(references: int) -> str:
    return "1 reference" if references == 1 else f"{references} references"


def _rates(result: CodecResult) -> Block:
    xs = np.array(sorted({point.rber for curve in result.curves for point in curve.points}))
    series = []
    for at, curve in enumerate(result.curves):
        by_rber = {point.rber: point for point in curve.points if point.counts.failed}
        columns = np.full((3, len(xs)), np.nan)
        for place, rber in enumerate(xs.tolist()):
            if rber in by_rber:
                point = by_rber[rber]
                columns[:, place] = point.rate, *point.interval
        rate, low, high = columns
        series.append(Series(_named(curve.references), rate, _COLOURS[at % len(_COLOURS)], low=low, high=high))
    chart = Lines(
        "Frame error rate",
        Axis("RBER of one reference", log=True),
        Axis("frame error rate", log=True, high=1.0),
        xs,
        tuple(series),
        dots=True,
        bridged=True,
    )
    return single(chart, "Measured. Points without a failed frame are left out.", intervals=_OF_RATE)


def _boundaries(result: CodecResult) -> Listing:
    rows: list[tuple[Cell, ...]] = [
        (str(curve.references), f"{curve.boundary:.5f}", f"{curve.unknown:.5f}", f"{1 - curve.unknown:.4f}")
        for curve in result.curves
    ]
    return Listing(
        ("references", "boundary RBER", "unknown, bits", "mutual information, bits"),
        tuple(rows),
        numbers=frozenset(range(4)),
        label="Boundaries",
        caption="Unknown: the equivocation of a bit given its region, at the boundary.",
    )


def _mixture(of: Mixture) -> Block:
    both = of.known | np.append(of.known[1:], False)
    known, extended = np.where(of.known, of.rates, np.nan), np.where(of.known & ~_edge(of.known), np.nan, of.rates)
    error = np.where(both, of.errors, np.nan)
    chart = Lines(
        "Frame error rate of hard decisions",
        Axis("RBER", log=True),
        Axis("frame error rate", log=True, low=max(float(of.rates[of.rates > 0].min()), 1e-18), high=1.0),
        of.rbers,
        (
            Series("measured", known, "blue", low=_above_0(known - 1.96 * error), high=known + 1.96 * error),
            Series("extrapolated", extended, "slate", "dashed"),
        ),
    )
    return single(
        chart,
        f"Sum over the number of errors; measured down to {of.rate_min:.1e}. Below, at least a tenth of the rate comes "
        "from numbers of errors at which fewer than 10 failed frames were seen: the dashed curve lets the logarithm of "
        "FER(k) fall on as a line, and knows no error floor. It is no measured capability.",
        intervals=_OF_RATE,
    )


def _edge(known: np.typing.NDArray[np.bool_]) -> np.typing.NDArray[np.bool_]:
    """The known values beside an extrapolated one, where the two curves meet."""
    padded = np.pad(known, 1, constant_values=True)
    return known & ~(padded[:-2] & padded[2:])


def _above_0(values: Floats) -> Floats:
    return np.where(values > 0, values, np.nan)


def _iterations(result: CodecResult) -> Block:
    xs = np.array(sorted({_margin(point.rber, curve.boundary) for curve in result.curves for point in curve.points}))
    series = []
    for at, curve in enumerate(result.curves):
        by_margin = {_margin(point.rber, curve.boundary): point for point in curve.points}
        means = np.full(len(xs), np.nan)
        spread = np.full(len(xs), np.nan)
        for place, margin in enumerate(xs.tolist()):
            if margin in by_margin:
                means[place], spread[place] = by_margin[margin].iterations
        series.append(
            Series(
                _named(curve.references), means, _COLOURS[at % len(_COLOURS)], low=means - spread, high=means + spread
            )
        )
    chart = Lines(
        "Iterations of decoded frames",
        Axis("RBER / boundary"),
        Axis("iterations", low=0.0),
        xs,
        tuple(series),
        dots=True,
        bridged=True,
    )
    return single(chart, "Means over the frames.", intervals="one standard deviation of the frames on each side")


def _margin(rber: float, boundary: float) -> float:
    return round(rber / boundary, 4)


def _points(result: CodecResult) -> Listing:
    rows: list[tuple[Cell, ...]] = []
    for curve in result.curves:
        for point in curve.points:
            low, high = point.interval
            mean, deviation = point.iterations
            cells = (f"{point.rber:.5f}", f"{point.counts.frames:,}", f"{point.counts.failed:,}")
            interval = f"{low:.1e} to {high:.1e}"
            rows.append(
                (str(curve.references), *cells, f"{point.rate:.2e}", interval, f"{mean:.2f}", f"{deviation:.2f}")
            )
    return Listing(
        ("references", "RBER", "frames", "failed", "rate", "95 % interval", "iterations", "deviation"),
        tuple(rows),
        numbers=frozenset(range(8)),
        label="Points",
    )


_METHOD = (
    "Frames are sums of random codewords. The two values of a bit are two Gaussian voltage distributions, and the RBER "
    "is that of one reference between them. LLRs are those of the regions, in 8 bits (at most 16 for one reference, 31 "
    "otherwise). The decoder is layered normalised min-sum with a factor of 0.75.",
    "Every frame follows from the seed and its number, so the result does not depend on the number of threads or on "
    "interruptions.",
)
