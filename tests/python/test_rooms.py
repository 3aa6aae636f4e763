"""A room of the core imports only rooms below it; no mechanism imports another mechanism (ARCHITECTURE.md, "Rooms")."""

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "crates" / "nandlab" / "src"

# Rooms below and above the mechanisms, bottom up; the rooms of one line do not import each other.
BELOW = (("base",), ("flash",), ("sched",), ("probe",), ("ftl",), ("core",), ("host",))
ABOVE = (("drive",), ("report",), ("runner",))
OTHERS = {room for rooms in (*BELOW, *ABOVE) for room in rooms}
# Every other room is a mechanism.
MECHANISMS = tuple(sorted(path.name for path in SOURCE.iterdir() if path.is_dir() and path.name not in OTHERS))

STOREYS = (*BELOW, MECHANISMS, *ABOVE)
STOREY = {room: storey for storey, rooms in enumerate(STOREYS) for room in rooms}


def code(path: Path) -> str:
    """The text of a file without comments and unit tests."""
    text = re.sub(r"(?s)#\[cfg\(test\)\]\s*mod \w+ \{.*", "", path.read_text())
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))


def imports(room: str) -> dict[str, str]:
    """The rooms that `room` imports, each with a file that imports it."""
    found = {}
    for path in sorted((SOURCE / room).rglob("*.rs")):
        if path.name in ("tests.rs", "testing.rs"):
            continue
        text = code(path)
        names = re.findall(r"\bcrate::(\w+)", text)
        for group in re.findall(r"\bcrate::\{([^;]*?)\};", text):
            names += re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"\{[^{}]*\}", "", group))
        found.update({name: str(path.relative_to(SOURCE)) for name in names if name in STOREY and name != room})
    return found


def test_every_room_is_a_folder_and_a_mechanism_has_its_files() -> None:
    assert {path.name for path in SOURCE.iterdir() if path.is_dir()} >= OTHERS
    assert {path.name for path in SOURCE.iterdir() if path.is_file()} == {"lib.rs"}
    for mechanism in MECHANISMS:
        files = {path.name for path in (SOURCE / mechanism).iterdir()}
        assert {"mod.rs", "spec.rs", "stats.rs", "tests.rs"} <= files, mechanism


@pytest.mark.parametrize("room", STOREY)
def test_a_room_imports_only_rooms_below_it(room: str) -> None:
    upwards = {name: path for name, path in imports(room).items() if STOREY[name] >= STOREY[room]}
    assert not upwards, f"{room} imports {upwards}"


def test_only_drive_and_runner_import_mechanisms() -> None:
    for room in STOREY:
        if room in ("drive", "runner"):
            continue
        named = {name: path for name, path in imports(room).items() if name in MECHANISMS}
        assert not named, f"{room} imports {named}"


def test_only_the_drive_goes_outside_simulated_time() -> None:
    files = [path for path in SOURCE.rglob("*.rs") if path.name not in ("tests.rs", "testing.rs")]
    makers = {path.relative_to(SOURCE).parts[0] for path in files if "Offline::new(" in code(path)}
    assert makers == {"drive"}


# The packages of Python, bottom up: a package imports only packages before it. The modules beside them are the types of
# the results and what runs a drive; their methods that show a result import `presentation` and `reporting` when called.
PACKAGES = ("presentation", "reporting", "study", "comparison", "cli")
PYTHON = SOURCE.parents[2] / "python" / "nandlab"


def test_a_package_of_python_imports_only_packages_before_it() -> None:
    assert {path.name for path in PYTHON.iterdir() if (path / "__init__.py").exists()} >= set(PACKAGES)
    for number, package in enumerate(PACKAGES):
        for path in sorted((PYTHON / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            named = re.findall(r"^\s*(?:from|import) nandlab\.(\w+)", text, re.MULTILINE)
            for group in re.findall(r"^\s*from nandlab import ([^\n]+)", text, re.MULTILINE):
                named += re.findall(r"\w+", group)
            upwards = set(named) & set(PACKAGES[number + 1 :])
            assert not upwards, f"{path.relative_to(PYTHON)} imports {upwards}"
