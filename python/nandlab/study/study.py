"""The Python interface of studies: load a study, do its runs, take the results as one table."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nandlab import _core, shipped
from nandlab._types import Problem
from nandlab.errors import OutputError, os_error_text
from nandlab.reporting.extra import need_figures
from nandlab.results import REPORT
from nandlab.spec import _near as near_specs
from nandlab.study.draw import Drawn, draw
from nandlab.study.execute import State, Workers, execute
from nandlab.study.judge import Verdict, judge
from nandlab.study.local import LocalWorkers
from nandlab.study.metrics import Results, possible_names
from nandlab.study.model import Definition, Measure
from nandlab.study.plan import PlannedRun, plan
from nandlab.study.problems import MAX_PROBLEMS, StudyError, near, problem, shown
from nandlab.study.ranges import RANGES, held, over_ranges, with_ranges
from nandlab.study.ranges import as_json as ranges_as_json
from nandlab.study.store import Store
from nandlab.tables import to_parquet
from nandlab.whole import write_file

if TYPE_CHECKING:
    import altair
    import pandas
    import polars as pl

    from nandlab.reporting.chart import Figure


@dataclass(repr=False)
class StudyResult:
    """The result of a study."""

    #: The folder of the study.
    path: Path
    #: One row per run: `run` (the identity of the run), `part`, `variant`, `workload`, a column per grid axis, and a
    #: column per metric under its dotted name; last `notes` and `errors`, the codes of all notes of the run and of its
    #: errors.
    results: pl.DataFrame
    #: The claims with measured values and verdicts, as in claims.json.
    claims: list[dict[str, Any]]
    #: The notes of the runs by code, the gravest first, as in claims.json: `severity`, `code`, the `count` of runs with
    #: the note `of` all distinct runs, the labels that single them out (`where`), the `text` of the first of them, and
    #: the `runs` by identity.
    notes: list[dict[str, Any]]
    #: Runs done in this call.
    runs_done: int
    #: Runs that were finished before.
    runs_kept: int
    #: Attempts that were lost with their worker.
    runs_lost: int
    _frames: dict[str, pl.DataFrame]
    _charts: dict[str, Figure]

    def __repr__(self) -> str:
        verdicts = Counter(claim["verdict"] for claim in self.claims)
        judged = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.items())
        lines = [f"<StudyResult {self.path}: {len(self.results)} runs>", *([f"claims: {judged}"] if judged else [])]
        return "\n".join(lines)

    @property
    def report(self) -> Path:
        """The path of the HTML report."""
        return self.path / REPORT

    def figure(self, name: str) -> pl.DataFrame:
        """The data of the figure with the id `name`: `panel`, `series`, `x`, `y`, `low`, `high`, `is_reference`.

        `y` is the mean over the seeds, `low` to `high` its 95 % confidence interval, null for one seed. Raises
        `KeyError`.
        """
        if name not in self._frames:
            raise KeyError(f"no figure {name!r}; this study has {', '.join(self._frames)}")
        return self._frames[name]

    def chart(self, name: str) -> altair.TopLevelMixin:
        """The figure with the id `name` as an Altair chart, which a notebook shows; needs the extra `figures`.

        Raises `KeyError` for an unknown figure, and for a figure for which no run has a value.
        """
        if name not in self._charts:
            raise KeyError(f"no chart {name!r}; this study has {', '.join(self._charts)}")
        from nandlab.reporting.vega import altair_of

        return altair_of(self._charts[name])

    def to_pandas(self) -> pandas.DataFrame:
        """`results` as a pandas data frame; needs the package pandas."""
        import pandas

        return pandas.DataFrame(self.results.to_dict(as_series=False))


class Study:
    """A study: variants x workloads x grid of a base spec, with figures and claims.

    study = nandlab.Study.load("studies/garbage-collection/study.toml")
    len(study.runs)
    result = study.run(workers=2)
    result.results                        # one polars data frame
    """

    def __init__(self, read: Definition, runs: Sequence[PlannedRun]) -> None:
        self.definition = read
        #: All runs, in the order of the study file.
        self.runs = list(runs)
        #: The result of the last `run`.
        self.result: StudyResult | None = None

    @staticmethod
    def load(source: str | os.PathLike[str], *, smoke: bool = False, seeds: int | None = None) -> Study:
        """Read a study: `source` is a study file, a folder with a study.toml, or the name of a study.

        A name is that of a folder in studies/, or of a study that comes with nandlab.
        `smoke` selects the smoke size, which [smoke] of the file describes. `seeds` is the number of replicates in
        place of that of the file; a part with fewer replicates of its own keeps its number. Raises `StudyError`, whose
        text names the errors of the study and of the specs of its runs with their lines, and `OutputError` for a
        missing file.
        """
        from nandlab.study import definition

        return Study._of(definition.read(find(source), smoke=smoke, seeds=seeds))

    @staticmethod
    def from_dict(
        tables: Mapping[str, Any],
        *,
        folder: str | os.PathLike[str] = ".",
        smoke: bool = False,
        seeds: int | None = None,
    ) -> Study:
        """Make a study from the tables of a study file as a mapping.

        `{"study": {"title": ..., "question": ..., "base": "base.toml"}, "variants": {...}, ...}`; in place of a file
        the keys of the base spec may be in `"base": {...}`. Relative paths start at `folder`. `study.name` is the name
        of the study, by default `study`. `smoke`, `seeds` and the errors are those of `load`; the lines of errors are
        those of the mapping as TOML.
        """
        from nandlab.spec import toml_text
        from nandlab.study import definition

        study = tables.get("study")
        named = {**study, "name": study.get("name", "study")} if isinstance(study, Mapping) else study
        text = toml_text({**tables, "study": named} if "study" in tables else tables, dotted=False)
        return Study._of(definition.read_of(text, Path(folder) / "study.toml", smoke=smoke, seeds=seeds))

    @staticmethod
    def _of(read: Definition) -> Study:
        runs = plan(read)
        _check_names(read, possible_names(runs))
        return Study(read, runs)

    @property
    def name(self) -> str:
        """The name of the study, with `-smoke` at smoke size."""
        return self.definition.name + ("-smoke" if self.definition.smoke else "")

    @property
    def results(self) -> pl.DataFrame:
        """The table of the last `run`, one row per run; raises `OutputError` before the first `run`."""
        if self.result is None:
            raise OutputError("this study has not been run: call run()")
        return self.result.results

    def to_pandas(self) -> pandas.DataFrame:
        """`results` as a pandas data frame; needs the package pandas. Raises `OutputError` before the first `run`."""
        if self.result is None:
            raise OutputError("this study has not been run: call run()")
        return self.result.to_pandas()

    def run(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        workers: int | None = None,
        dask: str | None = None,
        traces: str = "send",
        fresh: bool = False,
        progress: Callable[[State], None] | None = None,
    ) -> StudyResult:
        """Do the runs that are not finished yet, and write results, claims, figures and report to `out`.

        `out` is by default a folder in out/ with the name of the study. `workers` is the number of local processes, by
        default one per processor; `dask` is the address of a Dask scheduler, whose workers do the runs instead. Input
        files are sent to the Dask workers, or read at the same path (`traces="path"`). `fresh` repeats finished runs.
        `progress` is called about ten times per second. The files of a study, except sim.json, do not depend on workers
        and interruptions.

        Raises `OutputError` when a file cannot be read or written, or Dask or the extra `figures` is not available,
        `NandlabError` when runs have failed; finished runs are kept.
        """
        need_figures("a study needs its report and figures")
        store = Store(Path(out) if out is not None else Path("out") / self.name)
        store.open(self.name)
        try:
            if fresh:
                for identity in {run.identity for run in self.runs}:
                    store.forget(identity)

            def make(wanted: int) -> Workers:
                if dask is not None:
                    from nandlab.study.cluster import DaskWorkers

                    return DaskWorkers(dask, traces)
                return LocalWorkers(max(min(workers or os.cpu_count() or 1, wanted), 1))

            state = execute(
                [run.task for run in self.runs],
                store,
                make,
                progress or (lambda _state: None),
            )
            self.result = self._finish(store, state)
        finally:
            store.close()
        return self.result

    def _finish(self, store: Store, state: State) -> StudyResult:
        """Write the result files; all except sim.json do not depend on time, place and order of the runs."""
        from nandlab.reporting.files import picture
        from nandlab.reporting.render import html_of
        from nandlab.study.charts import figure_of
        from nandlab.study.page import study_page

        study = self.definition
        results = Results(store, self.runs, study.metrics, [factor.name for factor in study.factors])
        frame = results.frame()
        verdicts = with_ranges(judge(study, results), held(study, store.path))
        ranges = over_ranges(study, results)
        drawn = draw(study, results, verdicts)
        claims = [verdict.as_json() for verdict in verdicts]
        noted = _noted(results)
        judged = {
            "study": self.name,
            "title": study.title,
            "smoke": study.smoke,
            "notes": noted,
            "claims": claims,
        }
        charts = [figure_of(study, figure) for figure in drawn]
        page = html_of(study_page(study, results, drawn, charts, verdicts, ranges, _core.version()))
        figures = store.path / "figures"
        try:
            figures.mkdir(exist_ok=True)
            there = [figure.figure.id for figure, chart in zip(drawn, charts, strict=True) if chart is not None]
            wanted = {f"{name}.{kind}" for name in there for kind in ("svg", "pdf")}
            for old in figures.iterdir():
                if old.name not in wanted and old.suffix in (".svg", ".pdf"):
                    old.unlink()
        except OSError as error:
            raise OutputError(os_error_text("write to", figures, error)) from None
        write_file(store.path / "results.parquet", to_parquet(frame))
        for figure, chart in zip(drawn, charts, strict=True):
            made = {} if chart is None else picture(chart, ("svg", "pdf"))
            for kind, data in made.items():
                write_file(figures / f"{figure.figure.id}.{kind}", data)
        write_file(store.path / "claims.json", (json.dumps(judged, indent=2) + "\n").encode())
        if ranges:
            text = json.dumps(ranges_as_json(study, ranges), indent=2) + "\n"
            write_file(store.path / RANGES, text.encode())
        write_file(store.path / REPORT, page.encode())
        if state.done:
            write_file(store.path / "sim.json", (json.dumps(_measured(state), indent=2) + "\n").encode())
        return StudyResult(
            path=store.path,
            results=frame,
            claims=claims,
            notes=noted,
            runs_done=state.done,
            runs_kept=state.kept,
            runs_lost=state.lost,
            _frames={figure.figure.id: _data(figure) for figure in drawn},
            _charts={figure.figure.id: chart for figure, chart in zip(drawn, charts, strict=True) if chart is not None},
        )


def _check_names(study: Definition, known: set[str]) -> None:
    """Refuse names of expressions that no run has; `known` has those that do not come from the study file."""
    found: list[Problem] = []
    known = known | study.names

    def check(names: Sequence[str], line: int | None, key: str) -> None:
        for name in names:
            if name not in known and len(found) < MAX_PROBLEMS:
                text = f'no metric "{shown(name)}"'
                found.append(problem(study.path, line, key, text, near(name, sorted(known))))

    for key, expression in study.metrics.items():
        check(expression.names, study.metric_lines[key], f"metrics.{key}")
        known.add(key)
    for figure in study.figures:
        if figure.kind != "cdf":
            check(figure.metric.names, figure.line, f"figures.{figure.id}.metric")
        for reference in figure.references:
            check(reference.expression.names, figure.line, f"figures.{figure.id}.reference")
    for claim in study.claims:
        condition = None if claim.testable is None else claim.testable.measure
        if claim.by_workload is not None:
            check(claim.by_workload.names, claim.line, f"claims.{claim.id}.by_workload")
        if claim.against is not None:
            check(claim.against.names, claim.line, f"claims.{claim.id}.correlated.against")
        for what, measure in (("measure", claim.measure), ("baseline", claim.baseline), ("testable", condition)):
            if isinstance(measure, Measure):
                check(measure.metric.names, claim.line, f"claims.{claim.id}.{what}.metric")
    if found:
        raise StudyError(found)


def _noted(results: Results) -> list[dict[str, Any]]:
    """The notes of the runs by code, as in claims.json."""
    return [
        {
            "severity": one.note.severity,
            "code": one.note.code,
            "count": len(one.runs),
            "of": len(results.notes),
            "where": results.where(one.runs),
            "text": one.note.text,
            "runs": list(one.runs),
        }
        for one in results.gathered()
    ]


def _measured(state: State) -> Mapping[str, Any]:
    """Measurements of the execution, in a file of their own because they differ between equal studies."""
    import time

    wall_s = time.monotonic() - state.begin_s
    return {
        "runs_done": state.done,
        "runs_kept": state.kept,
        "runs_lost": state.lost,
        "wall_s": round(wall_s, 3),
        "runs_cpu_s": round(state.cpu_s, 3),
        "runs_wall_s": round(sum(state.walls_s), 3),
        "idle_share": round(state.idle_share, 4),
        "workers": sorted(state.workers),
    }


def _data(drawn: Drawn) -> pl.DataFrame:
    import polars as pl

    rows = [
        (panel.title, curve.name, x, y, *(interval or (None, None)), curve.is_reference)
        for panel in drawn.panels
        for curve in panel.curves
        for x, y, interval in zip(curve.x, curve.y, curve.intervals or [None] * len(curve.x), strict=True)
    ]
    kinds = {"low": pl.Float64, "high": pl.Float64}
    names = ["panel", "series", "x", "y", "low", "high", "is_reference"]
    return pl.DataFrame(rows, schema=names, schema_overrides=kinds, orient="row")


def find(source: str | os.PathLike[str]) -> Path:
    """The file of a study: `source` is its path, its folder, or the name of a study.

    A name is that of a folder in studies/ of the current directory, or of a study that comes with nandlab; behind it
    another file of the folder may be named (`laldpc/real.toml`).
    """
    path = Path(source)
    for place in (path, Path("studies") / path, shipped.STUDIES / path):
        if place.is_file():
            return place
        if (place / "study.toml").is_file():
            return place / "study.toml"
    if path.suffix == ".toml":
        raise OutputError(f"no study {path}{near_specs(path)}")
    there = {entry.parent.name for entry in Path("studies").glob("*/study.toml")} | set(shipped.studies())
    raise OutputError(f"no study {path}\n  remedy: {near(path.name, sorted(there))}; or name a file or its folder")


__all__ = ["Study", "StudyResult", "Verdict", "find"]
