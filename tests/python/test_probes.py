"""A drive is compiled once for each type of its probe. Product code has two: `NoProbe` and the set `Taps`."""

import re
from pathlib import Path

from test_rooms import code

CRATES = Path(__file__).parents[2] / "crates"


def sources() -> dict[str, str]:
    """The product code of the core and of the binding, by file."""
    files = [path for crate in ("nandlab", "nandlab-py") for path in sorted((CRATES / crate / "src").rglob("*.rs"))]
    files = [path for path in files if path.name not in ("tests.rs", "testing.rs")]
    return {str(path.relative_to(CRATES)): code(path) for path in files}


def found(pattern: str) -> set[tuple[str, str]]:
    return {(file, match) for file, text in sources().items() for match in re.findall(pattern, text)}


def test_product_code_has_two_types_of_drive() -> None:
    # `P` is the probe of generic code.
    assert {probe for _, probe in found(r"\bDrive<([^>]+)>")} == {"P", "NoProbe", "Taps", "P: Probe = NoProbe"}
    # The probe may also be inferred from an argument.
    built = found(r"\b(?:with_probe|Drive::build)\(([^)]*)\)")
    assert built == {
        ("nandlab/src/drive/mod.rs", "spec: &Spec, probe: P"),
        ("nandlab/src/drive/mod.rs", "spec, NoProbe"),
        ("nandlab-py/src/any_drive.rs", "spec, policies, NoProbe"),
        ("nandlab-py/src/any_drive.rs", "spec, policies, taps"),
    }


def test_the_binding_names_the_types_of_its_drives_in_one_place() -> None:
    named = {file for file, text in sources().items() if re.search(r"\b(NoProbe|Taps)\b", text)}
    assert {file for file in named if file.startswith("nandlab-py/")} == {"nandlab-py/src/any_drive.rs"}


def test_further_observers_are_no_probes_of_their_own_drives() -> None:
    # An observer that is added here joins the set.
    assert {probe for _, probe in found(r"\bimpl.*\bProbe for (\S+)")} == {
        *("NoProbe", "Oracle", "Timeline", "Taps"),
        *("Explainer", "Versions"),
    }
