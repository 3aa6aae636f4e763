r"""Formulas of the site: `$$...$$` on its own lines, or `\(...\)` in a line, become MathML, which needs no script."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

_FENCES = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^\$\$(.+?)\$\$$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"\\\((.+?)\\\)")


def mark(markdown: str) -> str:
    """A page with a word in place of each formula, since Markdown would take MathML in a line for a paragraph."""
    parts = _FENCES.split(markdown)
    return "".join(part if part.startswith("```") else _marked(part) for part in parts)


def _marked(text: str) -> str:
    text = _BLOCK.sub(lambda found: f"\n{_word('block', found)}\n", text)
    return _INLINE.sub(lambda found: _word("inline", found), text)


def _word(display: str, found: re.Match[str]) -> str:
    return f"formula-{display}-{' '.join(found.group(1).split()).encode().hex()}-"


def replace(html: str) -> str:
    """A page with MathML in place of the words of `mark`."""
    html = re.sub(r"<p>formula-block-([0-9a-f]+)-</p>", lambda found: _mathml(found, "block"), html)
    return re.sub(r"formula-inline-([0-9a-f]+)-", lambda found: _mathml(found, "inline"), html)


def _mathml(found: re.Match[str], display: str) -> str:
    return convert(bytes.fromhex(found.group(1)).decode(), display=display)
