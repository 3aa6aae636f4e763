"""Mutants of the core: do the tests notice a changed operator or a missing statement?

    python tools/mutants.py list [--seed N] [--per-room N] [--files PATTERN]    the mutants, drawn and not built
    python tools/mutants.py run FOLDER [--seed N] [--per-room N] [--files PATTERN] [--rust-only | --fast]
    python tools/mutants.py show FOLDER                                         the results so far

`run` copies the repository to FOLDER, builds all mutants into one program, in which the variable NANDLAB_MUTANT chooses
one, and runs the tests of `make test` with each: first the tests in Rust, the fastest first, then, for mutants that
survive, those in Python. A mutant is caught when a test fails or takes ten times as long as without the mutant. Results
are kept in FOLDER; `run` on the same folder continues where the last one stopped, and judges the survivors once more.
`--fast` judges by the tests in Rust that take less than four seconds each, and leaves the survivors to a later `run`.

The draw: in every room (a folder of crates/nandlab/src) a random order, by the seed, of all places of these kinds,
without unit tests, constants, and calls that prefetch into the processor's cache, which have no effect on results:

- a binary operator is replaced: + and -, * and /, % by *, < and <=, > and >=, == and !=, && and ||, & and |, << and >>;
- += and -= are exchanged, and a condition of `if` or `while` is negated;
- a statement that calls a function or assigns a value is left out.

The first places of the order are mutants, as many as wanted of each room. A place is passed over if it overlaps one
before it, or if the mutant does not compile.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import resource
import selectors
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import tree_sitter_rust
from tree_sitter import Language, Node, Parser

REPOSITORY = Path(__file__).absolute().parents[1]
SOURCE = Path("crates/nandlab/src")
#: Files of a room that hold tests or what only tests use.
TEST_FILES = ("tests.rs", "testing.rs")
#: The variable that chooses the mutant; 0 or unset: none.
VARIABLE = "NANDLAB_MUTANT"
#: Upper limit of a test program's address space, in bytes: a mutant may allocate without end.
MEMORY_BYTES = 8 << 30
#: Tests of `--fast` take less, in seconds.
FAST_S = 4.0
#: Places drawn per mutant wanted: the spare ones replace those that do not compile.
SPARE = 1.6

OPERATORS = {
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "%": "*",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "&&": "||",
    "||": "&&",
    "&": "|",
    "|": "&",
    "<<": ">>",
    ">>": "<<",
}
ASSIGNMENTS = {"+=": "-=", "-=": "+="}

SWITCH = """
/// The switch of the mutants.
pub(crate) mod mutants {
    use std::sync::OnceLock;

    static CHOSEN: OnceLock<u32> = OnceLock::new();

    /// Whether mutant `id` is the chosen one.
    #[inline(always)]
    pub(crate) fn on(id: u32) -> bool {
        *CHOSEN.get_or_init(|| std::env::var("NANDLAB_MUTANT").map_or(0, |text| text.parse().unwrap_or(0))) == id
    }
}
"""


class Refused(Exception):
    """The command cannot go on; the text is the message for the user."""


# --------------------------------------------------------------------------------------------------------------- draw


@dataclass(frozen=True)
class Mutant:
    """A changed place of the source."""

    id: int
    room: str
    #: Relative to the repository.
    file: str
    #: From 1.
    line: int
    #: Bytes of the file.
    begin: int
    end: int
    #: The replaced text, and the replacement; the replacement of a statement left out is empty.
    before: str
    after: str

    @property
    def text(self) -> str:
        """The mutant in one line."""
        before, after = (re.sub(r"\s+", " ", text) for text in (self.before, self.after))
        return f"{self.file}:{self.line}: {before}  ->  {after or '(left out)'}"


def places(file: Path, source: bytes, parser: Parser) -> Iterator[tuple[Node, bytes]]:
    """All places of a file that can be mutated, with the replacement of each."""
    todo = [parser.parse(source).root_node]
    while todo:
        node = todo.pop()
        if node.is_error:
            raise Refused(f"{file}:{node.start_point.row + 1}: tree-sitter cannot read this Rust")
        if is_left_out(node, source):
            continue
        after = replacement(node, source)
        if after is not None:
            yield node, after
        todo += node.children


def is_left_out(node: Node, source: bytes) -> bool:
    """Whether a node and all inside have no mutants: constants, unit tests, prefetches, macros."""
    if node.type in (
        "const_item",
        "static_item",
        "array_type",
        "macro_invocation",
        "macro_definition",
        "use_declaration",
    ):
        return True
    if node.type == "const_block" or node.type == "attribute_item":
        return True
    if node.type == "call_expression":
        called = node.child_by_field_name("function")
        return called is not None and bool(re.search(rb"\bprefetch\w*$", source[called.start_byte : called.end_byte]))
    if node.type == "function_item":
        head = source[node.start_byte : (node.child_by_field_name("body") or node).start_byte]
        return bool(re.search(rb"\bconst\b[^(]*\bfn\b|\bfn prefetch", head))
    if node.type == "mod_item":
        before = node.prev_named_sibling
        return before is not None and source[before.start_byte : before.end_byte] == b"#[cfg(test)]"
    return False


def replacement(node: Node, source: bytes) -> bytes | None:
    """The text with which a node is replaced; `None`: the node is no place of a mutant."""
    text = source[node.start_byte : node.end_byte]
    if node.type == "binary_expression":
        left, operator, right = (
            node.child_by_field_name("left"),
            node.child_by_field_name("operator"),
            node.child_by_field_name("right"),
        )
        if left is None or operator is None or right is None:
            return None
        other = OPERATORS.get(source[operator.start_byte : operator.end_byte].decode())
        if other is None or b"let " in text:
            return None
        operands = (source[side.start_byte : side.end_byte] for side in (left, right))
        return f" {other} ".encode().join(b"(" + operand + b")" for operand in operands)
    if node.type == "compound_assignment_expr":
        operator = node.child_by_field_name("operator")
        other = operator and ASSIGNMENTS.get(source[operator.start_byte : operator.end_byte].decode())
        if not other or operator is None:
            return None
        return (
            source[node.start_byte : operator.start_byte] + other.encode() + source[operator.end_byte : node.end_byte]
        )
    if node.parent is not None and node.parent.type in ("if_expression", "while_expression"):
        is_condition = node.parent.child_by_field_name("condition") == node
        if is_condition and node.type not in ("let_condition", "let_chain", "binary_expression"):
            return b"!(" + text + b")"
    if node.type == "expression_statement" and text.endswith(b";"):
        inner = node.named_children[0]
        if inner.type in ("call_expression", "assignment_expression", "compound_assignment_expr"):
            return None if is_left_out(inner, source) else b""
    return None


def draw(root: Path, seed: int, per_room: int, pattern: str = "") -> list[Mutant]:
    """The mutants of all rooms in the order of the draw, with the spare ones."""
    parser = Parser(Language(tree_sitter_rust.language()))
    drawn: list[Mutant] = []
    for room in sorted(path for path in (root / SOURCE).iterdir() if path.is_dir()):
        found: list[Mutant] = []
        for path in sorted(room.rglob("*.rs")):
            if path.name in TEST_FILES or not re.search(pattern, path.relative_to(root).as_posix()):
                continue
            source = path.read_bytes()
            file = path.relative_to(root).as_posix()
            for node, after in places(path, source, parser):
                before = source[node.start_byte : node.end_byte].decode()
                where = (file, node.start_point.row + 1, node.start_byte, node.end_byte)
                found.append(Mutant(0, room.name, *where, before, after.decode()))
        found.sort(key=lambda mutant: (mutant.file, mutant.begin, mutant.end, mutant.after))
        random.Random(f"{seed} {room.name}").shuffle(found)
        chosen: list[Mutant] = []
        for mutant in found:
            overlaps = any(
                mutant.file == other.file and mutant.begin < other.end and other.begin < mutant.end for other in chosen
            )
            if not overlaps and len(chosen) < per_room * SPARE:
                chosen.append(mutant)
        drawn += chosen
    return [Mutant(number, *list(asdict(mutant).values())[1:]) for number, mutant in enumerate(drawn, 1)]


# -------------------------------------------------------------------------------------------------------------- build


def mutated(source: bytes, mutants: Sequence[Mutant]) -> tuple[bytes, list[tuple[int, int, Mutant]]]:
    """The source with the switch of every mutant, and the bytes that each switch takes in it."""
    out, at, spans = b"", 0, []
    for mutant in sorted(mutants, key=lambda mutant: mutant.begin):
        out += source[at : mutant.begin]
        begin = len(out)
        on, before = f"crate::mutants::on({mutant.id})".encode(), source[mutant.begin : mutant.end]
        if before.endswith(b";"):
            out += b"if !" + on + b" { " + before + b" }"
        else:
            out += b"(if " + on + b" { " + mutant.after.encode() + b" } else { " + before + b" })"
        spans.append((begin, len(out), mutant))
        at = mutant.end
    return out + source[at:], spans


def instrument(root: Path, tree: Path, mutants: Sequence[Mutant]) -> dict[str, list[tuple[int, int, Mutant]]]:
    """Write the sources with their switches to the tree; return the place of each switch, by file."""
    spans: dict[str, list[tuple[int, int, Mutant]]] = {}
    for file in sorted({mutant.file for mutant in mutants} | {str(SOURCE / "lib.rs")}):
        text, spans[file] = mutated((root / file).read_bytes(), [mutant for mutant in mutants if mutant.file == file])
        if file == str(SOURCE / "lib.rs"):
            text += SWITCH.encode()
        target = tree / file
        if not target.is_file() or target.read_bytes() != text:
            target.write_bytes(text)
    return spans


def first_of(mutants: Sequence[Mutant], per_room: int, refused: set[int]) -> list[Mutant]:
    """The first mutants of every room that are not refused."""
    taken: Counter[str] = Counter()
    chosen = []
    for mutant in mutants:
        if mutant.id not in refused and taken[mutant.room] < per_room:
            taken[mutant.room] += 1
            chosen.append(mutant)
    return chosen


def environment(folder: Path, mutant: int = 0) -> dict[str, str]:
    """The environment of builds and tests."""
    tree = folder / "tree"
    own = {
        "CARGO_TARGET_DIR": str(folder / "target"),
        "CARGO_INCREMENTAL": "1",
        "PYO3_PYTHON": str(tree / ".venv/bin/python"),
        "RUST_BACKTRACE": "0",
        # Warnings of the switches are of no interest.
        "RUSTFLAGS": "-Awarnings",
        VARIABLE: str(mutant),
    }
    return {**os.environ, **own}


@dataclass(frozen=True)
class CompileError:
    """An error of the compiler, with the bytes of the sources that its message names, the main ones first."""

    message: str
    places: tuple[tuple[str, int], ...]


def compile_errors(folder: Path) -> list[CompileError]:
    """The errors of the instrumented crate."""
    command = ["cargo", "check", "-p", "nandlab", "--lib", "--message-format=json", "--quiet"]
    done = subprocess.run(
        command, cwd=folder / "tree", env=environment(folder), capture_output=True, text=True, check=False
    )
    found = []
    for line in done.stdout.splitlines():
        message = json.loads(line).get("message", {})
        if isinstance(message, dict) and message.get("level") == "error" and message.get("spans"):
            spans = sorted(message["spans"], key=lambda span: not span["is_primary"])
            places = tuple((span["file_name"], int(span["byte_start"])) for span in spans)
            found.append(CompileError(str(message["message"]), places))
    if done.returncode != 0 and not found:
        raise Refused(f"cargo check failed:\n{done.stderr[-3000:]}")
    return found


def guilty_of(error: CompileError, spans: dict[str, list[tuple[int, int, Mutant]]]) -> set[int]:
    """The mutants to blame for an error: at a place that it names, or else the last before its first place."""
    for file, byte in error.places:
        within = {mutant.id for begin, end, mutant in spans.get(file, []) if begin <= byte < end}
        if within:
            return within
    file, byte = error.places[0]
    before = [mutant.id for begin, _, mutant in spans.get(file, []) if begin <= byte]
    if not before:
        raise Refused(f"{file}: an error before all mutants: {error.message}")
    return {before[-1]}


def compiling(root: Path, folder: Path, drawn: Sequence[Mutant], per_room: int) -> list[Mutant]:
    """The mutants that compile, as many of each room as wanted or there are."""
    refused: set[int] = set()
    while True:
        chosen = first_of(drawn, per_room, refused)
        spans = instrument(root, folder / "tree", chosen)
        errors = compile_errors(folder)
        if not errors:
            return chosen
        guilty: set[int] = set()
        guilty.update(*(guilty_of(error, spans) for error in errors))
        refused |= guilty
        print(f"{len(guilty)} mutants do not compile and are replaced", flush=True)


# -------------------------------------------------------------------------------------------------------------- judge


@dataclass(frozen=True)
class Batch:
    """Tests that run in one process."""

    program: str
    tests: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Verdict:
    """How a mutant fared."""

    id: int
    is_caught: bool
    #: The test that noticed the mutant, or the tests that did not.
    by: str
    seconds: float


def limit_memory() -> None:
    """In a child process: a mutant that allocates without end fails."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def watch(
    command: Sequence[str], cwd: Path, env: dict[str, str], limit_s: float, on_line: Callable[[str], bool]
) -> int | None:
    """Run a command until it ends, `on_line` returns true, or the time is over; the exit status, `None` if stopped."""
    child = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=limit_memory,
    )
    assert child.stdout is not None
    os.set_blocking(child.stdout.fileno(), False)
    end, rest = time.monotonic() + limit_s, b""
    try:
        with selectors.DefaultSelector() as ready:
            ready.register(child.stdout, selectors.EVENT_READ)
            while (left := end - time.monotonic()) > 0:
                if not ready.select(left):
                    return None
                data = child.stdout.read()
                if not data:
                    return child.wait()
                *lines, rest = (rest + data).split(b"\n")
                if any(on_line(line.decode(errors="replace")) for line in lines):
                    return None
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, 9)
        child.wait()
        child.stdout.close()


def programs(folder: Path) -> list[str]:
    """Build the tests in Rust; the test programs."""
    command = ["cargo", "test", "-p", "nandlab", "--no-run", "--message-format=json", "--quiet"]
    done = subprocess.run(
        command, cwd=folder / "tree", env=environment(folder), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Refused(f"the tests do not build:\n{done.stderr[-3000:]}")
    facts = [json.loads(line) for line in done.stdout.splitlines()]
    return [fact["executable"] for fact in facts if fact.get("executable") and fact.get("profile", {}).get("test")]


def batches(folder: Path) -> list[Batch]:
    """All tests in Rust, timed without a mutant, in processes of about equal tests, the fastest first."""
    found: list[Batch] = []
    for program in programs(folder):
        took: list[tuple[str, float]] = []
        last = [time.monotonic()]
        failed: list[str] = []

        def on_line(
            line: str, took: list[tuple[str, float]] = took, last: list[float] = last, failed: list[str] = failed
        ) -> bool:
            ended = re.match(r"test (\S+)(?: - should panic)? \.\.\. (\w+)", line)
            if ended:
                now = time.monotonic()
                took.append((ended[1], now - last[0]))
                last[0] = now
                if ended[2] == "FAILED":
                    failed.append(ended[1])
            return False

        cwd = folder / "tree/crates/nandlab"
        watch([program, "--test-threads=1"], cwd, environment(folder), 7200, on_line)
        if failed:
            raise Refused(f"tests fail without a mutant: {', '.join(failed)}")
        steps = [0.05, 0.3, 1.0, FAST_S, 10.0, float("inf")]
        for low, high in zip([0.0, *steps], steps, strict=False):
            some = [(name, seconds) for name, seconds in took if low <= seconds < high]
            if some:
                found.append(Batch(program, tuple(name for name, _ in some), sum(seconds for _, seconds in some)))
    found.sort(key=lambda batch: batch.seconds / len(batch.tests))
    return found


def judge_rust(folder: Path, mutant: Mutant, all_batches: Sequence[Batch]) -> Verdict:
    """Run the tests in Rust until one fails."""
    begin = time.monotonic()
    for batch in all_batches:
        guilty: list[str] = []

        def on_line(line: str, guilty: list[str] = guilty) -> bool:
            ended = re.match(r"test (\S+)(?: - should panic)? \.\.\. FAILED", line)
            if ended:
                guilty.append(ended[1])
            return bool(ended)

        limit = 30 + 10 * batch.seconds
        command = [batch.program, "--test-threads=1", "--exact", *batch.tests]
        status = watch(command, folder / "tree/crates/nandlab", environment(folder, mutant.id), limit, on_line)
        if status != 0:
            what = (
                guilty[0]
                if guilty
                else f"a hang of {batch.tests[0]} ..."
                if status is None
                else f"exit status {status}"
            )
            return Verdict(mutant.id, True, what, time.monotonic() - begin)
    return Verdict(mutant.id, False, "tests in Rust", time.monotonic() - begin)


def judge_python(folder: Path, mutant: Mutant) -> Verdict:
    """Run the tests in Python until one fails."""
    begin = time.monotonic()
    guilty: list[str] = []

    def on_line(line: str) -> bool:
        ended = re.match(r"FAILED (\S+)", line)
        if ended:
            guilty.append(ended[1])
        return False

    command = [str(folder / "tree/.venv/bin/python"), "-m", "pytest", "-q", "-x", "-n", "2", "tests/python"]
    status = watch(command, folder / "tree", environment(folder, mutant.id), 3600, on_line)
    what = guilty[0] if guilty else "a hang" if status is None else f"exit status {status}"
    return Verdict(mutant.id, status != 0, what if status != 0 else "all tests", time.monotonic() - begin)


# ---------------------------------------------------------------------------------------------------------------- run


def copy_tree(tree: Path) -> None:
    """Copy the files of the repository that git knows, changed or not."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True).stdout
    known = {name.decode() for name in listed.split(b"\0") if name and (REPOSITORY / name.decode()).is_file()}
    for name in sorted(known):
        source, target = REPOSITORY / name, tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if name.startswith(str(SOURCE)) and target.is_file():
            continue  # `instrument` writes the sources.
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            shutil.copy2(source, target)
    for path in (tree / SOURCE).rglob("*.rs"):
        if path.relative_to(tree).as_posix() not in known:
            path.unlink()
        elif path.read_bytes() != (REPOSITORY / path.relative_to(tree)).read_bytes():
            shutil.copy2(REPOSITORY / path.relative_to(tree), path)


class Results:
    """The verdicts of a folder, a line of JSON each; the last line of a mutant counts."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "verdicts.jsonl"
        self.lock = threading.Lock()
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.is_file() else []
        self.by_id = {verdict.id: verdict for verdict in (Verdict(**json.loads(line)) for line in lines)}

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict."""
        with self.lock:
            self.by_id[verdict.id] = verdict
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(verdict)) + "\n")


def run(folder: Path, seed: int, per_room: int, files: str, *, is_rust_only: bool, is_fast: bool) -> int:
    """Draw, build and judge; return the exit status."""
    tree = folder / "tree"
    tree.mkdir(parents=True, exist_ok=True)
    copy_tree(tree)
    drawn = draw(REPOSITORY, seed, per_room, files)
    mutants = compiling(REPOSITORY, folder, drawn, per_room)
    listed = folder / "mutants.json"
    text = json.dumps([asdict(mutant) for mutant in mutants], indent=1) + "\n"
    if listed.is_file() and listed.read_text(encoding="utf-8") != text:
        raise Refused(
            f"{listed} holds other mutants: the source, the seed or the number has changed; name a new folder"
        )
    listed.write_text(text, encoding="utf-8")
    print(f"{len(mutants)} mutants: {listed}", flush=True)
    results = Results(folder)
    all_batches = batches(folder)
    if is_fast:
        all_batches = [batch for batch in all_batches if batch.seconds < FAST_S * len(batch.tests)]
    tests, seconds = sum(len(batch.tests) for batch in all_batches), sum(batch.seconds for batch in all_batches)
    print(f"{tests} tests in Rust, {seconds:.0f} s", flush=True)

    def keep(mutant: Mutant, verdict: Verdict) -> None:
        results.add(verdict)
        what = "caught by" if verdict.is_caught else "SURVIVED"
        print(f"{mutant.id} {verdict.seconds:.0f} s {what} {verdict.by}  {mutant.text}", flush=True)

    todo = [mutant for mutant in mutants if mutant.id not in results.by_id or not results.by_id[mutant.id].is_caught]
    with ThreadPoolExecutor(2) as pool:
        for mutant, verdict in zip(todo, pool.map(lambda one: judge_rust(folder, one, all_batches), todo), strict=True):
            keep(mutant, verdict)
    survivors = [mutant for mutant in todo if not results.by_id[mutant.id].is_caught]
    if survivors and not is_rust_only and not is_fast:
        subprocess.run(
            ["make", ".venv/.stamp-built", ".venv/.stamp-dev"], cwd=tree, env=environment(folder), check=True
        )
        for mutant in survivors:
            keep(mutant, judge_python(folder, mutant))
    return show(folder)


def show(folder: Path) -> int:
    """Print the results by room and the survivors; 1 if less than 90 % of the mutants are caught."""
    try:
        mutants = [Mutant(**fields) for fields in json.loads((folder / "mutants.json").read_text(encoding="utf-8"))]
    except OSError:
        raise Refused(f"no mutants in {folder}: start `run` first") from None
    verdicts = Results(folder).by_id
    print(f"{'room':<14} {'mutants':>8} {'judged':>8} {'caught':>8}")
    for room in [*sorted({mutant.room for mutant in mutants}), "all"]:
        of = [mutant for mutant in mutants if room in (mutant.room, "all")]
        judged = [verdicts[mutant.id] for mutant in of if mutant.id in verdicts]
        caught = sum(verdict.is_caught for verdict in judged)
        print(f"{room:<14} {len(of):>8} {len(judged):>8} {caught:>8}  {caught / max(len(judged), 1):.0%}")
    print("\nSurvivors:")
    for mutant in mutants:
        if mutant.id in verdicts and not verdicts[mutant.id].is_caught:
            print(f"{mutant.id}  {mutant.text}  ({verdicts[mutant.id].by})")
    caught = sum(verdict.is_caught for verdict in verdicts.values())
    return 0 if caught >= 0.9 * len(mutants) else 1


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, text in (("list", "print the mutants drawn"), ("run", "build and judge them"), ("show", "print results")):
        command = verbs.add_parser(verb, help=text)
        if verb != "list":
            command.add_argument("folder", type=Path, metavar="FOLDER")
        if verb != "show":
            command.add_argument("--seed", type=int, default=1, help="seed of the draw (default: 1)")
            command.add_argument("--per-room", type=int, default=25, help="mutants of a room (default: 25)")
            command.add_argument("--files", default="", metavar="PATTERN", help="only files that match this expression")
        if verb == "run":
            command.add_argument("--rust-only", action="store_true", help="leave out the tests in Python")
            command.add_argument("--fast", action="store_true", help="leave out long tests and those in Python")
    arguments = parser.parse_args()
    try:
        match arguments.verb:
            case "list":
                for mutant in draw(REPOSITORY, arguments.seed, arguments.per_room, arguments.files):
                    print(f"{mutant.room:<14} {mutant.text}")
            case "run":
                folder = arguments.folder.absolute()
                fast, rust_only = arguments.fast, arguments.rust_only
                seed, number, files = arguments.seed, arguments.per_room, arguments.files
                return run(folder, seed, number, files, is_rust_only=rust_only, is_fast=fast)
            case "show":
                return show(arguments.folder)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
