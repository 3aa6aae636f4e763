"""`nandlab codec`: frame error rates and iterations of a code against RBER, by number of read references."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nandlab import _core
from nandlab.errors import OutputError
from nandlab.ldpc.parts import PART, At, Counts, Parts
from nandlab.reporting.chart import Floats
from nandlab.whole import write_file

RESULT, TABLE, PAGE = "codec.json", "codec.csv", "codec.html"
#: Margins, RBER over the boundary of 1 %, at which frames are sent.
MARGINS = (0.5, 0.7, 0.8, 0.9, 0.94, 0.97, 1.0, 1.03, 1.06, 1.1, 1.15)
#: The frame error rate of a boundary.
BOUNDARY = 0.01
#: Failures that make a rate known: a standard error of a third.
KNOWN = 10
#: The largest share of a rate that may come from numbers of errors at which fewer failures were seen.
UNSEEN = 0.1
#: How many times as many frames are sent where failures are rare.
RARE = 8
#: Values of the curve of hard decisions.
_CURVE = 60


@dataclass(frozen=True)
class Point:
    """Frames at one RBER."""

    rber: float
    counts: Counts

    @property
    def rate(self) -> float:
        """The frame error rate."""
        return self.counts.failed / self.counts.frames

    @property
    def interval(self) -> tuple[float, float]:
        """Its interval of 95 % (Wilson)."""
        return _core.Codec.interval(self.counts.frames, self.counts.failed)

    @property
    def iterations(self) -> tuple[float, float]:
        """Mean and standard deviation of the iterations of the decoded frames; NaN without any."""
        decoded = self.counts.frames - self.counts.failed
        if not decoded:
            return math.nan, math.nan
        mean = self.counts.iterations_decoded / decoded
        return mean, math.sqrt(max(self.counts.squares_decoded / decoded - mean * mean, 0.0))


@dataclass(frozen=True)
class Curve:
    """The points of one number of references."""

    references: int
    #: The RBER at which 1 % of the frames fail, by a line through the logarithms of the rates around it.
    boundary: float
    #: What the regions leave unknown of a bit there, in bits.
    unknown: float
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Mixture:
    """Frame error rates of hard decisions, from frames with fixed numbers of errors."""

    #: Numbers of errors with the frames that have them.
    points: tuple[tuple[int, Counts], ...]
    rbers: Floats
    rates: Floats
    #: Standard errors of the rates.
    errors: Floats
    #: Whether each rate follows from numbers of errors at which failures were seen; the others are extrapolated.
    known: np.typing.NDArray[np.bool_]

    @property
    def rate_min(self) -> float:
        """The lowest rate that does not need extrapolation."""
        return float(self.rates[self.known].min()) if self.known.any() else math.nan


@dataclass(frozen=True, repr=False)
class CodecResult:
    """What was measured of a code."""

    path: Path
    name: str
    placement: str
    bits: int
    data_bits: int
    seed: int
    curves: tuple[Curve, ...]
    mixture: Mixture | None
    parts_done: int
    parts_kept: int

    def __repr__(self) -> str:
        found = ", ".join(f"{curve.references}: {curve.boundary:.5f}" for curve in self.curves)
        return f"<CodecResult {self.name}, {self.placement}; boundaries by references: {found}>"

    def to_dict(self) -> dict[str, object]:
        """The result as JSON."""
        return {
            "code": self.name,
            "bits": self.bits,
            "data_bits": self.data_bits,
            "placement": self.placement,
            "seed": self.seed,
            "curves": [
                {
                    "references": curve.references,
                    "boundary": curve.boundary,
                    "unknown_bits": curve.unknown,
                    "points": [_point(point) for point in curve.points],
                }
                for curve in self.curves
            ],
            "mixture": None if self.mixture is None else _mixture(self.mixture),
        }


def _point(point: Point) -> dict[str, object]:
    low, high = point.interval
    mean, deviation = point.iterations
    return {
        "rber": point.rber,
        "frames": point.counts.frames,
        "failed": point.counts.failed,
        "fer": point.rate,
        "fer_low": low,
        "fer_high": high,
        "iterations_mean": None if math.isnan(mean) else mean,
        "iterations_deviation": None if math.isnan(deviation) else deviation,
    }


def _mixture(of: Mixture) -> dict[str, object]:
    return {
        "errors": [{"errors": errors, "frames": at.frames, "failed": at.failed} for errors, at in of.points],
        "curve": [
            {"rber": rber, "fer": rate, "standard_error": error, "extrapolated": not known}
            for rber, rate, error, known in zip(
                of.rbers.tolist(), of.rates.tolist(), of.errors.tolist(), of.known.tolist(), strict=True
            )
        ],
    }


def codec(
    code: str | os.PathLike[str] = "8/9",
    *,
    size: int = 4096,
    references: Sequence[int] = (1, 3, 7),
    spacing: float | None = 0.25,
    frames: int = 2000,
    iterations: int = 30,
    seed: int = 1,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CodecResult:
    """Measure frame error rates of a code at a Gaussian boundary, and write a page.

    Args:
        code: The rate of a code that comes with nandlab (`8/9`, `16/17`), or a file (`.alist`, `.qc`).
        size: Data bytes of a codeword of a code that comes with nandlab; without effect for a file.
        references: Numbers of read references, from 1 to 7.
        spacing: Distance of neighbouring references in standard deviations; `None` for those with the most information.
        frames: Frames at each point.
        iterations: Most iterations of the decoder.
        seed: Seed of the frames.
        out: The folder for frames and results; `out/CODE-codec` if `None`. Frames that are there are kept.
        workers: Threads; one per processor if `None`.
        progress: Called with the parts that are done and all parts of a step.

    Raises:
        OutputError: An argument is out of its range, or the folder has the frames of another code.
        RunError: There is no such code, or its file cannot be read.
    """
    _check(references, spacing, frames, iterations, seed)
    file = Path(code) if str(code).endswith((".alist", ".qc")) else None
    built = _core.Codec(str(code), size, file, iterations)
    bits, data_bits = built.bits
    name = Path(code).stem if file is not None else f"{str(code).replace('/', '_')}-{size // 1024}KiB"
    path = Path(out) if out is not None else Path("out") / f"{name}-codec"
    placement = "mmi" if spacing is None else f"equidistant, {spacing:g} sigma"
    identity: dict[str, object] = {
        "code": str(code) if file is None else file.read_text(encoding="utf-8"),
        "size": size if file is None else 0,
        "iterations": iterations,
        "spacing": spacing,
        "seed": seed,
        "version": 1,
    }
    parts = Parts(path, built, identity, spacing=spacing, seed=seed, workers=workers or os.cpu_count() or 1)
    report = progress or (lambda _done, _total: None)
    curves = []
    for count in sorted(set(references)):
        boundary = _found(parts, built, count, spacing, 1 - data_bits / bits, report)
        asked = [(At(count, _rounded(boundary * margin), 0), frames) for margin in MARGINS]
        found = parts.measure(asked, report)
        points = tuple(Point(at.rber, found[at]) for at, _ in asked)
        better = _line(points, boundary)
        curves.append(Curve(count, better, built.equivocation(better, count, spacing), points))
    hard = next((curve for curve in curves if curve.references == 1), None)
    mixture = None if hard is None else _mixed(parts, built, hard.boundary, frames, report)
    result = CodecResult(path, name, placement, bits, data_bits, seed, tuple(curves), mixture, parts.done, parts.kept)
    _write(result)
    return result


def _check(references: Sequence[int], spacing: float | None, frames: int, iterations: int, seed: int) -> None:
    if not references or not all(1 <= count <= 7 for count in references):
        raise OutputError("references: expected numbers from 1 to 7, such as 1,3,7")
    if spacing is not None and not 0.01 <= spacing <= 2:
        raise OutputError(f"spacing: expected a number of standard deviations from 0.01 to 2, found {spacing:g}")
    if not PART <= frames <= 10_000_000:
        raise OutputError(f"frames: expected a number from {PART} to 10000000, found {frames}")
    if not 1 <= iterations <= 1000:
        raise OutputError(f"iterations: expected a number from 1 to 1000, found {iterations}")
    if not 0 <= seed < 2**63:
        raise OutputError(f"seed: expected a whole number from 0, found {seed}")


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")


def _found(
    parts: Parts,
    code: _core.Codec,
    references: int,
    spacing: float | None,
    redundancy: float,
    report: Callable[[int, int], None],
) -> float:
    """About the RBER at which 1 % of the frames fail: steps from where the regions leave too little unknown."""
    low, high = 1e-6, 0.3
    for _ in range(60):
        middle = math.sqrt(low * high)
        if code.equivocation(middle, references, spacing) < 0.6 * redundancy:
            low = middle
        else:
            high = middle

    def rate(rber: float) -> float:
        at = At(references, rber, 0)
        counts = parts.measure([(at, PART)], report)[at]
        return counts.failed / counts.frames

    rber, steps = _rounded(low), 0
    while rate(rber) < 0.02 and steps < 100:
        rber, steps = _rounded(rber * 1.03), steps + 1
    while rate(rber) > 0.05 and steps < 200:
        rber, steps = _rounded(rber / 1.02), steps + 1
    # A rate of a few percent, so 1 % is a little below.
    return _rounded(rber * 0.98)


def _line(points: Sequence[Point], first: float) -> float:
    """Where a line through the logarithms of the rates near 1 %, weighted with the failures, has 1 %."""
    near = [point for point in points if point.counts.failed > 2 and point.rate < 0.3]
    if len(near) < 2:
        return first
    x, y = (np.log([getattr(point, name) for point in near]) for name in ("rber", "rate"))
    weights = np.sqrt([point.counts.failed for point in near])
    slope, constant = np.polyfit(x, y, 1, w=weights)
    return float(np.exp((math.log(BOUNDARY) - constant) / slope)) if slope > 1 else first


def _mixed(
    parts: Parts, code: _core.Codec, boundary: float, frames: int, report: Callable[[int, int], None]
) -> Mixture:
    """The mixture over numbers of errors, from those without failures to those with nothing else."""
    bits, _ = code.bits
    middle = bits * boundary
    step = max(round(middle / 80), 1)
    numbers = [round(middle) + at * step for at in range(-8, 33)]
    asked = [(At(1, 0.0, errors), frames) for errors in numbers if 0 < errors <= bits]
    found = parts.measure(asked, report)
    # Where failures are rare, more frames: down to the first number of errors at which these do not show enough either.
    for at, _ in reversed(asked):
        if found[at].failed < KNOWN:
            found |= parts.measure([(at, RARE * frames)], report)
            if found[at].failed < KNOWN:
                break
    points = tuple((at.errors, found[at]) for at, _ in asked)
    rbers = boundary * np.geomspace(0.6, 1.25, _CURVE)
    plain = [(errors, counts.frames, counts.failed) for errors, counts in points]
    rates, errors_of = np.array(code.mixture(plain, rbers.tolist())).T
    added = _below(points, bits, rbers)
    rates = rates + added
    known = (added < UNSEEN * rates) & (errors_of < rates / 3)
    return Mixture(points, rbers, rates, errors_of, known)


def _below(points: Sequence[tuple[int, Counts]], bits: int, rbers: Floats) -> Floats:
    """What numbers of errors with fewer than `KNOWN` failures add, if the logarithm of FER(k) falls on."""
    seen = [(errors, counts.failed / counts.frames) for errors, counts in points if counts.failed >= KNOWN]
    below = [point for point in seen if point[1] < 0.3]
    if len(below) < 2:
        return np.full(len(rbers), np.inf)
    errors, rates = np.array(below).T
    slope, constant = np.polyfit(errors, np.log(rates), 1)
    first = int(seen[0][0])
    k = np.arange(max(first - 400, 0), first)
    logs = np.array([math.lgamma(bits + 1) - math.lgamma(one + 1) - math.lgamma(bits - one + 1) for one in k.tolist()])
    tail = np.exp(np.minimum(slope * k + constant, 0.0))
    weights = np.exp(logs + np.outer(np.log(rbers), k) + np.outer(np.log1p(-rbers), bits - k))
    return np.asarray(weights @ tail)


def _write(result: CodecResult) -> None:
    from nandlab.reporting.extra import missing

    write_file(result.path / RESULT, (json.dumps(result.to_dict(), indent=2) + "\n").encode())
    write_file(result.path / TABLE, _table(result).encode())
    if not missing():
        from nandlab.ldpc.page import codec_page
        from nandlab.reporting.render import html_of

        write_file(result.path / PAGE, html_of(codec_page(result)).encode())


def _table(result: CodecResult) -> str:
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(["references", *_point(result.curves[0].points[0])])
    for curve in result.curves:
        for point in curve.points:
            values = _point(point).values()
            lines.writerow([curve.references, *("" if value is None else f"{value:.6g}" for value in values)])
    return out.getvalue()


__all__ = ["CodecResult", "Curve", "Point", "codec"]
