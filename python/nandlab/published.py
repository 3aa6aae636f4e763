"""Published measurements of aged 3D flash beside the model `vth-tlc`, for `nandlab reliability`.

Each figure is computed three times: by the model for the cells of the planar chip (`rber = "vth-tlc"` without further
parameters), by the model of the spec, and by an integration of the spec's states that shares no formula with the model.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nandlab import _core
from nandlab.spec import Spec
from nandlab.tables import decode

_HOUR_S, _DAY_S = 3600, 86_400
#: The ages at which Luo et al. state the RBER: 7 minutes, 3 hours and 11 days.
LUO_S = (7 * 60, 3 * _HOUR_S, 11 * _DAY_S)
#: Their P/E cycles.
LUO_PE = 10_000
#: Growth of the RBER from the first of these ages to each of them.
LUO_GROWTH = (1.0, 10.0, 100.0)
#: P/E cycles and age of the other points: Park et al. without wear and worn, Lee et al.
_FRESH, _WORN, _AIF = (0, 91 * _DAY_S), (2000, 365 * _DAY_S), (4000, 365 * _DAY_S)
_CONDITIONS = (*((LUO_PE, age) for age in LUO_S), _FRESH, _WORN, _AIF)
#: MSB, CSB and LSB of each state, from the erased one.
_GRAY = np.array(
    [[1, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 0], [1, 0, 0], [1, 0, 1]], dtype=np.int64
)
#: Width of a bin of the integration, in 512ths of the highest voltage.
_STEP = 0.01
#: Integration and model are compared down to this RBER.
_LEAST = 1e-12
#: Bits of 1 KiB.
_KIB_BITS = 8192

#: The table of the figures, on screen and page.
PUBLISHED_HEADS = ("figure", "published", "planar cells", "this spec", "integrated", "source")
PUBLISHED_CAPTION = (
    'Published figures beside the model: with the cells of the planar chip (rber = "vth-tlc" alone), with this spec, '
    "and with this spec by numerical integration of its states"
)

#: The RBER of LSB, CSB and MSB pages by condition and entry; entry 0 has the optimal references, entry 1 the default
#: ones.
_Rbers = dict[tuple[int, int], NDArray[np.float64]]


@dataclass(frozen=True)
class Figure:
    """A published figure, and the same figure of three models; NaN where a model has no value."""

    #: What it is, with its conditions.
    name: str
    #: The published value in words.
    published: str
    #: Authors and kind of chip.
    source: str
    #: With the cells of the planar chip.
    planar: float
    #: With the spec.
    model: float
    #: With the spec, by integration.
    integrated: float


@dataclass(frozen=True, eq=False)
class Published:
    """The published figures beside the model of a spec."""

    figures: tuple[Figure, ...]
    #: The greatest relative deviation of the integration from the model, over all RBERs behind the figures.
    deviation: float
    #: Whether the spec has a read-retry table, which the numbers of retries need.
    has_retries: bool


def published(spec: Spec) -> Published | None:
    """The figures for a spec with `reliability.rber = "vth-tlc"`; `None` for another model."""
    keys = tomllib.loads(spec.to_toml())
    if "vth-tlc" not in keys["reliability"]["rber"]:
        return None
    limit = _limit(keys)
    planar, _ = _read(spec.with_({"reliability.rber": "vth-tlc"}))
    model, integrated = _read(spec)
    three = (planar, model, integrated)
    figures = []

    def add(name: str, told: str, source: str, of: Callable[[_Rbers], float]) -> None:
        figures.append(Figure(name, told, source, *(of(rbers) for rbers in three)))

    luo, park, lee = "Luo et al., 3D MLC", "Park et al., 3D TLC", "Lee et al., 3D TLC"
    for entry, references in ((1, "default"), (0, "optimal")):
        for later, span in ((1, "7 min to 3 h"), (2, "3 h to 11 d")):
            name = f"growth of the RBER, {span}, 10,000 P/E, {references} references"
            add(name, "10", luo, lambda rbers, later=later, entry=entry: _growth(rbers, later, entry))  # type: ignore[misc]
    fresh, worn, aif = (_CONDITIONS.index(at) for at in (_FRESH, _WORN, _AIF))
    if limit is not None:
        add(
            "fewest retries of a page, 91 d, 0 P/E",
            "more than 3",
            park,
            lambda r: float(np.min(_retries(r, fresh, limit))),
        )
        add("mean retries, 365 d, 2,000 P/E", "19.9", park, lambda r: float(np.mean(_retries(r, worn, limit))))
        add(
            "highest RBER of a page at the optimum, 365 d, 2,000 P/E",
            f"below {limit:.4g}",
            park,
            lambda r: _most(r, worn),
        )
    add("wrong bits in 1 KiB of an LSB page, 365 d, 4,000 P/E", "at most 49", lee, lambda r: _bits(r, aif))
    return Published(tuple(figures), _deviation(model, integrated), limit is not None)


def published_rows(found: Published) -> list[tuple[str, ...]]:
    """The figures as rows of text, under `PUBLISHED_HEADS`."""
    rows = []
    for figure in found.figures:
        values = (figure.planar, figure.model, figure.integrated)
        rows.append((figure.name, figure.published, *(_text(value) for value in values), figure.source))
    return rows


def deviation_of(found: Published) -> str:
    """The agreement of model and integration in a sentence."""
    text = f"The integration agrees with every RBER behind these figures within {100 * found.deviation:.1g} %."
    if not found.has_retries:
        text += " Numbers of retries need a read-retry table (ecc.levels.retry)."
    return text


def _text(value: float) -> str:
    if np.isnan(value):
        return "lost"
    return f"{value:.2e}" if 0 < value < 0.1 else f"{value:.3g}"


def default_rber(spec: Spec, pe_cycles: int, ages_s: Sequence[int]) -> NDArray[np.float64]:
    """The RBER at the default references, as the mean of LSB, CSB and MSB pages, by age; NaN without a value."""
    reads = decode(_core.voltages(spec, [pe_cycles] * len(ages_s), list(ages_s))["reads"])
    found = np.full(len(ages_s), np.nan)
    is_default = reads["entry"] == 1
    mean = (reads["lsb"] + reads["csb"] + reads["msb"]) / 3
    found[reads["point"][is_default].astype(np.int64)] = mean[is_default]
    return found


def _limit(keys: dict[str, object]) -> float | None:
    """The RBER that an entry of the read-retry table decodes; `None` without a table."""
    levels = keys["ecc"]["levels"]  # type: ignore[index]
    return float(levels["retry"]["rber_max"]) if isinstance(levels, dict) and "retry" in levels else None


def _read(spec: Spec) -> tuple[_Rbers, _Rbers]:
    """The RBERs by the model, and by integration of its states."""
    raw = _core.voltages(spec, [pe for pe, _ in _CONDITIONS], [age for _, age in _CONDITIONS])
    states, reads = decode(raw["states"]), decode(raw["reads"])
    model: _Rbers = {}
    integrated: _Rbers = {}
    references = np.stack([reads[f"r{number}"] for number in range(1, 8)], axis=1)
    rbers = np.stack([reads[kind] for kind in ("lsb", "csb", "msb")], axis=1)
    for point in range(len(_CONDITIONS)):
        of_point = states["point"] == point
        if not of_point.any():
            continue
        cells = _Cells(states["mean"][of_point], states["sigma"][of_point])
        for row in np.flatnonzero(reads["point"] == point).tolist():
            at = (point, int(reads["entry"][row]))
            model[at], integrated[at] = rbers[row], cells.rber(references[row])
    return model, integrated


class _Cells:
    """The cells of eight states, counted in narrow bins of voltage."""

    def __init__(self, means: NDArray[np.float64], sigmas: NDArray[np.float64]) -> None:
        low, high = float((means - 12 * sigmas).min()), float((means + 12 * sigmas).max())
        self.edges = np.arange(low, high + _STEP, _STEP)
        middles = self.edges[:-1] + _STEP / 2
        #: For each state the share of its cells below each edge, and above it.
        self.below, self.above = [], []
        for mean, sigma in zip(means, sigmas, strict=True):
            density = np.exp(-(((middles - mean) / sigma) ** 2) / 2)
            shares = density / density.sum()
            self.below.append(np.concatenate([[0.0], np.cumsum(shares)]))
            # Summed from above, so that a small tail keeps its precision.
            self.above.append(np.concatenate([np.cumsum(shares[::-1])[::-1], [0.0]]))

    def rber(self, references: NDArray[np.float64]) -> NDArray[np.float64]:
        """The RBER of LSB, CSB and MSB pages: a cell is read as the state whose references enclose its voltage."""
        wrong = np.zeros(3)
        for stored in range(8):
            below = np.interp(references, self.edges, self.below[stored])
            above = np.interp(references, self.edges, self.above[stored])
            for read in range(8):
                if read == stored:
                    continue
                # A region above the stored state is a difference of upper tails, one below it of lower tails.
                if read > stored:
                    share = above[read - 1] - (above[read] if read < 7 else 0.0)
                else:
                    share = below[read] - (below[read - 1] if read > 0 else 0.0)
                wrong += share * (_GRAY[stored] != _GRAY[read])[::-1]
        return np.minimum(wrong / 8, 0.5)


def _growth(rbers: _Rbers, later: int, entry: int) -> float:
    """The growth of the RBER, as the mean of the page kinds, between two of the ages of Luo et al."""
    before, after = rbers.get((later - 1, entry)), rbers.get((later, entry))
    return float(after.mean() / before.mean()) if before is not None and after is not None else float("nan")


def _retries(rbers: _Rbers, point: int, limit: float) -> list[float]:
    """The retries of an LSB, a CSB and an MSB page with the read-retry table; NaN for a page that no entry decodes."""
    entries = sorted(entry for at, entry in rbers if at == point and entry > 0)
    found = []
    for kind in range(3):
        decoding = (entry for entry in entries if rbers[point, entry][kind] < limit)
        found.append(float(next(decoding, float("nan"))) - 1)
    return found


def _most(rbers: _Rbers, point: int) -> float:
    found = rbers.get((point, 0))
    return float("nan") if found is None else float(found.max())


def _bits(rbers: _Rbers, point: int) -> float:
    found = rbers.get((point, 0))
    return float("nan") if found is None else float(found[0] * _KIB_BITS)


def _deviation(model: _Rbers, integrated: _Rbers) -> float:
    pairs = ((rber, integrated[at]) for at, rber in model.items())
    found = [float(np.abs(other[one > _LEAST] / one[one > _LEAST] - 1).max(initial=0.0)) for one, other in pairs]
    return max(found, default=0.0)
