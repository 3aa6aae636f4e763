"""The hooks of the site's build: generated parts, pictures, formulas, and links from keys to the reference.

`docs/` has the hand-written pages. `docs_reference.py` generates the parts of the reference from the schema, the
policies, the help texts, the docstrings, and the sources of notes and trace readers; `docs_pictures.py` draws the
pictures; `docs_notebooks.py` executes the notebooks; `docs_formulas.py` turns formulas into MathML. The site needs
neither a network nor a server:
`docs/assets/iframe-worker.js` lets the search run on pages opened from a folder. `tests/python/test_docs.py` runs every
command and snippet of the pages and of README.md, and builds the site strictly.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import docs_formulas
import docs_notebooks
import docs_pictures
import docs_reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

_DRAWING = re.compile(r"<!-- drawing: ([a-z-]+) -->\n(.+?)(?:\n\n|\Z)", re.DOTALL)
#: A block of code, or the indentation of a line outside of one.
_OUTSIDE = re.compile(r"^(```.*?^```)|^( +)", re.DOTALL | re.MULTILINE)
_GENERATED = re.compile(r"<!-- generated: ([a-z-]+) -->")
_CODE = re.compile(r"<a [^>]*>.*?</a>|<pre.*?</pre>|<h\d.*?</h\d>|<code>([a-z_]+(?:\.[a-z_-]+)+)</code>", re.DOTALL)
#: The pages without links from keys.
_WITHOUT_LINKS = "reference/"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the charts, and the pages of the notebooks."""
    for name in docs_notebooks.names():
        files.append(File.generated(config, f"notebooks/{name}.md", content=docs_notebooks.page(name)))
    for name, chart in docs_pictures.CHARTS.items():
        files.append(File.generated(config, f"pictures/{name}.svg", content=chart()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replaces generated parts, drawings and formulas."""
    del page, config, files
    # Markdown wants four blanks for a level of a list, where the pages have two.
    markdown = _OUTSIDE.sub(lambda found: found.group(1) or 2 * found.group(2), markdown)
    markdown = docs_formulas.mark(_DRAWING.sub(_drawing, markdown))
    return _GENERATED.sub(lambda match: docs_reference.PARTS[match.group(1)](), markdown)


def _drawing(match: re.Match[str]) -> str:
    picture = docs_pictures.DRAWINGS[match.group(1)]().svg()
    caption = " ".join(match.group(2).split())
    return f'<figure class="drawing" markdown="span">{picture}<figcaption>{caption}</figcaption></figure>\n\n'


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Writes the formulas, and links the first mention of each spec key to its row in the reference."""
    del config, files
    html = docs_formulas.replace(html)
    if page.file.src_uri.startswith(_WITHOUT_LINKS):
        return html
    known = {key.name for key in docs_reference.spec_keys()}
    return _CODE.sub(_linker(known, get_relative_url("reference/spec.html", page.url)), html)


def _linker(known: set[str], target: str) -> Callable[[re.Match[str]], str]:
    seen: set[str] = set()

    def link(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in known or name in seen:
            return match.group(0)
        seen.add(name)
        return f'<a href="{target}#{name}">{match.group(0)}</a>'

    return link
