"""A comparison: its runs, the settings and outcomes that differ, and the cautions."""

from __future__ import annotations

import functools
import io
import itertools
import json
import math
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nandlab import _core
from nandlab._core import NandlabError, Spec
from nandlab.comparison.cautions import notes, warnings
from nandlab.comparison.changes import Change
from nandlab.comparison.execute import Kept, Planned, execute
from nandlab.comparison.identity import identical
from nandlab.comparison.inputs import RESULT, SEEDS_MAX, Given, Source, input_files, read
from nandlab.comparison.metrics import FIRST, METRICS, better, is_further, outcomes, place
from nandlab.errors import OutputError
from nandlab.result_types import Note
from nandlab.results import RunResult
from nandlab.spec import Sets
from nandlab.study.execute import State
from nandlab.whole import write_file

if TYPE_CHECKING:
    import altair
    import polars as pl

_FORMAT = 1


@dataclass(frozen=True)
class Runs:
    """One of the things compared: a finished run, or the runs of a spec, one per seed."""

    name: str
    #: The path of the run folder or spec; `None` for one in memory.
    path: Path | None
    seeds: tuple[int, ...]
    #: One result per seed.
    results: tuple[RunResult, ...]


@dataclass(frozen=True)
class Setting:
    """A key of the resolved specs whose values differ."""

    key: str
    #: One value per `Comparison.runs`, as in the TOML of the spec; `None` where the key is not set.
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Alone:
    """One key that differs between two specs, changed alone in either of them."""

    key: str
    #: The value in the runs that are compared with the baseline.
    value: Any
    #: The baseline, and the baseline with this key as in the other runs; `None` for a spec that is refused.
    in_baseline: Pair | None
    #: The other runs, and the other runs with this key set back to the value of the baseline; `None` likewise.
    set_back: Pair | None
    #: Why a spec is refused; empty without a reason.
    problem: str = ""

    @property
    def has_effect(self) -> bool | None:
        """Whether the key changes a result in either place, to the byte; `None` if this is not known."""
        known = [pair.identical for pair in (self.in_baseline, self.set_back) if pair is not None]
        if not all(known):
            return True
        return False if len(known) == 2 else None


@dataclass(frozen=True)
class Pair:
    """Runs beside the baseline."""

    baseline: Runs
    runs: Runs
    #: The keys whose values differ between the two.
    settings: tuple[str, ...]
    #: The metrics with words: first write amplification, latency, throughput and lifetime; then the others that differ,
    #: the largest ratio first, and those without a clear difference; then those that are the same. After them, in the
    #: same order, the further values of summary.json.
    changes: tuple[Change, ...]
    #: Metrics and further values that only the baseline has, or only the other runs.
    only_baseline: tuple[str, ...]
    only_runs: tuple[str, ...]
    #: Whether all results are the same to the byte with every seed (see `nandlab.comparison.identity`).
    identical: bool
    #: Each differing key changed alone, with `one_at_a_time`; empty without it.
    alone: tuple[Alone, ...] = ()

    @property
    def same(self) -> bool:
        """Whether all outcomes are equal with every seed."""
        return not (self.only_baseline or self.only_runs) and all(one.verdict == "same" for one in self.changes)

    @property
    def effective_settings(self) -> tuple[str, ...]:
        """The differing keys that can have an effect: not those of [output], which only shape the files."""
        return tuple(key for key in self.settings if not key.startswith("output."))

    @property
    def without_effect(self) -> tuple[str, ...]:
        """The keys that differ and had no effect: all results are the same to the byte with every seed.

        With `one_at_a_time`, the keys of which this holds when each is changed alone, in the baseline and in the other
        runs. Without it all keys or none: then the keys are only known to have no effect together.
        """
        if self.alone:
            return tuple(one.key for one in self.alone if one.has_effect is False)
        return self.effective_settings if self.identical else ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence per metric that differs or whose difference is not clear."""
        return tuple(one.sentence for one in self.changes if not one.further and one.verdict != "same")


@dataclass(frozen=True, repr=False)
class Comparison:
    """What differs between runs, in their settings and in their outcomes; the first is the baseline."""

    runs: tuple[Runs, ...]
    settings: tuple[Setting, ...]
    #: One per `runs` except the baseline.
    pairs: tuple[Pair, ...]
    #: What makes the comparison mislead.
    warnings: tuple[Note, ...]
    #: The notes of the runs, each code once with the names of its runs. A note on something that never happened is
    #: shortened to one sentence, unless a setting that it names differs.
    notes: tuple[Note, ...]
    #: The folder of the comparison; `None` without one.
    path: Path | None = None

    @property
    def baseline(self) -> Runs:
        """The runs with which the others are compared."""
        return self.runs[0]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences of all pairs; of more than one pair each sentence begins with the name of its runs."""
        if len(self.pairs) == 1:
            return self.pairs[0].sentences
        return tuple(f"{pair.runs.name}: {sentence}" for pair in self.pairs for sentence in pair.sentences)

    @functools.cached_property
    def series(self) -> pl.DataFrame:
        """The series of all runs below one another (see `RunResult.series`), with the columns `run` and `seed`.

        A column that only some of the runs have is null in the others.
        """
        return self._table("series")

    @functools.cached_property
    def latency(self) -> pl.DataFrame:
        """The latency histograms of all runs below one another (see `RunResult.latency`), with `run` and `seed`."""
        return self._table("latency")

    def _table(self, name: str) -> pl.DataFrame:
        import polars as pl

        frames = [
            result.table(name).select(pl.lit(one.name).alias("run"), pl.lit(seed).alias("seed"), pl.all())
            for one in self.runs
            for seed, result in zip(one.seeds, one.results, strict=True)
        ]
        return pl.concat(frames, how="diagonal_relaxed")

    @property
    def method(self) -> tuple[str, ...]:
        """How the differences are computed, in sentences."""
        seeds = len(self.baseline.seeds)
        if seeds == 1:
            return (
                "One seed, so no intervals: a small difference may be chance. With --seeds 10 each spec is run with "
                "ten seeds.",
            )
        return (
            f"Intervals: 95 % confidence intervals of the mean ratio, from {seeds} ratios, each of two runs with the "
            "same seed (geometric mean; Student's t on the logarithms of the ratios). Where a value is 0: of the mean "
            "difference.",
            '"No clear difference", or "unclear": the interval contains no change. By chance, about one interval in '
            "twenty misses the true value.",
        )

    def to_dict(self) -> dict[str, Any]:
        """The comparison as in compare.json."""
        return {
            "format": _FORMAT,
            "nandlab": _core.version(),
            "baseline": self.baseline.name,
            "runs": [
                {
                    "name": one.name,
                    "path": None if one.path is None else str(one.path),
                    "seeds": list(one.seeds),
                    "folders": [None if result.path is None else str(result.path) for result in one.results],
                    "spec_hashes": [result.spec_hash for result in one.results],
                }
                for one in self.runs
            ],
            "settings": [
                {
                    "key": setting.key,
                    "values": {one.name: value for one, value in zip(self.runs, setting.values, strict=True)},
                }
                for setting in self.settings
            ],
            "method": " ".join(self.method),
            "warnings": [_note(note) for note in self.warnings],
            "notes": [_note(note) for note in self.notes],
            "comparisons": [
                {
                    "run": pair.runs.name,
                    "settings": list(pair.settings),
                    "without_effect": list(pair.without_effect),
                    **_outcomes(pair),
                    "one_at_a_time": [
                        {
                            "key": one.key,
                            "value": one.value,
                            "has_effect": one.has_effect,
                            "in_baseline": None if one.in_baseline is None else _outcomes(one.in_baseline),
                            "set_back": None if one.set_back is None else _outcomes(one.set_back),
                            "problem": one.problem or None,
                        }
                        for one in pair.alone
                    ],
                }
                for pair in self.pairs
            ],
        }

    @property
    def text(self) -> str:
        """The text of compare.json."""
        return json.dumps(self.to_dict(), indent=2) + "\n"

    def __str__(self) -> str:
        from nandlab.console import Console
        from nandlab.screen import show_comparison

        text = io.StringIO()
        show_comparison(self, Console(text, width=100))
        return text.getvalue().rstrip("\n")

    def __repr__(self) -> str:
        from nandlab.comparison.presented import of_comparison
        from nandlab.notebook import LINES, short

        shown = [f"<Comparison {of_comparison(self).name}>", *self.sentences]
        more = len(shown) - LINES + 1
        return short(shown if more <= 1 else [*shown[: LINES - 1], f"and {more} more"])

    def _repr_mimebundle_(self, *_: object, **__: object) -> dict[str, Any]:
        """The comparison in a notebook: text, and with the extra `figures` also HTML and the picture of the ratios."""
        from nandlab.comparison.presented import of_comparison
        from nandlab.notebook import bundle
        from nandlab.reporting.extra import missing

        figures = []
        if not missing():
            from nandlab.comparison.page import ratios_of

            figures = [found.figure for found in [ratios_of(self)] if found is not None]
        return {**bundle(of_comparison(self), "Comparison", figures), "text/plain": repr(self)}

    def plot(self) -> altair.TopLevelMixin:
        """The ratios to the baseline with their intervals, as an Altair chart; needs the extra `figures`."""
        from nandlab.notebook import comparison_chart

        return comparison_chart(self)

    @functools.cached_property
    def frame(self) -> pl.DataFrame:
        """The metrics of all pairs as a polars data frame, in the order of `Pair.changes`.

        The columns are `run`, `metric`, `unit`, `baseline` and `value` (means over the seeds), `ratio` with its 95 %
        confidence interval `low` to `high` (null where a value is not above 0, and the interval for one seed), `better`
        (`"lower"`, `"higher"`, or empty where neither is better by itself) and `verdict`.
        """
        import polars as pl

        def row(pair: Pair, one: Change) -> tuple[Any, ...]:
            low, high = (one.ratio.interval if one.ratio is not None else None) or (None, None)
            ratio = None if one.ratio is None else 1 + one.ratio.mean
            ends = (None if end is None else 1 + end for end in (low, high))
            means = (math.fsum(values) / len(values) for values in (one.baseline, one.values))
            return pair.runs.name, one.metric, one.unit, *means, ratio, *ends, one.better, one.verdict

        number, text = pl.Float64, pl.String
        schema = {
            **dict.fromkeys(("run", "metric", "unit"), text),
            **dict.fromkeys(("baseline", "value", "ratio", "low", "high"), number),
            **dict.fromkeys(("better", "verdict"), text),
        }
        rows = [row(pair, one) for pair in self.pairs for one in pair.changes]
        return pl.DataFrame(rows, schema=schema, orient="row")


def compare(
    *runs: Source,
    seeds: int | None = None,
    sets: Sets = (),
    one_at_a_time: bool = False,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: Callable[[State], None] | None = None,
) -> Comparison:
    """Compare two or more runs; the first is the baseline.

    `runs` are run folders, paths or texts of specs, `Spec`s, or `RunResult`s. The first may also be a mapping with a
    whole spec (see `load`), and each of the others overrides of the first: `"gc.victim=fifo,drive.op=0.1"`, or a mapping
    such as `{"gc.victim": "fifo"}`. Finished runs are compared as they are, specs are run.

    With `seeds`, the spec of each is run with so many seeds (1 to 10,000): that of the first, and the following ones.
    `sets` overrides keys of all specs. `one_at_a_time` also changes each key that differs alone, in the baseline and in
    the other runs, to find the keys without effect: two runs per key and seed, where more than one key differs. With
    any of these three the specs of finished runs are run anew, which needs their input files.

    `workers` is the most runs under way at a time, by default one per processor; they must fit into memory. With `out`,
    runs are kept in this folder, beside compare.json; a later comparison with the same folder repeats none of them that
    has the same spec, input files and build. `progress` is called about ten times per second.

    Raises `SpecError` and `OutputError` before the first run, and `RunError` when a run fails; finished runs are kept.
    """
    if seeds is not None and not 1 <= seeds <= SEEDS_MAX:
        raise OutputError(f"seeds: expected a number from 1 to {SEEDS_MAX:,}, found {seeds:,}")
    if workers is not None and workers < 1:
        raise OutputError(f"workers: expected at least 1, found {workers}")
    given = read(runs, sets, anew=seeds is not None or one_at_a_time)
    kept = None if out is None else Kept(Path(out))
    planned = [_planned(one, given, seeds) for one in given]
    single = [_changed_alone(planned[0], plan) if one_at_a_time else [] for plan in planned[1:]]
    plans = planned + [plan for alone in single for one in alone for plan in (one.in_baseline, one.set_back)]
    # Seed by seed, so that an interrupt leaves as many whole pairs as possible.
    todo = [run for of_seed in itertools.zip_longest(*plans) for run in of_seed if run is not None]
    done = dict(zip(todo, execute(todo, kept, progress or (lambda _state: None), workers), strict=True))
    compared = []
    for given_, plan in zip(given, planned, strict=True):
        results = (given_.result,) if given_.result is not None else tuple(done[run] for run in plan)
        compared.append(_runs(given_.name, given_.path, results))
    pairs = []
    for at, alone in enumerate(single, start=1):
        found = tuple(_alone(one, compared[0], compared[at], done) for one in alone)
        pairs.append(replace(_pair(compared[0], compared[at]), alone=found))
    comparison = _compared(tuple(compared), tuple(pairs), None if kept is None else kept.path)
    if kept is not None:
        write_file(kept.path / RESULT, comparison.text.encode())
    return comparison


def _planned(one: Given, given: Sequence[Given], seeds: int | None) -> list[Planned]:
    """The runs of one spec; with `seeds` all specs have the same seeds, so that the runs can be paired."""
    if one.spec is None:
        return []
    first = next(other.spec for other in given if other.spec is not None)
    seed = json.loads((one.spec if seeds is None else first).canonical_json())["seed"]
    return [Planned(one.name, seed + k, one.spec.with_({"seed": seed + k})) for k in range(seeds or 1)]


@dataclass(frozen=True)
class _Single:
    """The runs that change one key alone; without runs for a spec that is refused."""

    key: str
    value: Any
    in_baseline: list[Planned]
    set_back: list[Planned]
    problem: str


def _changed_alone(baseline: Sequence[Planned], runs: Sequence[Planned]) -> list[_Single]:
    """The runs that change each differing key alone; none if only one key differs, since the pair itself has them."""
    specs = [tomllib.loads(plan[0].spec.to_toml()) for plan in (baseline, runs)]
    # The seed stands for chance, and the keys of [output] only shape the files.
    settings = [one for one in _differing("", specs) if one.key != "seed" and not one.key.startswith("output.")]
    found = []
    for setting in settings if len(settings) > 1 else ():
        plans: list[list[Planned]] = []
        problems = []
        for plan, other, value in ((baseline, runs, setting.values[1]), (runs, baseline, setting.values[0])):
            try:
                plans.append([_with_value(run, setting.key, value, other[0].spec) for run in plan])
            except NandlabError as error:
                plans.append([])
                problems.append(f"in {plan[0].name}: " + str(error).splitlines()[0])
        found.append(_Single(setting.key, setting.values[1], plans[0], plans[1], "; ".join(problems)))
    return found


def _with_value(run: Planned, key: str, value: Any, of: Spec) -> Planned:
    """A run with the value that another spec gives a key; raises `NandlabError`."""
    if value is None:
        raise OutputError(f"{key} cannot be set alone, since the section has other keys without it")
    file = input_files(of).get(key)
    return replace(run, name=f"{run.name}, {key}", spec=run.spec.with_({key: value if file is None else str(file)}))


def _alone(one: _Single, baseline: Runs, runs: Runs, done: Mapping[Planned, RunResult]) -> Alone:
    def pair(before: Runs, plan: Sequence[Planned]) -> Pair | None:
        return _pair(before, _runs(plan[0].name, None, tuple(done[run] for run in plan))) if plan else None

    return Alone(one.key, one.value, pair(baseline, one.in_baseline), pair(runs, one.set_back), one.problem)


def _runs(name: str, path: Path | None, results: tuple[RunResult, ...]) -> Runs:
    return Runs(name, path, tuple(int(tomllib.loads(result.spec_toml)["seed"]) for result in results), results)


def _settings(runs: Sequence[Runs]) -> tuple[Setting, ...]:
    return tuple(_differing("", [tomllib.loads(one.results[0].spec_toml) for one in runs]))


def _compared(runs: tuple[Runs, ...], pairs: tuple[Pair, ...], path: Path | None) -> Comparison:
    settings = _settings(runs)
    return Comparison(runs, settings, pairs, tuple(warnings(runs, settings)), tuple(notes(runs, settings)), path)


def _differing(prefix: str, values: Sequence[Any]) -> Iterator[Setting]:
    """The keys at which tables differ; tables without a common key, such as two policies, differ as a whole."""
    if all(value == values[0] for value in values):
        return
    tables = [value for value in values if isinstance(value, Mapping)]
    if len(tables) == len(values) and set.intersection(*map(set, tables)):
        for key in dict.fromkeys(key for table in tables for key in table):
            yield from _differing(f"{prefix}.{key}".lstrip("."), [table.get(key) for table in tables])
    else:
        yield Setting(prefix, tuple(values))


def _pair(baseline: Runs, runs: Runs) -> Pair:
    before, after = ([outcomes(result) for result in one.results] for one in (baseline, runs))
    settings = tuple(setting.key for setting in _settings((baseline, runs)))
    columns: list[tuple[str, str, str, bool, list[float | None], list[float | None]]] = [
        (
            metric.name,
            metric.words,
            metric.unit,
            False,
            [metric.expression.value(values) for values in before],
            [metric.expression.value(values) for values in after],
        )
        for metric in METRICS
    ]
    named = dict.fromkeys(name for values in (*before, *after) for name in values)
    columns += [
        (name, name, "", True, _column(name, before), _column(name, after)) for name in named if is_further(name)
    ]
    changes, only_baseline, only_runs = [], [], []
    for name, words, unit, further, old, new in columns:
        has_old, has_new = None not in old, None not in new
        if has_old and has_new:
            direction = "" if further else better(name)
            changes.append(Change(name, words, unit, _known(old), _known(new), further, direction))
        elif has_old:
            only_baseline.append(name)
        elif has_new:
            only_runs.append(name)
    order = ("differs", "unclear", "same")

    def key(one: Change) -> tuple[bool, bool, int, int, float]:
        first = place(one.metric)
        # The first metrics are in the order of the table of metrics.
        by_size = (order.index(one.verdict), -one.size) if one.further or first == len(FIRST) else (0, 0.0)
        return one.further, one.verdict == "same", first, *by_size

    changes.sort(key=key)
    shaped = any(key.startswith("output.") for key in settings)
    same = all(
        identical(one, other, output_differs=shaped) for one, other in zip(baseline.results, runs.results, strict=True)
    )
    return Pair(baseline, runs, settings, tuple(changes), tuple(only_baseline), tuple(only_runs), same)


def _outcomes(pair: Pair) -> dict[str, Any]:
    """The outcomes of a pair as in compare.json."""
    return {
        "identical": pair.identical,
        "metrics": [one.to_dict() for one in pair.changes if not one.further],
        "further": [one.to_dict() for one in pair.changes if one.further],
        "only_baseline": list(pair.only_baseline),
        "only_run": list(pair.only_runs),
    }


def _known(values: Sequence[float | None]) -> tuple[float, ...]:
    return tuple(value for value in values if value is not None)


def _column(name: str, values: Sequence[Mapping[str, float]]) -> list[float | None]:
    """A value in each run. An entry by number that a run lacks is 0, if the run has other entries of the metric."""
    start, _, last = name.rpartition(".")
    found: list[float | None] = []
    for of in values:
        missing = 0.0 if last.isdigit() and any(other.startswith(f"{start}.") for other in of) else None
        found.append(of.get(name, missing))
    return found


def _note(note: Note) -> dict[str, str]:
    return {"severity": note.severity, "code": note.code, "text": note.text}
