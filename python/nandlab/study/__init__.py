"""Studies: many runs of a base spec, with figures, and verdicts on claims.

A study file is TOML: `[study]` and a base spec, what is varied (`[variants.NAME]`, `[factors.A]`, `[workloads.NAME]`,
`[grid]`, `[parts.NAME]`), what is drawn (`[metrics]`, `[[figures]]`) and what is judged (`[[claims]]`). The page "Study
file" of the site (docs/reference/study-file.md) explains every key, the verdicts and the limits; a test compares its
keys with those of `file`.

The modules in the order of use: `source` (text) -> `file` (tables) -> `definition`, with `axes`, `figures`,
`claims` and `parameters` (checks of names) -> `model`; `plan` (the runs, resolved and checked) -> `execute` (over
`local` or `cluster` workers, each doing `work`) -> `store` (finished runs) -> `metrics` -> `effects`, `sample` (means
and intervals over seeds) -> `judge` (verdicts), `draw` (the data of figures) -> report.
"""

import lazy_loader

# Parts of the package are used by comparisons and reports, which need no study.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
