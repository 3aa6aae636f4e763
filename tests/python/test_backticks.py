"""A name in backticks exists: in the documents, in the documentation of the Rust code and in docstrings.

The form of a text decides what it is and what is checked:

- `PATH/NAME.EXT`, `FOLDER/`, `NAME.EXT`: a file or folder, from the root of the repository, from the source of a crate
  or a package, or from a folder above the document. A bare file name may also be in a string of the code, such as that
  of a file that nandlab writes, and a folder the beginning of a string, such as a group of profiles.
- `Type::member` and other paths of Rust: the type is defined, and the member in a file that defines the type or
  implements something for it. Of a path only the last two names are a type and its member, the others are names.
- `section.key`: a key of the spec, or of a result, if the first name is a section of the spec. Of other dotted names
  each one is a name.
- `[section]`: a section or a table of a spec or of a study file.
- `nandlab ...`, `make ...`, `--option`: the command or target exists, and each option.
- `name`, `name()`, `name!`, `kebab-name`: an identifier of the code, or a word of a string of the code.
- `key = value`: the key is checked as above.

Everything else is skipped: texts with spaces, numbers, values, formulas, generated or invented names of an example
(`EXAMPLES`), places outside the repository (they begin with /, ~ or $),
paths with a placeholder (`ROOM/mod.rs`), and what nandlab writes to (`out/`).
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__)
CRATES = tuple(
    f"crates/{crate}/src" for crate in ("nandlab", "nandlab-base", "nandlab-ldpc", "nandlab-trace", "nandlab-py")
)
#: Folders from which a path may begin.
BASES = ("", *CRATES, "python/nandlab", "python/nandlab/reporting", "studies", "crates/nandlab", "crates/nandlab-trace")
FOLDERS = ("crates", "docs", "examples", "fuzz", "presets", "python", "studies", "tests", "tools", ".ci")
SUFFIX = re.compile(r"\.(rs|pyi?|md|toml|json|html|js|css|csv|txt|parquet|sh|yml|lock|so|svg|png|pdf|zst|gz)$")

#: Names that recipes and examples invent, and names of other programs, libraries and languages.
EXAMPLES = frozenset(
    (
        "windowed_greedy",
        "windowed-greedy",
        "windowed_greedy.rs",
        "crates/nandlab/src/background/gc/windowed_greedy.rs",
        "known_errors_evicted",
        "mine.csv",
        "mine.toml",
        "windowed.py",
        "c0.d3.p1.b120.pg7",
        "hw/femu/docs/modes/blackbox.md",
        "hw/femu/docs/concepts/timing-model.md",
        "ssd_config.h",
        "conv_ftl.c",
        "config/sample.xml",
        "ssdmodel/ssd_clean.c",
        "ssdmodel/ssd_timing.c",
        "Time_Unit",
        "Use_Copyback_for_GC",
        "HOST_DISK",
        "oltp_read_write",
        "oltp_update_non_index",
        "Len_fix",
    )
)


def sources(*suffixes: str) -> Iterator[Path]:
    """The files of the repository with these suffixes, without this one."""
    for folder in FOLDERS:
        for suffix in suffixes:
            found = (ROOT / folder).rglob(f"*{suffix}")
            yield from (path for path in found if path != HERE and "target" not in path.parts)


# What exists.


@functools.cache
def files() -> tuple[frozenset[str], frozenset[str]]:
    """The files and folders of the repository by their paths, and the names of the files."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
    paths += [path for path in ROOT.iterdir() if path.is_file() or path.name in FOLDERS]
    return frozenset(str(path.relative_to(ROOT)) for path in paths), frozenset(path.name for path in paths)


RUST_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|r#"(.*?)"#|"((?:[^"\\]|\\.)*)"|\'(?:[^\'\\]|\\.)\'', re.DOTALL)
PYTHON_TOKEN = re.compile(
    r'#[^\n]*|"""(.*?)"""|\'\'\'(.*?)\'\'\'|"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'', re.DOTALL
)
TYPE = re.compile(r"\b(?:struct|enum|trait|union|type|mod|impl|for)\b([^{;=(]*)")
DEFINED = re.compile(
    r"\b(?:(?:const\s+)?fn|const|static|type|mod|struct|enum|trait)\s+(\w+)|\b(\w+)\s*:(?!:)|^\s*([A-Z]\w*)\b", re.M
)


class Code:
    """The identifiers of the code, the words of its strings, and the types with their members."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.words: set[str] = set()
        self.strings: list[str] = []
        #: Names of files in strings.
        self.written: set[str] = set()
        self.members: dict[str, set[str]] = {}
        for path in sources(".rs"):
            code = self._without(RUST_TOKEN, path.read_text())
            self.names.update(re.findall(r"[A-Za-z_]\w*", code))
            defined = {name for found in DEFINED.findall(code) for name in found if name}
            for head in TYPE.findall(code):
                for name in re.findall(r"\w+", head):
                    self.members.setdefault(name, set()).update(defined)
        for path in sources(".py", ".pyi", ".js"):
            self.names.update(re.findall(r"[A-Za-z_]\w*", self._without(PYTHON_TOKEN, path.read_text())))
        for text in self.strings:
            self.written.update(re.findall(r"[\w-]+\.\w+(?!\w)", text))
            if not re.search(r"\s", text):
                self.words.update(re.findall(r"[A-Za-z_][\w-]*", text))
                self.words.update(re.findall(r"[A-Za-z]\w*", text))
        for path in [*sources(".toml", ".json"), *ROOT.glob("*.toml")]:
            # The keys, and the strings without spaces.
            self.words.update(re.findall(r"^\s*([\w-]+)\s*=", text := path.read_text(), re.M))
            self.words.update(re.findall(r"""["'.\[]([\w-]+)["'.\]]""", text))

    def _without(self, token: re.Pattern[str], text: str) -> str:
        """The text without comments and strings. Collects the strings."""

        def taken(found: re.Match[str]) -> str:
            self.strings += [group for group in found.groups() if group]
            return " "

        return token.sub(taken, text)

    def has(self, name: str) -> bool:
        return name in self.names or name in self.words


@functools.cache
def code() -> Code:
    return Code()


@functools.cache
def spec_keys() -> tuple[frozenset[str], frozenset[str]]:
    """The keys of the spec, which are the first arguments of `key(...)` or constants `PATH`, and their sections."""
    found: set[str] = set()
    for path in (ROOT / CRATES[0]).rglob("*.rs"):
        found.update(re.findall(r'(?:\bkey\(|\bPATH: &str =)\s*"([a-z_]+(?:\.[a-z_-]+)+)"', path.read_text()))
    return frozenset(found), frozenset(key.partition(".")[0] for key in found)


@functools.cache
def result_fields() -> dict[str, frozenset[str]]:
    """By the name of a value of a result, the values in it."""
    tree = ast.parse((ROOT / "python/nandlab/result_types.py").read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    fields: dict[str, set[str]] = {}
    for node in classes.values():
        for entry in node.body:
            if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name):
                inner = fields.setdefault(entry.target.id, set())
                for name in re.findall(r"\w+", ast.unparse(entry.annotation)):
                    inner |= {
                        field.target.id
                        for field in (classes[name].body if name in classes else [])
                        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
                    }
    return {name: frozenset(inner) for name, inner in fields.items()}


@functools.cache
def commands() -> frozenset[str]:
    return frozenset(path.stem for path in (ROOT / "python/nandlab/cli").glob("*.py"))


@functools.cache
def targets() -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))


@functools.cache
def options() -> frozenset[str]:
    texts = [*code().strings, (ROOT / ".ci/run").read_text()]
    return frozenset(option for text in texts for option in re.findall(r"--[a-z][a-z-]*", text))


# The rule.


def problem(text: str, document: Path) -> str | None:
    """Why the name in backticks does not exist; `None` if it exists or is not judged."""
    text = (
        " ".join(text.split()).removeprefix("[").removesuffix("]") if text.startswith("[`") else " ".join(text.split())
    )
    first = text.split(" ")[0]
    if text in EXAMPLES or not text or re.match(r"[/~$.<]|out/|https?:", text):
        return None
    if "/" in text and re.search(r"(?:^|/)(?:[A-Z]{3,}|\.\.)(?:/|\.|$)", text):
        return None
    if first in ("nandlab", "make") and " " in text:
        return _command(text)
    if re.fullmatch(r"--[a-z][a-z-]*(?:[= ].*)?", text):
        option = re.split("[= ]", text)[0]
        return None if option in options() else f"no option {option}"
    assigned = re.fullmatch(r"([a-z_]+(?:\.[a-z_-]+)+) = .+", text)
    if assigned:
        return _dotted(assigned.group(1))
    if re.fullmatch(r"\[\[?[a-z_.]+\]\]?", text):
        return None if all(code().has(name) for name in text.strip("[]").split(".")) else "no such section"
    if " " in text and "::" not in first:
        return None
    path = re.sub(r":\d+$", "", text)
    is_path = "/" in path and (path.endswith("/") or "." in path.rsplit("/", 1)[1])
    if re.fullmatch(r"[\w.-]+(?:/[\w.-]+)*/?", path) and (is_path or SUFFIX.search(path)):
        return _file(path, document)
    name = re.sub(r"<.*>", "", re.sub(r"[({\[].*", "", text)).strip().removesuffix("!")
    if re.fullmatch(r"\w+(?:::\w+)+", name):
        return _path(name.split("::"))
    if re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_][\w-]*)+", name):
        return _members(name) if "(" in text else _dotted(name)
    if re.fullmatch(r"[A-Za-z_][\w-]*\w", name):
        return None if code().has(name) else f"no {name}"
    return None


def _command(text: str) -> str | None:
    words = text.split(" ")
    if words[0] == "make":
        named = [word for word in words[1:] if re.fullmatch("[a-z][a-z-]+", word)]
        unknown = [word for word in named if word not in targets()]
        return f"no target {unknown[0]}" if unknown else None
    if re.fullmatch("[a-z-]+", words[1]) and not words[1].startswith("-") and words[1] not in commands():
        return f"no command {words[1]}"
    unknown = [word for word in words if re.fullmatch("--[a-z][a-z-]*", word) and word not in options()]
    return f"no option {unknown[0]}" if unknown else None


def _file(path: str, document: Path) -> str | None:
    there, names = files()
    is_folder = path.endswith("/")
    path = path.rstrip("/")
    folders = [str(folder.relative_to(ROOT)) for folder in document.parents if folder == ROOT or ROOT in folder.parents]
    found = any(str(Path(base, path)) in there for base in (*BASES, *folders))
    if is_folder:
        found = found or any(string.startswith(f"{path}/") for string in code().strings)
    elif not found and "/" not in path:
        found = path in names or path in code().written
    return None if found else f"no file {path}"


def _path(names: list[str]) -> str | None:
    unknown = [name for name in names if not code().has(name)]
    if unknown:
        return f"no {unknown[0]}"
    of, member = names[-2:]
    if not of[0].isupper() or of == "Self":
        return None
    if of not in code().members:
        return f"no type {of}"
    return None if member in code().members[of] else f"{of} has no {member}"


def _dotted(name: str) -> str | None:
    keys, sections = spec_keys()
    names = name.split(".")
    if names[0] in sections and name.islower():
        fields = result_fields()
        known = any(name == key or key.startswith(name + ".") for key in keys)
        # A policy and its parameters: `gc.victim.random.k`.
        policy = ".".join(names[:2]) in keys and all(part in code().words for part in names[2:])
        result = all(inner in fields.get(outer, ()) for outer, inner in itertools.pairwise(names))
        return None if known or policy or result else f"no key {name}"
    unknown = [part for part in names if part not in code().names and part not in code().words]
    return f"no {unknown[0]}" if unknown else None


def _members(name: str) -> str | None:
    unknown = [part for part in name.split(".") if part not in code().names]
    return f"no {unknown[0]}" if unknown else None


# The texts.


SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)


def spans(text: str) -> Iterator[tuple[int, str]]:
    """The texts in backticks with their lines, without code blocks."""
    text = re.sub(r"(?ms)^\s*```.*?^\s*```", lambda found: "\n" * found.group().count("\n"), text)
    for paragraph in re.finditer(r"(?:.+\n?)+", text):
        for span in SPAN.finditer(paragraph.group()):
            yield text.count("\n", 0, paragraph.start() + span.start()) + 1, span.group(2)


def documentation(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in backticks of a file with their lines."""
    text = path.read_text()
    if path.suffix == ".md":
        yield from spans(text)
    elif path.suffix == ".rs":
        lines = [re.match(r"\s*//[/!](?!/) ?(.*)", line) for line in text.splitlines()]
        yield from spans("\n".join(line.group(1) if line else "" for line in lines))
    else:
        # A docstring is a string in triple quotes that begins its line; `#:` comments document constants.
        for found in PYTHON_TOKEN.finditer(text):
            is_first = not text[text.rfind("\n", 0, found.start()) + 1 : found.start()].strip(" r")
            if (is_first and found.group(1) is not None) or found.group().startswith("#:"):
                at = text.count("\n", 0, found.start())
                yield from ((at + line, span) for line, span in spans(found.group(1) or found.group()))


def documents() -> list[Path]:
    written = [path for path in (ROOT / "docs").rglob("*.md") if "reference" not in path.parts]
    return [*(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md")), *written]


@pytest.mark.parametrize("kind", ["documents", ".rs", ".py"])
def test_every_name_in_backticks_exists(kind: str) -> None:
    paths = documents() if kind == "documents" else sorted(sources(kind))
    found = [
        f"{path.relative_to(ROOT)}:{line}: `{span}`: {why}"
        for path in paths
        for line, span in documentation(path)
        if (why := problem(span, path))
    ]
    assert not found, "\n" + "\n".join(found)


EXIST = """
crates/nandlab/src/drive/mod.rs|drive/mod.rs|background/|mod.rs|summary.json|docs/|Drive::submit|Wake::Space(lane)|LaneId
core::Map|base::steps::step|Superblock::pins|gc.victim|gc.victim = "fifo"|gc.victim.random.k|gc.victims
counters.host_pages_written
cost-benefit|[ftl]|nandlab run SPEC --set gc.victim=fifo|make test|--verify|RunResult.read|drive.cut_power()|counters!
"""
INVENTED = """
crates/nandlab/src/drive/quondam.rs|drive/quondam.rs|quondam/|quondam.rs|quondam.json|Drive::quondam|Wake::Page
core::Quondam|base::steps::quondam|Superblock::slot|gc.victimes|gc.victimes = "fifo"|gc.victim.quondam|gc.quondam
cost-quondam|[quondam]|nandlab quondam SPEC|nandlab run SPEC --quondam|make quondam|--quondam|RunResult.quondam
drive.quondam()|quondam!|quondam|counters.quondam|PlaneId|BlockId|Ppn|PageMap|BlockNeeds|FlushPages|Wake::PageDone
ftl/plane.rs|core/units.rs|Geometry::die_of_page|Plane::has_room
"""


@pytest.mark.parametrize("text", EXIST.replace("\n", "|").strip("|").split("|"))
def test_a_name_that_exists_is_found(text: str) -> None:
    assert problem(text, ROOT / "ARCHITECTURE.md") is None


@pytest.mark.parametrize("text", INVENTED.replace("\n", "|").strip("|").split("|"))
def test_an_invented_and_a_renamed_name_are_refused(text: str) -> None:
    assert problem(text, ROOT / "ARCHITECTURE.md")
