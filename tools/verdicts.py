"""The tables of verdicts in the READMEs of the studies, from the results of the studies.

python tools/verdicts.py keep FOLDER...   takes the claims of finished studies (out/laldpc) into verdicts.json in the
                                          folder of the study, and writes the tables
python tools/verdicts.py write            writes the tables
python tools/verdicts.py check            fails when a table is not that of verdicts.json, or a claim has no verdict

The README of a study has a table for each of its files between `<!-- verdicts: FILE -->` and
`<!-- end of verdicts -->`.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

STUDIES = Path(__file__).parents[1] / "studies"
KEPT = "verdicts.json"
_BEGIN, _END = "<!-- verdicts: {} -->", "<!-- end of verdicts -->"
#: The keys of a claim that are kept.
_KEYS = (
    *("id", "what", "source", "headline", "reported", "tolerance", "measured", "interval", "seeds", "direction"),
    *("baseline", "verdict", "reason", "ranges", "deviation", "kind", "slope", "over", "against", "steps"),
    *("workloads_for", "workloads_against"),
)


def number(value: float | None) -> str:
    """A number as short text."""
    return "-" if value is None else f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def keep(result: Path) -> Path:
    """Takes the claims of a finished study into the `verdicts.json` of its folder."""
    judged = json.loads((result / "claims.json").read_text(encoding="utf-8"))
    if judged["smoke"]:
        raise SystemExit(f"{result}: smoke size\n  remedy: run the study at full size")
    for file in sorted(STUDIES.glob("*/*.toml")):
        if _name(file) == judged["study"]:
            break
    else:
        raise SystemExit(f"{result}: no file in {STUDIES.name}/ is the study {judged['study']}")
    kept = file.parent / KEPT
    table = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    claims = [{key: claim[key] for key in _KEYS if claim.get(key) not in (None, "")} for claim in judged["claims"]]
    for claim in claims:
        claim["workloads"] = _by_verdict(next(c for c in judged["claims"] if c["id"] == claim["id"])["workloads"])
    table[file.name] = claims
    text = json.dumps(dict(sorted(table.items())), indent=1, ensure_ascii=False)
    kept.write_text(text + "\n", encoding="utf-8")
    return file.parent


def _by_verdict(workloads: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in workloads:
        found[one["verdict"]] = found.get(one["verdict"], 0) + 1
    return found


def _claims(file: Path) -> list[dict[str, Any]]:
    """The claims of a study file, whose traces need not be there."""
    found: list[dict[str, Any]] = tomllib.loads(file.read_text(encoding="utf-8")).get("claims", [])
    return found


def _name(file: Path) -> str:
    study = tomllib.loads(file.read_text(encoding="utf-8")).get("study", {})
    own = file.parent.name if file.stem == "study" else file.stem
    return str(study.get("name", own)) if study else ""


def row(claim: Mapping[str, Any]) -> str:
    """The row of a claim."""
    what = claim["what"]
    cells = (f"**{what}**" if claim.get("headline") else what, reported(claim), measured(claim), verdict(claim))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in (*cells, claim.get("source", ""))) + " |"


def reported(claim: Mapping[str, Any]) -> str:
    """What the source reports."""
    if "slope" in claim:
        return f"{claim['slope']} with {claim.get('over') or claim.get('against')}"
    if claim.get("kind") == "most":
        return f"{claim['direction']} {number(claim.get('baseline'))} in most workloads"
    if "reported" not in claim:
        return f"{claim.get('direction', '')} {number(claim.get('baseline'))}".strip()
    tolerance = f" \u00b1 {claim['tolerance']:.3g}" if claim.get("tolerance") else ""
    return number(claim["reported"]) + tolerance


def measured(claim: Mapping[str, Any]) -> str:
    """The measured value with its interval, the steps of a slope, or the number of workloads."""
    if "steps" in claim:
        steps = (
            f"{step['from']} to {step['to']}: {number(step['difference'])}{_interval(step)}" for step in claim["steps"]
        )
        return "; ".join(steps) or "-"
    if claim.get("kind") == "most":
        of = sum(claim["workloads"].values())
        return f"for {claim.get('workloads_for', 0)}, against {claim.get('workloads_against', 0)} of {of}"
    return number(claim.get("measured")) + _interval(claim)


def _interval(of: Mapping[str, Any]) -> str:
    ends = of.get("interval")
    return "" if ends is None else f" [{number(ends[0])}, {number(ends[1])}]"


def verdict(claim: Mapping[str, Any]) -> str:
    """The verdict, and why."""
    text = str(claim["verdict"])
    over = claim.get("ranges")
    if over:
        text += f" ({over['reproduced']} of {over['points']} points of the ranges, {number(over['lowest'])} to "
        text += f"{number(over['highest'])})"
    why = ". ".join(part.rstrip(".") for part in (claim.get("reason", ""), claim.get("deviation", "")) if part)
    return f"{text}: {why}" if why else text


def tables(folder: Path) -> str | None:
    """The README of a study with its tables; `None` for a study without kept verdicts."""
    kept, readme = folder / KEPT, folder / "README.md"
    if not kept.exists():
        return None
    text = readme.read_text(encoding="utf-8")
    for name, claims in json.loads(kept.read_text(encoding="utf-8")).items():
        begin = _BEGIN.format(name)
        if text.count(begin) != 1:
            raise SystemExit(f"{readme}: expected {begin} once, found it {text.count(begin)} times")
        before, rest = text.split(begin)
        _, _, after = rest.partition(_END)
        rows = [row(claim) for claim in claims]
        table = "\n".join(["| claim | reported | measured | verdict | source |", "|---|---|---|---|---|", *rows])
        text = f"{before}{begin}\n\n{table}\n\n{_END}{after}"
    return text


def faults(folder: Path) -> list[str]:
    """What is out of date in the folder of a study."""
    wanted = tables(folder)
    kept = json.loads((folder / KEPT).read_text(encoding="utf-8")) if wanted is not None else {}
    found = [
        f"{folder.name}/{file.name}: its claims have no verdicts in {KEPT}"
        for file in sorted(folder.glob("*.toml"))
        if file.name not in kept and _claims(file)
    ]
    if wanted not in (None, (folder / "README.md").read_text(encoding="utf-8")):
        found.append(f"{folder.name}: README.md")
    for name, claims in kept.items():
        there = {claim["id"]: claim for claim in claims}
        now = {claim["id"]: claim for claim in _claims(folder / name)}
        for one in sorted(there.keys() ^ now.keys()):
            found.append(f"{folder.name}/{name}: claim {one} is in only one of the study and {KEPT}")
        for one in there.keys() & now.keys():
            for key, named in (("what", "what"), ("source", "source"), ("reported", "value")):
                if there[one].get(key) != now[one].get(named):
                    found.append(f"{folder.name}/{name}: claim {one} has another {key} in {KEPT}")
    return found


def main(arguments: Sequence[str]) -> None:
    """Run the command."""
    verb, *given = arguments or ("",)
    folders = sorted(path.parent for path in STUDIES.glob("*/README.md"))
    if verb == "keep" and given:
        folders = sorted({keep(Path(result)) for result in given})
    elif given or verb not in ("write", "check"):
        raise SystemExit(__doc__)
    if verb == "check":
        found = [fault for folder in folders for fault in faults(folder)]
        if found:
            remedy = "run the study, then `python tools/verdicts.py keep out/NAME`"
            raise SystemExit("\n".join([*found, f"  remedy: {remedy}"]))
        return
    for folder in folders:
        text = tables(folder)
        if text is not None:
            (folder / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
