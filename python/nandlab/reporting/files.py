"""Pictures of charts as files, and the script that draws the charts of a page.

Bundling this script takes about three seconds. So the script is kept in the user's cache folder, under a name made from
the versions of its parts and with its hash.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import vl_convert

from nandlab.errors import OutputError
from nandlab.reporting.chart import Figure
from nandlab.reporting.vega import VERSION, in_file, spec_of
from nandlab.whole import write_file

#: chart.js draws by vegaEmbed, which contains Vega and Vega-Lite.
_SNIPPET = "window.vegaEmbed=vegaEmbed;"


def picture(figure: Figure, kinds: Sequence[str]) -> dict[str, bytes]:
    """The figure as SVG, PDF or PNG, by suffix; the same figure gives the same bytes."""
    spec = spec_of(figure, in_file(figure))
    svg = _renamed(vl_convert.vegalite_to_svg(spec, vl_version=VERSION))
    made: dict[str, Callable[[], bytes]] = {
        "svg": svg.encode,
        "pdf": lambda: _sorted(vl_convert.svg_to_pdf(svg)),
        "png": lambda: vl_convert.svg_to_png(svg, scale=2.5),
    }
    return {kind: made[kind]() for kind in kinds}


def _renamed(svg: str) -> str:
    """An SVG with its ids counted from 1; the renderer counts them over the life of the process."""
    seen: dict[str, str] = {}
    return re.sub(
        r"\b(clip|gradient)_?\d+\b", lambda found: seen.setdefault(found[0], f"{found[1]}{len(seen) + 1}"), svg
    )


def _sorted(pdf: bytes) -> bytes:
    """A PDF with the entries of its resources in order; the writer has them in the order of a hash table.

    The entries move within their object, so that the offsets of the objects stay right.
    """
    return re.sub(
        rb"(?:^ +/[a-zA-Z]+\d+ \d+ 0 R\n)+", lambda found: b"".join(sorted(found[0].splitlines(True))), pdf, flags=re.M
    )


@functools.cache
def script() -> str:
    """Vega, Vega-Lite and vega-embed as one script.

    Bundling takes seconds, so the script is kept in the user's cache folder, named by its versions.
    """
    parts = (vl_convert.get_vega_version(), VERSION, importlib.metadata.version("vl-convert-python"), _SNIPPET)
    name = hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]
    kept = _cache() / f"vega-{name}.js"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        seal, _, text = kept.read_text(encoding="utf-8").partition("\n")
        if seal == _seal(text):
            return text
    # Inside a page, the end tag of a script would end it.
    made = vl_convert.javascript_bundle(_SNIPPET, vl_version=VERSION).replace("</script", "<\\/script").strip() + "\n"
    # Where no cache can be written, the script is made again the next time.
    with contextlib.suppress(OSError, OutputError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_file(kept, f"{_seal(made)}\n{made}".encode())
    return made


def _seal(text: str) -> str:
    return f"// sha256 {hashlib.sha256(text.encode()).hexdigest()}"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "nandlab"
