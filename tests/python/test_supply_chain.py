"""tools/supply_chain.py refuses licences, sources and vulnerabilities that are not accepted.

The third-party notices are up to date.
"""

import shutil
import tomllib
from pathlib import Path

import pytest
import supply_chain

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = {"MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "0BSD"}


def crate(**fields):
    return {"name": "x", "version": "1.0.0", "license": "MIT", "links": None, "source": supply_chain.CRATES_IO} | fields


def installed(folder, name, *lines):
    """Writes a Python distribution that consists only of its metadata."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    text = "\n".join(["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *lines])
    (info / "METADATA").write_text(text + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("expression", "met"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-3.0-only AND MIT", False),
        ("MIT/Apache-2.0", True),
        ("GPL-2.0-only OR MIT AND Apache-2.0", True),  # AND binds closer than OR
        ("MIT OR GPL-2.0-only AND LGPL-3.0-only", True),
        ("(MIT OR GPL-2.0-only) AND LGPL-3.0-only", False),
        ("(MIT OR GPL-2.0-only) AND (0BSD OR MPL-2.0)", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MIT WITH LLVM-exception", False),
        ("GPL-3.0-only WITH GCC-exception-3.1", False),
        ("Apache-2.0+", False),
        ("mit", False),
    ],
)
def test_a_licence_expression_is_met_only_by_allowed_licences(expression, met):
    assert supply_chain.is_allowed(expression, ALLOWED) is met


@pytest.mark.parametrize(
    "broken", ["", "MIT OR", "MIT AND AND MIT", "(MIT", "MIT)", "MIT Apache-2.0", "MIT WITH", "()"]
)
def test_an_invalid_licence_expression_is_refused(broken):
    with pytest.raises(ValueError, match="not an SPDX expression"):
        supply_chain.is_allowed(broken, ALLOWED)
    assert supply_chain.licence_problem("x", broken, ALLOWED)


def test_the_rules_allow_nothing_copyleft():
    allowed = set(supply_chain.rules()["licenses"]["allow"]) | supply_chain.PYTHON_ALLOWED
    assert not [
        licence for licence in allowed if "GPL" in licence or licence.startswith(("MPL", "EPL", "CDDL", "EUPL"))
    ]


@pytest.mark.parametrize("licence", ["GPL-3.0-or-later", "MIT AND LGPL-2.1-only", ""])
def test_a_crate_under_another_licence_is_refused(licence):
    assert not supply_chain.crate_problems([crate()], ALLOWED)
    [problem] = supply_chain.crate_problems([crate(license=licence)], ALLOWED)
    assert problem.startswith("crate x 1.0.0: licence ")


def test_a_crate_from_a_source_other_than_crates_io_is_refused():
    assert not supply_chain.crate_problems([crate(source=None)], ALLOWED)
    [problem] = supply_chain.crate_problems([crate(source="git+ssh://example.org/x")], ALLOWED)
    assert "not from crates.io" in problem


def test_unlisted_native_code_is_reported():
    assert not supply_chain.native_problems([crate(), crate(name="zstd-sys", links="zstd")])
    [problem] = supply_chain.native_problems([crate(links="readline")])
    assert "native code" in problem


@pytest.mark.parametrize(
    ("lines", "licence"),
    [
        (["License-Expression: MIT OR Apache-2.0"], "MIT OR Apache-2.0"),
        (["License: MIT"], "MIT"),
        (["License: Copyright (c) somebody", "Classifier: License :: OSI Approved :: MIT License"], "MIT"),
        (["License: LGPL-3.0", "Classifier: License :: OSI Approved :: MIT License"], None),
        (["License-Expression: GPL-3.0-only"], None),
        (["Classifier: License :: OSI Approved :: GNU General Public License v3 (GPLv3)"], None),
        ([], None),
    ],
)
def test_a_distribution_is_judged_by_its_metadata(tmp_path, monkeypatch, lines, licence):
    installed(tmp_path, "made-up", *lines)
    monkeypatch.syspath_prepend(tmp_path)
    problems = supply_chain.python_problems({"made-up": "1.0"}, ALLOWED)
    if licence:
        assert problems == []
        assert supply_chain.distribution_licence(supply_chain.importlib.metadata.metadata("made-up")) == licence
    else:
        assert len(problems) == 1 and "is not allowed" in problems[0]


def test_the_pinned_version_must_be_installed(tmp_path, monkeypatch):
    installed(tmp_path, "made-up", "License-Expression: MIT")
    monkeypatch.syspath_prepend(tmp_path)
    assert "but 1.0 is installed" in supply_chain.python_problems({"made-up": "2.0"}, ALLOWED)[0]
    assert "not installed" in supply_chain.python_problems({"never-made-up": "2.0"}, ALLOWED)[0]


def test_a_known_vulnerability_fails_unless_it_is_accepted(capsys):
    found = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": []}
    report = {"dependencies": [{"name": "made-up", "version": "1.0", "vulns": [found]}]}
    [problem] = supply_chain.audit_problems(report, ())
    assert "PYSEC-1" in problem
    assert not supply_chain.audit_problems(report, {"CVE-1": "the function is not called"})
    assert capsys.readouterr().out == ""


def test_distributions_without_audit_data_are_reported(capsys):
    unknown = {"name": "made-up", "skip_reason": "not found"}
    known = {"name": "other", "version": "1.0", "vulns": []}
    for dependencies, end_of_line in (
        ([unknown], "no data on any of the distributions\n"),
        ([unknown, known], "no data on made-up\n"),
    ):
        assert supply_chain.audit_problems({"dependencies": dependencies}, ()) == []
        out = capsys.readouterr().out
        assert out.startswith("skipped: ") and out.endswith(end_of_line)


def test_every_pin_is_read():
    lines = supply_chain.REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    assert len(supply_chain.pins()) == len([line for line in lines if line and not line.startswith("#")])


def test_the_notices_name_crates_of_the_lock_file():
    locked = {(p["name"], p["version"]) for p in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
    section = supply_chain.NOTICES.read_text(encoding="utf-8").split("Crates\n------\n\n")[1].split("\n\n")[0]
    named = {tuple(line.split()[:2]) for line in section.splitlines()}
    assert named and named <= locked


@pytest.mark.skipif(shutil.which("cargo") is None, reason="no cargo")
def test_the_notices_are_up_to_date_and_contain_no_local_paths():
    packages = supply_chain.linked(supply_chain.crates())
    assert supply_chain.notices_problems(packages) == []
    text = supply_chain.notices(packages)
    assert not [p["name"] for p in packages if str(Path(p["manifest_path"]).parent) in text]
    assert str(Path.home()) + "/" not in text
    packages[0]["version"] += ".1"
    assert supply_chain.notices_problems(packages)
