"""What comes with the package: `nandlab examples`, `nandlab doctor`, studies by name from any folder, and the wheel."""

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import forks
import pytest
from conftest import NANDLAB

ROOT = Path(__file__).parents[2]


def command(*arguments, cwd, python=NANDLAB):
    run = forks.run if python is NANDLAB else subprocess.run
    return run([*python, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=120)


def test_examples_lists_everything_and_copies_without_replacing(tmp_path):
    listed = {row["name"]: row for row in json.loads(command("examples", "--json", cwd=tmp_path).stdout)}
    assert {path.stem for path in (ROOT / "examples").glob("*.*")} <= set(listed)
    assert {f"studies/{path.parent.name}" for path in (ROOT / "studies").glob("*/study.toml")} <= set(listed)
    assert {f"presets/{path.stem}" for path in (ROOT / "presets").glob("*.toml")} <= set(listed)
    assert all(row["description"] for row in listed.values())

    copied = command("examples", "small", "--to", "my", cwd=tmp_path)
    assert copied.stdout.strip() == "my/small.toml"
    assert (tmp_path / "my" / "small.toml").read_bytes() == (ROOT / "examples" / "small.toml").read_bytes()
    # An example names the sample trace that it needs.
    trace = command("examples", "trace", "--to", "my", cwd=tmp_path)
    assert trace.stdout.splitlines() == ["my/trace.toml", "it needs oltp.csv beside it: nandlab examples oltp.csv"]
    command("examples", "oltp.csv", "--to", "my", cwd=tmp_path)
    assert (tmp_path / "my" / "oltp.csv").read_bytes() == (ROOT / "examples" / "oltp.csv").read_bytes()
    again = command("examples", "small", "--to", "my", cwd=tmp_path)
    assert again.returncode == 2 and "is not replaced" in again.stderr and "--to" in again.stderr
    wrong = command("examples", "smal", cwd=tmp_path)
    assert wrong.returncode == 2 and "did you mean small?" in wrong.stderr


def test_a_study_is_found_by_its_name_from_any_folder_and_its_copy_comes_first(tmp_path):
    shipped = command("study", "read-reclaim", "--check", cwd=tmp_path)
    assert shipped.returncode == 0, shipped.stderr
    command("examples", "studies/read-reclaim", "--to", "studies", cwd=tmp_path)
    own = tmp_path / "studies" / "read-reclaim" / "study.toml"
    own.write_text(own.read_text() + "\n[nothing]\n")
    changed = command("study", "read-reclaim", "--check", cwd=tmp_path)
    assert changed.returncode == 2 and "studies/read-reclaim/study.toml" in changed.stderr


def test_doctor_says_what_works_and_what_is_missing(tmp_path):
    found = json.loads(command("doctor", "--json", cwd=tmp_path).stdout)
    states = {check["what"]: check["state"] for check in found["checks"]}
    assert found["works"] and states["simulator"] == states["a run"] == "ok"
    # The environment of the tests has everything.
    assert [name for name, state in states.items() if state != "ok"] == []
    hidden = [sys.executable, "-c", "import sys; sys.modules['altair'] = None; from nandlab.cli import main; main()"]
    assert command("doctor", cwd=tmp_path, python=hidden).returncode == 0


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The Python of an empty environment with the wheel. Other distributions are those of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--out", str(folder)]
    if not (ROOT / "target" / "release").is_dir():
        pytest.skip("the extension module has not been built with `make build`")
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=600)
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    (wheel,) = folder.glob("*.whl")
    place = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(place, check=True, capture_output=True, timeout=120)
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    # A path file in this folder is not read again, so that the checkout is not found through it.
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_the_wheel_works_in_an_environment_of_its_own(installed, tmp_path):
    nandlab = [str(installed.parent / "nandlab")]
    facts = json.loads(command("doctor", "--json", cwd=tmp_path, python=nandlab).stdout)
    assert Path(facts["folder"]).is_relative_to(installed.parents[1])
    assert facts["works"]
    package = Path(facts["folder"]) / "shipped"
    for folder in ("examples", "presets", "studies"):
        kept = {path.relative_to(package / folder) for path in (package / folder).rglob("*.toml")}
        assert kept == {path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob("*.toml")}
        assert not (package / folder).is_symlink()
    assert command("examples", "small", cwd=tmp_path, python=nandlab).returncode == 0
    few = ("--set", "workload.synthetic.requests=1000")
    done = command("run", "small.toml", *few, "--out", "out", cwd=tmp_path, python=nandlab)
    assert done.returncode == 0, done.stderr
    report = command("report", "out", cwd=tmp_path, python=nandlab)
    assert report.returncode == 0, report.stderr
    study = command("study", "read-reclaim", "--check", cwd=tmp_path, python=nandlab)
    assert study.returncode == 0, study.stderr
