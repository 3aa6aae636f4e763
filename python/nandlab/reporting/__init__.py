"""Pages and charts: one HTML file for a result; it opens without a network.

A page is made in three steps; all need the extra `figures`.

- The content of a page is a `Page` (`content.py`) with its first sentence, notes, and sections of typed parts. The
  pages of runs, lives and RBER are here (`run_page.py`, `life_page.py`, `reliability.py`), those of a study and of a
  comparison beside what they show (`study/page.py`, `comparison/page.py`).
- `run_charts.py` and `study/charts.py` describe the charts (`chart.py`), without a drawing library. `vega.py` turns a
  description into Vega-Lite for a page, a notebook or a file; `files.py` makes SVG, PDF and PNG by vl-convert.
- `render.py` fills the templates in `templates/`, which escape every text: `base.html` is the frame of all pages,
  `parts.html` has the parts, and each kind of page has a file of its own.

The script is in a page once. The data of a chart is JSON beside its element; `chart.js` draws it, switches series, and
shows the values under the pointer or the finger. The colours are variables of `style.css` (`colours.py`), so a change
of the theme needs no new drawing. The policy in the head of a page lets the browser fetch nothing.
"""
