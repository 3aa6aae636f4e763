"""Builds the wheel and the source distribution, and proves the wheel where there is no Rust.

    python tools/wheel.py FOLDER

FOLDER gets both files. The wheel is then installed in an empty virtual environment with the packages that it asks for,
and with a search path on which there is neither Cargo nor a compiler, and runs an example; and the platform in its name
is the one that auditwheel finds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution."""
    command = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--sdist", "--out", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    (wheel,) = folder.glob("nandlab-*.whl")
    (source,) = folder.glob("nandlab-*.tar.gz")
    return wheel, source


def platform_of(wheel: Path) -> str:
    """The platform that auditwheel finds; raises `SystemExit` if the name of the wheel has another one."""
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r'platform\s+tag: "([^"]+)"', " ".join(said.split()))
    if found is None:
        raise SystemExit(f"auditwheel names no platform:\n{said}")
    if found[1] not in wheel.stem.rpartition("-")[2].split("."):
        raise SystemExit(f"{wheel.name}: auditwheel finds {found[1]}")
    return found[1]


def prove(wheel: Path) -> None:
    """Install the wheel in an empty environment without Rust, and run an example."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "env", with_pip=True)
        python = folder / "env" / "bin" / "python"
        # Nothing of this environment, and nothing that compiles.
        environment = {"PATH": str(folder / "env" / "bin"), "HOME": name}
        environment |= {key: value for key, value in os.environ.items() if key.startswith("PIP_")}

        def call(*command: str | Path) -> str:
            done = subprocess.run(
                [str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True
            )
            if done.returncode != 0:
                raise SystemExit(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
            return done.stdout

        call(python, "-m", "pip", "install", "--only-binary", ":all:", f"{wheel}[figures]")
        nandlab = folder / "env" / "bin" / "nandlab"
        call(nandlab, "examples", "small")
        summary = json.loads(call(nandlab, "run", "small.toml", "--out", "r", "--json"))
        call(nandlab, "report", "r")
        place = call(python, "-c", "import nandlab; print(nandlab.__file__)").strip()
        if not Path(place).is_relative_to(folder) or not summary["complete"]:
            raise SystemExit(f"the example did not run from the wheel, but from {place}")


def main() -> None:
    """Build, prove and say what is there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("nandlab-*.whl"), *folder.glob("nandlab-*.tar.gz")):
        old.unlink()
    wheel, source = build(folder)
    if sys.platform == "linux":
        print(f"platform: {platform_of(wheel)}, as auditwheel finds")
    prove(wheel)
    print(f"installed without Rust, and an example ran\n{wheel}\n{source}")


if __name__ == "__main__":
    main()
