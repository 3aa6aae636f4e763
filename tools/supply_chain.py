"""Checks the dependencies of nandlab (licences, sources, known vulnerabilities), and writes the third-party notices.

python tools/supply_chain.py check      fails on a dependency that is not allowed; part of `make check`
python tools/supply_chain.py notices    rewrites THIRD-PARTY-NOTICES.txt

deny.toml has the rules. A known vulnerability fails the check, with or without a fixed version. A vulnerability that
does not concern nandlab is listed with a reason: for a crate in deny.toml, for a Python distribution in ACCEPTED. A
check whose data is not available (no network, a registry without advisories) prints a line and does not fail.
"""

import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Collection, Mapping
from importlib.metadata import PackageMetadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTICES = ROOT / "THIRD-PARTY-NOTICES.txt"
REQUIREMENTS = ROOT / "requirements.txt"

# The only registry, by its name in the lock file.
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"

# Linked crates with native code. Manifests do not cover it, so its licences were read in the sources.
NATIVE = {
    "liblzma-sys": "liblzma of XZ Utils is compiled in, under 0BSD",
    "pyo3": "none: Python is the program that loads the module",
    "pyo3-ffi": "none: Python is the program that loads the module",
    "zstd-sys": "zstd is compiled in, without dictionary builder and old formats, under BSD-3-Clause (or GPL-2.0)",
}

# Further permissive licences for Python distributions, which are not linked in.
PYTHON_ALLOWED = {"BSD-2-Clause", "CC0-1.0", "MIT-CMU", "PSF-2.0"}

# SPDX expressions for distributions that have only a classifier.
CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}

# Advisories on pinned distributions that do not concern nandlab: id and reason.
ACCEPTED: dict[str, str] = {}

# The oldest cargo-deny that is known to read this lock file and deny.toml.
CARGO_DENY = (0, 20)

Package = dict[str, Any]


def is_allowed(expression: str, allowed: Collection[str]) -> bool:
    """Whether allowed licences satisfy an SPDX expression; raises `ValueError` for any other text.

    A licence WITH an exception is allowed only as a whole. `/` is cargo's old spelling of OR.
    """
    tokens = re.findall(r"[()/]|[^\s()/]+", expression)

    def take() -> str:
        return tokens.pop(0) if tokens else ""

    def name() -> str:
        token = take()
        if not re.fullmatch(r"[A-Za-z0-9.+:-]+", token) or token.upper() in ("AND", "OR", "WITH"):
            raise ValueError(f"not an SPDX expression: {expression!r}")
        return token

    def atom() -> bool:
        if tokens[:1] == ["("]:
            take()
            met = any_of()
            if take() != ")":
                raise ValueError(f"not an SPDX expression: {expression!r}")
            return met
        licence = name()
        if tokens[:1] == ["WITH"]:
            take()
            licence += f" WITH {name()}"
        return licence in allowed

    def all_of() -> bool:
        met = atom()
        while tokens[:1] == ["AND"]:
            take()
            met = atom() and met
        return met

    def any_of() -> bool:
        met = all_of()
        while tokens[:1] in (["OR"], ["/"]):
            take()
            met = all_of() or met
        return met

    met = any_of()
    if tokens:
        raise ValueError(f"not an SPDX expression: {expression!r}")
    return met


def licence_problem(what: str, expression: str, allowed: Collection[str]) -> list[str]:
    """The problem with the licence of a dependency, if any."""
    try:
        if is_allowed(expression, allowed):
            return []
    except ValueError:
        pass
    return [f"{what}: licence {expression or '(none named)'} is not allowed"]


def rules() -> dict[str, Any]:
    """The rules in deny.toml."""
    return tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))


def clarifications() -> dict[str, Any]:
    """The clarifications of incomplete manifests, by crate."""
    return {entry["crate"]: entry for entry in rules()["licenses"].get("clarify", [])}


# Crates


def cargo(*arguments: str) -> str:
    """The output of a cargo command."""
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def crates() -> list[Package]:
    """All crates of the lock file, including those for building and testing."""
    packages: list[Package] = json.loads(cargo("metadata", "--format-version", "1", "--locked"))["packages"]
    for package in packages:
        clarified = clarifications().get(package["name"], {}).get("expression")
        package["license"] = clarified or package["license"] or ""
    return packages


def linked(packages: list[Package]) -> list[Package]:
    """The third-party crates that are linked into the extension module on a platform of deny.toml.

    `cargo tree` resolves them, because the graph of `cargo metadata` includes features that only tests enable.
    """
    targets = [argument for target in rules()["graph"]["targets"] for argument in ("--target", target)]
    edges = ["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]
    lines = cargo("tree", "--locked", "--package", "nandlab-py", *edges, *targets).splitlines()
    names = {tuple(line.split()[:2]) for line in lines if line}
    found = [p for p in packages if p["source"] and (p["name"], f"v{p['version']}") in names]
    return sorted(found, key=lambda p: (p["name"], p["version"]))


def crate_problems(packages: list[Package], allowed: Collection[str]) -> list[str]:
    """The crates with a licence or source that is not allowed."""
    problems = []
    for package in packages:
        what = f"crate {package['name']} {package['version']}"
        problems += licence_problem(what, package["license"], allowed)
        if package["source"] not in (None, CRATES_IO):
            problems.append(f"{what}: comes from {package['source']}, not from crates.io")
    return problems


def native_problems(packages: list[Package]) -> list[str]:
    """The linked crates with native code that are not in NATIVE."""
    return [
        f"crate {p['name']}: contains native code: read its licence and add the crate to NATIVE ({Path(__file__).name})"
        for p in packages
        if p["links"] and p["name"] not in NATIVE
    ]


# Notices


def licence_texts(package: Package) -> list[str]:
    """The licence and copyright files that a crate ships."""
    folder = Path(package["manifest_path"]).parent
    named = re.compile(r"(licen[cs]e|unlicense|copying|copyright|notice)", re.IGNORECASE)
    files = sorted(path for path in folder.iterdir() if path.is_file() and named.match(path.name))
    clarified = clarifications().get(package["name"], {})
    files += [folder / entry["path"] for entry in clarified.get("license-files", [])]
    if not files:
        raise SystemExit(f"crate {package['name']} ships no licence text")
    return [path.read_text(encoding="utf-8") for path in files]


def notices(packages: list[Package]) -> str:
    """The text of THIRD-PARTY-NOTICES.txt. It depends on the lock file and deny.toml, not on the machine."""
    texts: dict[str, tuple[str, list[str]]] = {}  # by words: the text, and its crates
    for package in packages:
        for text in licence_texts(package):
            owners = texts.setdefault(" ".join(text.split()), (text, []))[1]
            if package["name"] not in owners:
                owners.append(package["name"])
    width = max(len(f"{p['name']} {p['version']}") for p in packages)
    lines = [
        "Third-party notices of nandlab",
        "==============================",
        "",
        "The compiled module nandlab._core has the crates below linked in, each under the licence beside it; where",
        "there is a choice (OR), any will do. Rust's standard library is linked in too, under MIT OR Apache-2.0; its",
        "copyrights are its contributors', and the Rust distribution has its notices.",
        "",
        "The Python packages that nandlab runs with are not part of it: they are installed beside it, each under its",
        "own licence.",
        "",
        "This file is made by `python tools/supply_chain.py notices` from Cargo.lock and the sources of the crates.",
        "",
        "",
        "Crates",
        "------",
        "",
        *(f"{p['name'] + ' ' + p['version']:<{width}}  {p['license']}" for p in packages),
        "",
        "Native code in them:",
        "",
        *(f"{p['name']}: {NATIVE[p['name']]}" for p in packages if p["name"] in NATIVE),
    ]
    for text, owners in texts.values():
        title = textwrap.fill(", ".join(owners), 100, break_on_hyphens=False)
        lines += [
            "",
            "",
            title,
            "-" * min(100, len(title)),
            "",
            *(line.rstrip() for line in text.strip("\n").splitlines()),
        ]
    return "\n".join(lines) + "\n"


def notices_problems(packages: list[Package]) -> list[str]:
    """The problem of outdated notices, if any."""
    if NOTICES.exists() and NOTICES.read_text(encoding="utf-8") == notices(packages):
        return []
    return [f"{NOTICES.name} does not match Cargo.lock: run `python tools/supply_chain.py notices`"]


# Python distributions


def pins() -> dict[str, str]:
    """The distributions in requirements.txt with their versions."""
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))


def distribution_licence(metadata: PackageMetadata) -> str:
    """The SPDX expression of a distribution, or an equivalent from its classifiers."""
    fields: Mapping[str, str] = metadata.json  # type: ignore[assignment]
    for field in ("license_expression", "license"):
        text = fields.get(field, "")
        try:
            is_allowed(text, ())
        except ValueError:
            continue  # older metadata has a name in words, or the whole licence text
        return text
    classifiers = [c.split(" :: ")[-1] for c in fields.get("classifier", []) if c.startswith("License :: ")]
    return " AND ".join(CLASSIFIERS.get(c, c) for c in classifiers)


def python_problems(pinned: Mapping[str, str], allowed: Collection[str]) -> list[str]:
    """The Python distributions that have a licence that is not allowed, or are not installed as pinned."""
    problems = []
    for name, version in pinned.items():
        try:
            metadata = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:
            problems.append(f"Python distribution {name} {version}: pinned, but not installed")
            continue
        if metadata["Version"] != version:
            problems.append(f"Python distribution {name} {version}: pinned, but {metadata['Version']} is installed")
        problems += licence_problem(f"Python distribution {name} {version}", distribution_licence(metadata), allowed)
    return problems


# Known vulnerabilities


def skipped(what: str, why: str) -> None:
    """Print that a check was skipped."""
    print(f"skipped: {what}: {why}")


def audit_problems(report: dict[str, Any], accepted: Collection[str]) -> list[str]:
    """The vulnerabilities in a report of pip-audit that are not accepted."""
    problems = []
    unknown = [d["name"] for d in report["dependencies"] if "skip_reason" in d]
    if unknown:
        names = "any of the distributions" if len(unknown) == len(report["dependencies"]) else ", ".join(unknown)
        skipped("known vulnerabilities of Python distributions", f"the registry has no data on {names}")
    for distribution in report["dependencies"]:
        for found in distribution.get("vulns", []):
            if not {found["id"], *found.get("aliases", [])} & set(accepted):
                fixed = ", ".join(found["fix_versions"]) or "no version"
                what = f"Python distribution {distribution['name']} {distribution['version']}"
                problems.append(f"{what}: {found['id']}, fixed in {fixed}")
    return problems


def pip_audit() -> list[str]:
    """Known vulnerabilities of the pinned distributions."""
    what = "known vulnerabilities of Python distributions"
    if importlib.util.find_spec("pip_audit") is None:
        skipped(what, "pip-audit is not installed")
        return []
    options = ["--no-deps", "--disable-pip", "--timeout", "5", "--format", "json", "--aliases", "on"]
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(REQUIREMENTS), *options]
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=30)
        report = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        skipped(what, "no answer within 30 s")
    except json.JSONDecodeError:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        skipped(what, f"pip-audit has no data ({last.split('(')[0][:100].strip()})")
    else:
        return audit_problems(report, ACCEPTED)
    return []


def cargo_deny() -> list[str]:
    """The checks of deny.toml by cargo-deny."""
    version = subprocess.run(["cargo", "deny", "--version"], cwd=ROOT, capture_output=True, encoding="utf-8")
    if version.returncode:
        skipped("advisories on crates", "cargo-deny is not installed (`cargo install cargo-deny --locked`)")
        return []
    if tuple(int(part) for part in re.findall(r"\d+", version.stdout)[:2]) < CARGO_DENY:
        skipped("advisories on crates", f"{version.stdout.strip()} is too old (`cargo install cargo-deny --locked`)")
        return []
    checks = ["bans", "licenses", "sources"]
    try:
        subprocess.run(["cargo", "deny", "fetch", "db"], cwd=ROOT, check=True, capture_output=True, timeout=60)
        checks.append("advisories")
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        skipped("advisories on crates", "the advisory database cannot be reached")
    done = subprocess.run(["cargo", "deny", "--locked", "check", *checks], cwd=ROOT)
    return ["cargo deny check failed"] if done.returncode else []


def check() -> int:
    """Run all checks; returns the exit status."""
    allowed = set(rules()["licenses"]["allow"])
    packages = crates()
    inside = linked(packages)
    pinned = pins()
    problems = [
        *crate_problems(packages, allowed),
        *native_problems(inside),
        *python_problems(pinned, allowed | PYTHON_ALLOWED),
    ]
    if not problems:  # the notices list allowed crates only
        problems += notices_problems(inside)
    problems += cargo_deny() + pip_audit()
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(f"supply chain: {len(packages)} crates, {len(inside)} linked in; {len(pinned)} Python distributions")
    return 1 if problems else 0


def main() -> int:
    """Run the command; returns its exit status."""
    if sys.argv[1:] == ["check"]:
        return check()
    if sys.argv[1:] == ["notices"]:
        packages = linked(crates())
        if problems := native_problems(packages):
            raise SystemExit("\n".join(problems))
        NOTICES.write_text(notices(packages), encoding="utf-8", newline="\n")
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
