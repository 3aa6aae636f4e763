"""The presentation of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nandlab.presentation.model import Presentation, Row, Section, Table, counted
from nandlab.spec import toml_value

if TYPE_CHECKING:
    from nandlab.comparison import Comparison, Pair, Runs
    from nandlab.comparison.model import Setting

#: The most names of further values that a sentence lists.
_LISTED_MAX = 6
#: The most characters of a value in a title.
_TITLE_MAX = 24
#: The metrics in the table of keys that are changed alone.
_HEADLINE = ("iops", "latency_us.read.p99", "latency_us.write.p99", "waf", "energy_j")


def of_comparison(comparison: Comparison) -> Presentation:
    """The presentation of a comparison."""
    names = [one.name for one in comparison.runs]
    rows = tuple(Row(one.name, (_source(one), _seeds(one))) for one in comparison.runs)
    sections = [Section("Compared", Table(("compared; the first is the baseline", "from", "seed"), rows))]
    settings = tuple(Row(one.key, tuple(map(_value, one.values))) for one in comparison.settings)
    if settings:
        sections.append(Section("Set differently", Table(("set differently", *names), settings)))
    else:
        nothing = (
            "No key is set differently. `nandlab compare SPEC.toml KEY=VALUE` compares a spec with another value of a "
            "key.",
        )
        sections.append(Section("Set differently", sentences=nothing))
    same = _same_everywhere(comparison)
    for pair in comparison.pairs:
        sections += [_pair(pair, same, _only_values(comparison) or _heads(pair)), *_alone(pair)]
    sentences = list(_summary_of_same(comparison, same))
    if sentences:
        sections.append(Section("The same", sentences=tuple(sentences)))
    if not all(pair.same for pair in comparison.pairs):
        sections.append(Section("Method", sentences=comparison.method))
    return Presentation(
        name=_title(comparison),
        lead="",
        headline=(),
        failures=comparison.warnings,
        notes=comparison.notes,
        sections=tuple(sections),
    )


def _title(comparison: Comparison) -> str:
    """What is compared with what: the values of the only key that differs, else the names of the runs."""
    if values := _only_values(comparison):
        return f"{_outcome_settings(comparison)[0].key}: {values[1]} against {values[0]}"
    baseline, *others = (one.name for one in comparison.runs)
    return f"{', '.join(others)} against {baseline}"


def _outcome_settings(comparison: Comparison) -> list[Setting]:
    """The keys that differ and can have an effect."""
    return [one for one in comparison.settings if one.key != "seed" and not one.key.startswith("output.")]


def _only_values(comparison: Comparison) -> tuple[str, str] | None:
    """The values of the only key that differs between the baseline and the only other runs, if they are short."""
    settings = _outcome_settings(comparison)
    if len(settings) != 1 or len(comparison.pairs) != 1:
        return None
    old, new = map(_value, settings[0].values)
    return (old, new) if max(len(old), len(new)) <= _TITLE_MAX else None


def _source(one: Runs) -> str:
    return "memory" if one.path is None else str(one.path)


def _seeds(one: Runs) -> str:
    first, *others = one.seeds
    return f"{first} to {others[-1]}" if others else str(first)


def _value(value: object) -> str:
    if value is None:
        return "not set"
    return value if isinstance(value, str) else toml_value(value)


def _pair(pair: Pair, same: Sequence[str], heads: tuple[str, str]) -> Section:
    title = f"{pair.runs.name} against {pair.baseline.name}"
    return Section(title, _differences(pair, title, heads), sentences=tuple(_remarks(pair, same)))


def _differences(pair: Pair, title: str, heads: tuple[str, str]) -> Table | tuple[()]:
    shown = [one for one in pair.changes if not one.further and one.verdict != "same"]
    if not shown:
        return ()
    rows = [
        Row(one.words, (*one.shown_means, f"{one.change} ({one.interval})" if one.interval else one.change, one.judged))
        for one in shown
    ]
    change = "change (95 % interval)" if len(pair.runs.seeds) > 1 else "change"
    return Table((title, *heads, change, ""), tuple(rows))


def _names(pair: Pair) -> tuple[str, str]:
    return pair.baseline.name, pair.runs.name


def _heads(pair: Pair) -> tuple[str, str]:
    """The names of the runs as heads of columns, in short."""
    baseline, runs = _names(pair)
    return baseline if len(baseline) <= _TITLE_MAX else "baseline", runs if len(runs) <= _TITLE_MAX else "compared"


def _remarks(pair: Pair, same: Sequence[str]) -> Iterator[str]:
    names = " and ".join(_names(pair))
    seeds = " with every seed" if len(pair.runs.seeds) > 1 else ""
    keys = pair.effective_settings
    if pair.same and not pair.identical:
        yield (
            f"All {counted(len(pair.changes), 'outcome')} in summary.json of {names} are the same{seeds}, but other "
            "files differ, such as the series."
        )
        return
    if pair.same:
        had = f"{_listed(keys)}{', set together,' if len(keys) > 1 else ''} had no effect: " if keys else ""
        yield f"{had}{'a' if had else 'A'}ll results of {names} are the same to the byte{seeds}."
        return
    if len(keys) > 1 and not pair.alone:
        yield (
            f"{counted(len(keys), 'key')} differ; --one-at-a-time changes each of them alone, and finds those without "
            "effect."
        )
    equal = [one.words for one in pair.changes if not one.further and one.verdict == "same" and one.metric not in same]
    if equal:
        yield f"The same in {names}: {', '.join(equal)}."
    further = [one.metric for one in pair.changes if one.further and one.verdict != "same"]
    if further:
        yield f"{counted(len(further), 'further value')} of summary.json differ: {_listed(further)}; --json has all."
    for name, only in zip(_names(pair), (pair.only_baseline, pair.only_runs), strict=True):
        if only:
            yield f"Only in {name}: {_listed(only)}."


def _alone(pair: Pair) -> Iterator[Section]:
    """The keys changed alone: their effects on a few metrics, and the keys without effect."""
    if not pair.alone:
        return
    names = _names(pair)
    known = [one.in_baseline for one in pair.alone if one.in_baseline is not None]
    there = {one.metric: one.words for alone in known for one in alone.changes}
    shown = [name for name in _HEADLINE if name in there]
    rows = []
    for one in pair.alone:
        if one.in_baseline is not None:
            short = {change.metric: change.short for change in one.in_baseline.changes}
            rows.append(Row(f"{one.key} = {_value(one.value)}", tuple(short.get(name, "-") for name in shown)))
    sentences = []
    for one in pair.alone:
        if one.problem:
            sentences.append(f"{one.key} cannot be changed alone {one.problem}")
        elif one.in_baseline is not None and one.in_baseline.identical and one.has_effect:
            sentences.append(
                f"{one.key} has no effect alone in {names[0]}, but it has one in {names[1]}, together with other keys."
            )
    if pair.without_effect:
        sentences.append(
            f"No effect: {', '.join(pair.without_effect)}. Changed alone in {names[0]}, and set back alone in "
            f"{names[1]}, all results are the same to the byte with every seed."
        )
    elif all(one.has_effect for one in pair.alone):
        sentences.append("Each of these keys has an effect.")
    table = Table((f"one key at a time, in {names[0]}", *(there[name] for name in shown)), tuple(rows))
    yield Section(f"One key at a time, in {names[0]}", table if rows else (), sentences=tuple(sentences))


def _same_everywhere(comparison: Comparison) -> list[str]:
    """The metrics with words, and the further values, that are the same in all runs."""
    of = [{one.metric for one in pair.changes if one.verdict == "same"} for pair in comparison.pairs]
    return [one.metric for one in comparison.pairs[0].changes if one.metric in set.intersection(*of)]


def _summary_of_same(comparison: Comparison, same: Sequence[str]) -> Iterator[str]:
    """One line on the metrics that are the same in all runs."""
    if all(pair.same for pair in comparison.pairs):
        return
    equal = [one for one in comparison.pairs[0].changes if one.metric in same]
    words = [one.words for one in equal if not one.further and any(one.values)]
    zeros = sum(not one.further and not any(one.values) for one in equal)
    further = sum(one.further for one in equal)
    words += [f"{counted(zeros, 'metric')} that {'is' if zeros == 1 else 'are'} 0"] if zeros else []
    words += [counted(further, "further value")] if further else []
    if words:
        yield f"The same in all: {', '.join(words)}."


def _listed(names: Sequence[str]) -> str:
    """Names, or the first of them."""
    return ", ".join(names[:_LISTED_MAX]) + (", ..." if len(names) > _LISTED_MAX else "")
