"""The notebooks of the site: executed by the build, and shown as pages.

A notebook of `docs/notebooks/` has no outputs. Its cells run in one namespace, in an empty folder, and the last
expression of a cell is shown as a notebook shows it. `tests/python/test_docs.py` executes them too.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import linecache
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"


def names() -> list[str]:
    """The notebooks by name."""
    return sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def cells(name: str) -> list[dict[str, Any]]:
    """The cells of a notebook."""
    found: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return found


def execute(name: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Run a notebook: for each cell its kind, its source, and its output by MIME type (`stdout` is what it prints)."""
    space: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for number, cell in enumerate(cells(name)):
                source = "".join(cell["source"])
                output = _run(source, f"<{name}, cell {number}>", space) if cell["cell_type"] == "code" else {}
                yield cell["cell_type"], source, output
        finally:
            os.chdir(before)


def _run(source: str, place: str, space: dict[str, Any]) -> dict[str, Any]:
    # Policies are identified by their source, which Python finds here.
    linecache.cache[place] = (len(source), None, source.splitlines(True), place)
    parts = ast.parse(source, place).body
    last = parts[-1] if parts and isinstance(parts[-1], ast.Expr) else None
    del parts[len(parts) - (last is not None) :]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(parts, []), place, "exec"), space)
        value = None if last is None else eval(compile(ast.Expression(last.value), place, "eval"), space)
    output = {} if value is None else _forms(value)
    return {"stdout": printed.getvalue(), **output} if printed.getvalue() else output


def _forms(value: object) -> dict[str, Any]:
    """The forms of a value, as a notebook asks for them."""
    if type(value).__module__.startswith("altair."):
        # A chart of the notebook's own; Altair would load a script from elsewhere.
        from nandlab.notebook import shown_everywhere

        value = shown_everywhere(value.to_dict())  # type: ignore[attr-defined]
    if hasattr(value, "_repr_mimebundle_"):
        forms: dict[str, Any] = value._repr_mimebundle_(include=None, exclude=None)
        return forms
    found = value._repr_html_() if hasattr(value, "_repr_html_") else None
    return {"text/plain": repr(value), **({"text/html": found} if found else {})}


def page(name: str) -> str:
    """The page of a notebook, in Markdown."""
    parts = []
    for kind, source, output in execute(name):
        if kind == "markdown":
            # On the site a notebook is a page.
            parts.append(re.sub(r"\]\(([a-z-]+)\.ipynb\)", r"](\1.md)", source))
            continue
        parts.append(f"```python\n{source}\n```")
        if "stdout" in output:
            parts.append(f"```text\n{output['stdout'].rstrip()}\n```")
        if "text/html" in output:
            parts.append(_block(output["text/html"]))
        elif "image/svg+xml" in output:
            parts.append(_block(output["image/svg+xml"]))
        elif "text/plain" in output:
            parts.append(f"```text\n{output['text/plain']}\n```")
    link = (
        f"[The notebook]({name}.ipynb) runs as it is: `pip install 'nandlab[figures]'` and a notebook are all it needs."
    )
    return "\n\n".join([*parts, link]) + "\n"


def _block(markup: str) -> str:
    """A block of HTML, which Markdown leaves alone; a blank line would end it."""
    lines = "\n".join(line for line in markup.splitlines() if line.strip())
    return f'<div class="cell">{lines}</div>'


if __name__ == "__main__":
    for one in sys.argv[1:] or names():
        print(page(one))
