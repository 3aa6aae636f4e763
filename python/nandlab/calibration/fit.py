"""The fit: the values of the keys for which the predictions are nearest to the measurement.

The residual of a value is the logarithm of predicted over measured, divided by its standard error. The optimiser is
`scipy.optimize.least_squares` (trust region reflective, with bounds) on the places of the keys. All candidates have the
same seeds, so the noise of the runs is common to them, and the residuals are smooth enough for differences over a
coarse step. The runs of a Jacobian are independent of each other and are done at once.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nandlab.calibration.keys import Key
from nandlab.calibration.model import Candidate, Floats, Model
from nandlab.errors import OutputError
from nandlab.study.model import leaves

#: The part of the range of a key over which a derivative is taken.
STEP = 0.04
#: Seeds at the start, from which the standard errors of predictions are estimated.
SEEDS_OF_ERRORS = 4
#: The relative error that a model is taken to have besides noise: agreement below it is not looked for.
MODEL_ERROR = 0.003
#: The half widths, as places, of the boxes about the best candidate in which the residuals are taken as linear.
BOXES = (0.15, 0.08, 0.04)
#: Candidates in such a box, for each key.
IN_BOX = 3
#: The most boxes of a size, one after another, and the part of the cost that the next one has to be below.
ROUNDS_MAX = 6
WORTH = 0.97
#: The relative errors that every value has in the first parts of the fit.
COARSE = (0.05, 0.02, 0.008)
#: Residuals beyond this many standard errors count by their logarithm.
SOFT = 3.0
#: Candidates of the first look at the whole box, for each key.
DESIGN = 3
#: The most starts of the optimiser, from the best candidates of the first look. A further one is tried only if the
#: cost over the degrees of freedom stays above this.
STARTS = 3
GOOD = 2.0
#: The most steps of the optimiser from a start.
STEPS_MAX = 10
#: The 95 % quantile of chi square with one degree of freedom.
CHI_SQUARE = 3.841
#: Keys with a larger correlation than this cannot be told apart.
CORRELATED = 0.95
#: The residual of a value that a run does not have, or of a refused spec, as a logarithm.
_FAR = math.log(10)


@dataclass(frozen=True)
class Profile:
    """The cost as a function of one key, with the other keys at their best."""

    #: Values of the key.
    values: tuple[float, ...]
    #: The rise of the cost above that of the best, divided by the scale.
    rises: tuple[float, ...]
    #: The 95 % interval of the key; an end at a bound of the key is not known.
    low: float
    high: float


@dataclass(frozen=True)
class Fitted:
    """The result of a fit."""

    candidate: Candidate
    #: The cost at the best over the degrees of freedom, at least 1.
    scale: float = 1.0
    profiles: tuple[Profile, ...] = ()
    #: Correlations of the keys, from the Jacobian.
    correlations: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    #: Numbers of fitted values that no candidate reaches.
    unreached: tuple[int, ...] = ()


class Fit:
    """The fit of a model to the measured values of its loads."""

    def __init__(self, model: Model, model_error: float = MODEL_ERROR, *, quick: bool = False) -> None:
        self.model = model
        self._model_error = model_error
        #: About a third of the candidates, and profiles of two points a key.
        self._design, self._starts, self._steps = (1, 1, 3) if quick else (DESIGN, STARTS, STEPS_MAX)
        self._boxes = BOXES[:1] if quick else BOXES
        self._rounds = 1 if quick else ROUNDS_MAX
        self._times = (-2, 2) if quick else (-4, -2, 2, 4)
        self.measured = np.log([value.value for value in model.values])
        self.errors = np.zeros(len(self.measured))
        #: Whether residuals far from 0 count less than their squares.
        self._is_soft = True

    def run(self) -> Fitted:
        """Find the values; raises `OutputError` for a start without a predicted value."""
        start = self.start()
        exact = np.hypot(errors_of(self.model, start), self._model_error)
        self.errors = exact
        if not self.model.keys:
            return Fitted(start, self._scale(start))
        # At first all values count, also those that are many standard errors away: otherwise the fit may end where most
        # values agree exactly and one is far off.
        self._is_soft = False
        self.errors = np.hypot(exact, COARSE[0])
        best = min(self._optimised(self._first_look(start)), key=self.cost)
        for coarse in (*COARSE[1:], 0.0):
            self._is_soft = coarse == 0.0
            self.errors = np.hypot(exact, coarse)
            best = min(self._optimised([best]), key=self.cost)
        best, jacobian = self._polished(best)
        scale = self._scale(best, SEEDS_OF_ERRORS)
        covariance = scale * np.linalg.pinv(jacobian.T @ jacobian, rcond=1e-10)
        deviations = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
        profiles = self._profiles(best, jacobian, deviations, scale)
        correlations = covariance / np.outer(deviations, deviations)
        return Fitted(best, scale, profiles, correlations, self._unreached(best))

    # Candidates.

    def candidate(self, places: Floats) -> Candidate:
        """The values at places."""
        return tuple(key.value(float(place)) for key, place in zip(self.model.keys, places, strict=True))

    def places(self, candidate: Candidate) -> Floats:
        """The places of values, within the bounds."""
        found = [key.place(value) for key, value in zip(self.model.keys, candidate, strict=True)]
        return np.asarray(np.clip(np.array(found), 0.0, 1.0))

    def start(self) -> Candidate:
        """The values of the spec, moved into the bounds."""
        resolved = dict(leaves(tomllib.loads(self.model.spec.to_toml())))
        places = []
        for key in self.model.keys:
            value = key.read(resolved.get(key.name))
            places.append(0.5 if value is None else min(max(key.place(value), 0.0), 1.0))
        return self.candidate(np.array(places))

    def _first_look(self, start: Candidate) -> list[Candidate]:
        """The best of some candidates that are spread over the box, for each start of the optimiser."""
        from scipy.stats import qmc

        count = self._design * len(self.model.keys)
        spread = qmc.Halton(len(self.model.keys), scramble=False).random(count + 1)[1:]
        candidates = [start, *(self.candidate(places) for places in spread)]
        self.model.logs(candidates)
        return sorted(dict.fromkeys(candidates), key=self.cost)[: self._starts]

    # Residuals.

    def _residuals(self, candidate: Candidate, seeds: int | None = None) -> Floats:
        """The residuals of all values."""
        logs = self.model.logs([candidate], seeds)[0]
        if logs is None:
            return np.full(len(self.measured), _FAR) / self.errors
        apart = np.nan_to_num(logs.mean(axis=0) - self.measured, nan=_FAR)
        return np.asarray(np.clip(apart, -_FAR, _FAR) / self.errors)

    def cost(self, candidate: Candidate, seeds: int | None = None) -> float:
        """The sum that the fit makes least: of squares of residuals, of large ones less."""
        squares = self._residuals(candidate, seeds) ** 2
        return float(np.sum(SOFT**2 * np.log1p(squares / SOFT**2) if self._is_soft else squares))

    def _scale(self, candidate: Candidate, seeds: int | None = None) -> float:
        """The cost over the degrees of freedom, at least 1."""
        free = len(self.measured) - len(self.model.keys)
        return max(self.cost(candidate, seeds) / max(free, 1), 1.0)

    # The optimiser.

    def _optimised(self, starts: Sequence[Candidate]) -> list[Candidate]:
        from scipy.optimize import least_squares

        found: list[Candidate] = []
        for start in starts:
            if any(self._scale(one) <= GOOD for one in found):
                break
            # The optimiser does not begin on a bound.
            first = np.clip(self.places(start), 1e-3, 1 - 1e-3)
            # The optimiser has no direction where no key moves a value, or where the best is reached.
            if not np.abs(self.jacobian(first).T @ self._residuals(self.candidate(first))).max() > 1e-9:
                found.append(start)
                continue
            ended = least_squares(
                lambda places: self._residuals(self.candidate(places)),
                first,
                jac=lambda places: self.jacobian(places),
                bounds=(np.zeros(len(first)), np.ones(len(first))),
                loss="cauchy" if self._is_soft else "linear",
                f_scale=SOFT,
                xtol=5e-3,
                ftol=5e-3,
                gtol=None,
                max_nfev=self._steps,
            )
            found += [start, self.candidate(ended.x)]
        return found

    def jacobian(self, places: Floats) -> Floats:
        """The derivatives of all residuals by the places, over a step towards the middle."""
        pairs = []
        for at, key in enumerate(self.model.keys):
            wide = max(STEP, _step_of_whole(key, float(places[at])))
            inwards = wide if places[at] < 0.5 else -wide
            pairs.append((places, _moved(places, at, inwards)))
        self.model.logs([self.candidate(one) for pair in pairs for one in pair])
        columns = []
        for at, pair in enumerate(pairs):
            here, aside = (self.candidate(one) for one in pair)
            width = self.places(aside)[at] - self.places(here)[at]
            columns.append((self._residuals(aside) - self._residuals(here)) / width if width else 0 * self.errors)
        return np.stack(columns, axis=1)

    def _polished(self, best: Candidate) -> tuple[Candidate, Floats]:
        """The best of a linear model of the residuals in ever smaller boxes, and its weighted derivatives in the last.

        The model is fitted to all candidates in the box, which averages the noise of the runs. A box is repeated about
        a better candidate.
        """
        jacobian = np.zeros((len(self.measured), len(self.model.keys)))
        for half in self._boxes:
            for _ in range(self._rounds):
                before = best
                best, jacobian = self._step_in_box(best, half)
                if self.cost(best, SEEDS_OF_ERRORS) > WORTH * self.cost(before, SEEDS_OF_ERRORS):
                    break
        return best, jacobian

    def _step_in_box(self, best: Candidate, half: float) -> tuple[Candidate, Floats]:
        """The better of a candidate and the best of a linear model in a box about it, and the weighted derivatives."""
        from scipy.optimize import lsq_linear

        middle = self.places(best)
        found = self._in_box(middle, half)
        x = np.array([self.places(one) - middle for one in found])
        y = np.array([self._residuals(one) for one in found])
        design = np.column_stack([np.ones(len(x)), x])
        solved = np.linalg.lstsq(design, y, rcond=None)[0]
        constant, jacobian = solved[0], solved[1:].T
        # Residuals far apart count less, as in the cost, and so do those that are not linear in the box: a median
        # between two kinds of requests, or a percentile at which a buffer begins to fill, jumps.
        misfit = np.sqrt(np.sum((y - design @ solved) ** 2, axis=0) / max(len(x) - len(solved), 1))
        weights = 1 / np.sqrt((1 + (constant / SOFT) ** 2) * (1 + misfit**2))
        low, high = np.maximum(-half, -middle), np.minimum(half, 1 - middle)
        wide = high - low > 1e-6
        step = np.zeros(len(middle))
        if wide.any():
            sides = (low[wide] - 1e-9, high[wide] + 1e-9)
            step[wide] = lsq_linear(weights[:, None] * jacobian[:, wide], -weights * constant, sides).x
        ahead = self.candidate(np.clip(middle + step, 0.0, 1.0))
        # With more seeds a lucky candidate does not stay the best.
        self.model.logs([best, ahead], SEEDS_OF_ERRORS)
        best = min((best, ahead), key=lambda one: self.cost(one, SEEDS_OF_ERRORS))
        return best, weights[:, None] * jacobian

    def _in_box(self, middle: Floats, half: float) -> list[Candidate]:
        """Candidates within a box: those that are known, and new ones up to `IN_BOX` for each key."""
        from scipy.stats import qmc

        def is_in(one: Candidate) -> bool:
            exact = np.array([key.place(value) for key, value in zip(self.model.keys, one, strict=True)])
            return bool((np.abs(exact - middle) <= half + 1e-6).all())

        known = [one for one, seeds in self.model.known if seeds == self.model.seeds and is_in(one)]
        spread = qmc.Halton(len(middle), scramble=False).random(IN_BOX * len(middle) + 1)[1:]
        found = known + [self.candidate(np.clip(middle + half * (2 * at - 1), 0.0, 1.0)) for at in spread]
        self.model.logs(found)
        return [one for one in dict.fromkeys(found) if self.model.known[one, self.model.seeds] is not None]

    # What the data says of the keys.

    def _profiles(self, best: Candidate, jacobian: Floats, deviations: Floats, scale: float) -> tuple[Profile, ...]:
        """The profiles of all keys, by runs, and their intervals, by the linear model."""
        lines = [self._line(at, best, jacobian, float(deviations[at])) for at in range(len(best))]
        self.model.logs([one for line in lines for one in line])
        return tuple(self._profile(at, best, line, float(deviations[at]), scale) for at, line in enumerate(lines))

    def _line(self, at: int, best: Candidate, jacobian: Floats, deviation: float) -> list[Candidate]:
        """Candidates along a key, with the other keys where the linear model has their best."""
        places = self.places(best)
        others = [other for other in range(len(places)) if other != at]
        follow = -np.linalg.pinv(jacobian[:, others], rcond=1e-3) @ jacobian[:, at] if others else np.zeros(0)
        found = []
        for times in self._times:
            moved = _moved(places, at, times * min(max(deviation, 0.02), 0.2))
            moved[others] = np.clip(places[others] + follow * (moved[at] - places[at]), 0.0, 1.0)
            found.append(self.candidate(moved))
        return found

    def _profile(self, at: int, best: Candidate, line: Sequence[Candidate], deviation: float, scale: float) -> Profile:
        key = self.model.keys[at]
        points = sorted({(one[at], (self.cost(one) - self.cost(best)) / scale) for one in [best, *line]})
        values, rises = zip(*points, strict=True)
        half = math.sqrt(CHI_SQUARE) * deviation
        place = key.place(best[at])
        return Profile(values, rises, key.value(place - half), key.value(place + half))

    def _unreached(self, best: Candidate) -> tuple[int, ...]:
        """The fitted values that are apart at the best, and that no candidate reaches."""
        tried = np.array([logs.mean(axis=0) for logs in self.model.known.values() if logs is not None])
        apart = tried - self.measured
        tolerance = 3 * self.errors
        is_apart = np.abs(self._residuals(best)) > 3
        above, below = (apart > tolerance).all(axis=0), (apart < -tolerance).all(axis=0)
        return tuple(int(at) for at in np.flatnonzero(is_apart & (above | below)))


def errors_of(model: Model, candidate: Candidate, averaged: int | None = None) -> Floats:
    """The standard error of each comparison at a candidate, relative to the value.

    It has the error of the measured value, and that of a prediction that is the mean over `averaged` seeds, by default
    those of the model. Raises `OutputError` for a value that the load of its row does not predict.
    """
    several = model.logs([candidate], max(SEEDS_OF_ERRORS, model.seeds))[0]
    if several is None:
        raise OutputError(
            f"the spec is refused with {', '.join(model.sets(candidate))}\n  remedy: check it with `nandlab spec check`"
        )
    rows = [load.row for load in model.loads for _ in load.row.values]
    for at, value in enumerate(model.values):
        if not np.isfinite(several[:, at]).all():
            raise OutputError(
                f"{rows[at].origin}: {value.name}: the load of this row predicts no such value\n  remedy: correct the "
                "load (reads and writes, clients, duration), or leave the cell empty"
            )
    spread = several.std(axis=0, ddof=1) / math.sqrt(averaged or model.seeds)
    return np.asarray(np.hypot(spread, np.array([value.error for value in model.values])))


def _moved(places: Floats, at: int, by: float) -> Floats:
    moved = places.copy()
    moved[at] = min(max(moved[at] + by, 0.0), 1.0)
    return moved


def _step_of_whole(key: Key, place: float) -> float:
    """The step that changes a whole number by at least 1."""
    if not key.whole:
        return 0.0
    value = key.value(place)
    return abs(key.place(value + 1) - key.place(value)) * 1.01
