"""The site and the README: every command and snippet runs, the build is strict, and the site needs no network."""

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import docs_notebooks
import docs_reference
import nandlab
import pytest
from nandlab import spec as specs
from nandlab.cli.app import COMMANDS
from nandlab.study import file as study_file

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"]
#: The most blocks of all pages that are not run.
NOT_RUN_MAX = 18

_FENCE = re.compile(
    r"(?:<!-- not run: (?P<why>[^>]+?) -->\n)?^```(?P<kind>\w+)(?P<options>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S
)


@dataclass
class Block:
    """A fenced block of a page."""

    kind: str
    title: str | None
    text: str
    line: int
    #: Why the block is not run.
    why: str | None


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for found in _FENCE.finditer(text):
        title = re.search(r'title="([^"]+)"', found["options"])
        line = text.count("\n", 0, found.start("text")) + 1
        yield Block(found["kind"], title and title[1], found["text"], line, found["why"])


def test_every_block_is_of_a_known_kind_and_few_are_not_run():
    found = [(page.name, block) for page in PAGES for block in blocks(page)]
    assert {block.kind for _, block in found} <= {"console", "python", "toml", "rust", "text"}
    assert all(block.why for _, block in found if block.kind == "rust")
    assert len([block for _, block in found if block.why]) <= NOT_RUN_MAX
    # No block hides behind a wrong beginning of a fence.
    for page in PAGES:
        assert page.read_text().count("```") == 2 * len(list(blocks(page))), page


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console block with the lines that each prints."""
    command, output = None, []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, output
            command, output = line[2:], []
        else:
            assert command, f"line {block.line}: a console block begins with `$ `"
            output.append(line)
    if command:
        yield command, output


def agrees(expected: list[str], printed: list[str]) -> bool:
    """Whether a command printed what a page shows: `...` is any text, and on a line of its own any lines.

    Blank lines are left out, and blanks count as one.
    """
    wanted = [" ".join(line.split()) for line in expected if line.strip()]
    found = [" ".join(line.split()) for line in printed if line.strip()]
    # The numbers of printed lines that the lines of the page so far may stand for.
    ends = {0}
    for line in wanted:
        if line == "...":
            ends = set(range(min(ends), len(found) + 1))
        else:
            text = re.compile(".*".join(map(re.escape, line.split("..."))))
            ends = {end + 1 for end in ends if end < len(found) and text.fullmatch(found[end])}
        if not ends:
            return False
    return len(found) in ends


@pytest.fixture
def environment(tmp_path_factory):
    """Commands of the pages: `nandlab` and `python` of this environment."""
    folder = tmp_path_factory.mktemp("bin")
    for name, call in (("nandlab", "-m nandlab "), ("python", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {call}"$@"\n')
        (folder / name).chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "LC_ALL": "C"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_and_snippets_of_a_page_run(page, environment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in blocks(page):
        if block.why or block.kind == "text":
            continue
        if block.title:
            file = tmp_path / block.title
            file.parent.mkdir(exist_ok=True)
            file.write_text(block.text)
        elif block.kind == "toml":
            nandlab.load(block.text)
        elif block.kind == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
        else:
            for command, output in commands(block):
                done = subprocess.run(
                    ["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=600, check=False
                )
                where = f"{page.relative_to(ROOT)}:{block.line}: {command}"
                assert done.returncode == 0, f"{where}\n{done.stderr}"
                assert agrees(output, done.stdout.splitlines()), f"{where}\nprinted:\n{done.stdout}"


def test_the_policy_of_the_tutorial_is_that_of_the_recipe():
    (policy,) = (block.text for block in blocks(DOCS / "tutorials" / "gc-policy.md") if block.kind == "rust")
    assert policy in (ROOT / "CONTRIBUTING.md").read_text()


def test_the_readme_is_one_page():
    words = (ROOT / "README.md").read_text().split()
    assert len(words) <= 600


#: What a newcomer asks, and the part of the README with its answer: a sentence, a link or a command.
QUESTIONS = {
    "What is it for?": "It answers one question: what does a change of one controller policy do to",
    "What is it not for?": "(docs/explanation/not-modelled.md): a spec that asks for one is refused",
    "How do I start with my trace?": "| a trace | `nandlab trace stat mine.csv` |",
    "How do I start with my database?": "`nandlab serve examples/small.toml` |",
    "How do I start with my policy?": "`nandlab compare examples/small.toml gc.victim=mine --policy mine.py` |",
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_readme_answers(question):
    assert QUESTIONS[question] in " ".join((ROOT / "README.md").read_text().split())


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_the_links_of_the_documents_of_the_root_lead_somewhere(name):
    text = re.sub(r"`[^`\n]*`", "", (ROOT / name).read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match("https?:", target):
            continue
        path, _, anchor = target.partition("#")
        other = ROOT / (path or name)
        assert other.exists(), f"{name} links to {target}"
        if anchor:
            heads = re.findall(r"^#+ (.+)$", other.read_text(), re.M)
            assert anchor in {re.sub(r"[^a-z0-9 _-]", "", head.lower()).replace(" ", "-") for head in heads}, target


class _Links(HTMLParser):
    """What a page loads, what it links to, and its ids."""

    def __init__(self):
        super().__init__()
        self.loaded, self.linked, self.ids = [], [], set()

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values:
            self.ids.add(values["id"])
        if tag in ("script", "img", "iframe", "source") and values.get("src"):
            self.loaded.append(values["src"])
        if tag == "link" and "stylesheet" in (values.get("rel") or ""):
            self.loaded.append(values["href"])
        if tag == "a" and values.get("href"):
            self.linked.append(values["href"])


def _read(path: Path) -> _Links:
    links = _Links()
    links.feed(path.read_text())
    return links


def test_the_site_is_built_strictly_and_opens_from_a_folder_without_a_network(tmp_path):
    site = tmp_path / "site"
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=300, check=False)
    # A broken link or anchor, or a page outside the navigation, fails the build.
    assert done.returncode == 0, done.stderr
    pages = {path: _read(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 40
    for path, links in pages.items():
        for source in links.loaded:
            assert not re.match(r"(https?:)?//", source), f"{path.name} loads {source}"
            assert (path.parent / source).resolve().is_file(), f"{path.name} loads {source}"
        for target in links.linked:
            if re.match(r"(https?:|mailto:)", target):
                continue
            name, _, anchor = target.partition("#")
            other = (path.parent / name).resolve() if name else path
            assert other.is_file(), f"{path.name} links to {target}"
            assert not anchor or anchor.startswith("__") or anchor in pages[other].ids, f"{path.name}: {target}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\((['\"]?)(https?:)?//", style.read_text()), style
    assert "iframe-worker" in (site / "index.html").read_text()
    assert (site / "search" / "search_index.js").is_file()

    # Formulas and pictures are in the pages.
    power = (site / "explanation" / "power-loss.html").read_text()
    assert "<math" in power and "$$" not in power and "\\(" not in power
    assert "<svg viewBox" in power and "<!-- drawing" not in power
    assert (site / "pictures" / "rber.svg").read_text().startswith("<svg")
    # A mention of a key is a link to its row.
    assert 'href="../reference/spec.html#capacitor.esr"' in power


def test_the_reference_has_every_key_policy_command_name_and_note():
    page = docs_reference.spec_part()
    rows = set(re.findall(r'<a id="([^"]+)"></a>', page))
    resolved = specs.load("[drive]\n").to_toml()
    section = ""
    for line in resolved.splitlines():
        if head := re.fullmatch(r"\[(.+)\]", line):
            section = head[1] + "."
        elif entry := re.match(r"(?:# )?(\w+) = ", line):
            assert section + entry[1] in rows
    policies = docs_reference.policies_part()
    assert all(f"`{row['name']}`" in policies for row in nandlab.policies())
    helps = docs_reference.commands()
    assert {f"nandlab {name}" for name in COMMANDS} | {"nandlab", "nandlab spec show", "nandlab trace stat"} <= set(
        helps
    )
    assert "--one-at-a-time" in helps["nandlab compare"] and "--against-full" in helps["nandlab life"]
    names = docs_reference.python_part()
    assert all(f"`nandlab.{name}`" in names for name in nandlab.__all__ if not name.startswith("__"))
    codes = {note.code for note in docs_reference.notes()}
    folders = (ROOT / "crates" / crate / "src" for crate in ("nandlab", "nandlab-trace"))
    sources = "".join(path.read_text() for folder in folders for path in folder.rglob("*.rs"))
    assert codes == set(re.findall(r'Note::(?:error|warning|info)\(\s*"([a-z0-9-]+)"', sources))


def test_the_page_of_the_study_file_explains_every_key_and_value():
    page = re.sub(r"^```.*?^```", "", (DOCS / "reference" / "study-file.md").read_text(), flags=re.M | re.S)
    words = set(re.findall(r"[\w-]+", " ".join(re.findall(r"`([^`]+)`", page))))
    types = [value for value in vars(study_file).values() if isinstance(value, type)]
    keys = {key for one in types if issubclass(one, study_file.Table) for key in one.model_fields}
    values = {*study_file.KINDS, *study_file.SCALES, *study_file.REDUCTIONS, *study_file.AVERAGES, *study_file.SLOPES}
    assert keys | values <= words
    assert all(f'`"{direction}"`' in page for direction in study_file.DIRECTIONS)


@pytest.mark.parametrize("name", docs_notebooks.names())
def test_a_notebook_runs_and_its_page_needs_no_network(name):
    assert {"first-steps", "gc-policy", "paper-figure", "database"} == set(docs_notebooks.names())
    assert all(not cell.get("outputs") for cell in docs_notebooks.cells(name))
    page = docs_notebooks.page(name)
    assert page.count("```python") >= 3 and '<div class="cell">' in page
    assert not re.search(r"<script|src=|cdn|https?://(?!www\.w3\.org)", page)
    assert len(page) < 1_000_000
