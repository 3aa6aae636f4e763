"""Cautions: what makes a comparison mislead, and what the runs themselves note."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from nandlab._core import NandlabError, Spec
from nandlab.comparison.identity import identical
from nandlab.noted import first_sentence, gather
from nandlab.result_types import Note
from nandlab.results import RunResult
from nandlab.units import count, size

if TYPE_CHECKING:
    from nandlab.comparison.model import Runs, Setting


def warnings(runs: Sequence[Runs], settings: Sequence[Setting]) -> Iterator[Note]:
    """Reasons for which the differences are not the effect of the settings alone."""
    keys = [setting.key for setting in settings]
    workload = [key for key in keys if key.startswith("workload.")]
    requests = _by_run(runs, lambda result: count(result.summary.requests))
    differ = f"requests: {_told(runs, requests)}" if len(set(requests)) > 1 else ""
    if workload:
        yield _warning(
            "workloads-differ",
            f"the workloads differ ({', '.join(workload)}{'; ' * bool(differ)}{differ}): the ratios compare different "
            "work",
        )
    elif differ:
        yield _warning("requests-differ", f"the ratios compare different work ({differ})")
    if "seed" in keys:
        yield _warning(
            "seeds-differ",
            "the seeds differ: chance is a part of every difference; runs with several seeds (--seeds) show how large",
        )
    alike = [one.name for one in runs if len(one.results) > 1 and _all_identical(one.results)]
    if alike:
        yield _warning(
            "seeds-alike",
            f"the results are the same to the byte with every seed: {', '.join(alike)}; nothing in these runs is left "
            "to chance, and an interval says nothing about other workloads",
        )
    capacities = [_capacity(one.results[0]) for one in runs]
    if None not in capacities and len(set(capacities)) > 1:
        yield _warning(
            "capacities-differ",
            f"the drives offer different capacities ({_told(runs, list(map(size, capacities)))}): a synthetic workload "
            "has other addresses on each, and so has a trace with addresses beyond the smaller one",
        )
    versions = _by_run(runs, lambda result: result.summary.nandlab)
    if len(set(versions)) > 1:
        told = _told(runs, versions)
        yield _warning(
            "versions-differ", f"the runs are of different versions of nandlab ({told}): repeat the older ones"
        )
    incomplete = [name for name, results in _results(runs) if not all(result.complete for result in results)]
    if incomplete:
        yield _warning("incomplete", f"not complete, stopped before the end of the workload: {', '.join(incomplete)}")
    unsteady = [f"{name} ({verdicts})" for name, results in _results(runs) if (verdicts := _unsteady(results))]
    if unsteady:
        yield _warning(
            "not-steady",
            f"not in a steady state: {', '.join(unsteady)}; their numbers depend on fill and length",
        )
    failed = {name: sum(map(_failed, results)) for name, results in _results(runs)}
    if any(failed.values()):
        told = ", ".join(f"{name} {count(requests)}" for name, requests in failed.items())
        yield Note("error", "failed-requests", f"requests failed ({told}); latency and IOPS do not include them")


def notes(runs: Sequence[Runs], settings: Sequence[Setting]) -> Iterator[Note]:
    """The notes of the runs, each code once; what happened in neither is one sentence, unless its setting differs."""
    keys = {".".join(parts[:2]) for setting in settings if len(parts := setting.key.split(".")) > 1}

    def is_about(note: Note) -> bool:
        return any(re.search(rf"(?<![\w.]){re.escape(key)}(?!\w)", note.text) for key in keys)

    results = _results(runs)
    every = [((name, at), result.summary.notes) for name, of in results for at, result in enumerate(of)]
    shortened = []
    for one in gather(every):
        counts = Counter(name for name, _ in one.runs)
        whose = [
            name if counts[name] == len(of) else f"{name} ({counts[name]} of {len(of)} seeds)"
            for name, of in results
            if counts[name]
        ]
        note = next(filter(is_about, one.of.values()), one.note)
        told = f"{', '.join(whose)}: "
        if note.severity != "info" or is_about(note):
            yield Note(note.severity, note.code, told + note.text)
        # The warning on the steady state says that a run is too short.
        elif note.code != "too-short":
            shortened.append(Note(note.severity, note.code, told + first_sentence(note.text)))
    yield from shortened


def _warning(code: str, text: str) -> Note:
    return Note("warning", code, text)


def _results(runs: Sequence[Runs]) -> list[tuple[str, tuple[RunResult, ...]]]:
    return [(one.name, one.results) for one in runs]


def _by_run(runs: Sequence[Runs], value: Callable[[RunResult], str]) -> list[str]:
    return [", ".join(dict.fromkeys(map(value, results))) for _, results in _results(runs)]


def _told(runs: Sequence[Runs], values: Sequence[str]) -> str:
    return ", ".join(f"{one.name} {value}" for one, value in zip(runs, values, strict=True))


def _all_identical(results: Sequence[RunResult]) -> bool:
    return all(identical(results[0], other) for other in results[1:])


def _capacity(result: RunResult) -> int | None:
    """The logical capacity of the drive in bytes; `None` for a spec that this version does not read."""
    try:
        spec = Spec.load(result.spec_toml, "spec.toml", os.fspath(result.path or "."), [], unloaded=True)
        return spec.logical_bytes
    except NandlabError:
        return None


def _unsteady(results: Sequence[RunResult]) -> str:
    """The verdicts other than steady; empty without one."""
    found = (result.summary.steady_state for result in results)
    return " and ".join(sorted({judged.verdict for judged in found if judged is not None} - {"steady"}))


def _failed(result: RunResult) -> int:
    failed = result.summary.requests_failed
    return failed.uncorrectable + failed.worn_out + failed.power_lost
