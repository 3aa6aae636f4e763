"""Studies: many runs, their figures, and what became of the claims they were made for.

A study file is TOML:

    [study]                          # title, question, base = "spec.toml" (or its keys under [base]), notes, name
    [variants.NAME]                  # title, set = { "gc.victim" = "fifo" }: keys of the spec;
                                     # facts = { soft = 0.36 }: numbers that expressions may use
    [factors.A]                      # title, off = { ... }, on = { ... }: keys of the spec; k of them make the 2^k
                                     # variants, named by the letters that are on: none, A, B, AB
    [workloads.NAME]                 # title, set, or keys of [workload] as they are: trace = "hm_0.csv.zst"; facts
    [grid]
    "drive.op" = [0.07, 0.28]        # an axis: one key, its values
    [[grid.NAME]]                    # or a point of an axis that sets several: value, title, set
    [values]
    NAME = "64KiB"                   # what "{NAME}" in a set stands for; an axis of this name takes its place
    [parts.NAME]                     # a block with variants, workloads, grid and set of its own; without: all x all
    [smoke]                          # the small size: parts, variants, workloads, grid (values kept), values, set
    [metrics]
    NAME = "1 - steady.free_share"   # arithmetic over summary.json, smart.*, steady.*, exposure.*, drive.*, spec.*,
                                     # grid axes; waf['fifo']: of the same run under that variant;
                                     # at(ecc.levels, 1), total(ecc.levels): of metrics kept by number; a run without
                                     # one of its names has no value
    [[figures]]                      # id, title, caption, kind = "line" | "bar" | "cdf", metric, over, series, panels,
                                     # where, normalised_to (a variant), reduce, mean (bars: one more place), log_x,
                                     # log_y, x_title, y_title; kind = "effects" (of factors, as
                                     # `nandlab.study.effects` defines them): metric, panels, where, y_title,
                                     # scale = "ratio" | "difference"
    [[figures.reference]]            # name, expression, where: a curve that is computed, beside the measured ones
    [[claims]]                       # figure, what, value, tolerance = { relative = 0.02 } or { absolute = 0.1 },
                                     # source, measure = { where, reduce, metric, normalised_to }, baseline,
                                     # of effects: measure = { effect = "A" } or { effect = "A:B" }, beside 0,
                                     # direction, deviation; no value and tolerance where a source gives a direction
                                     # without a number

Limits: a file of 256 KiB, 32 tables and lists within one another, 1,000 entries of a table or list, names of 100
characters and strings of 10,000, expressions of 1,000 characters and 50 operations within one another, 10,000 runs;
finite numbers of 64 bits. The name of the study and the ids of figures become file names: letters, digits, -, _ and
points.

Relative paths count from the file that names them; $NAME in a path is taken from the environment. A claim is
`reproduced` when it is within its tolerance, in the `same direction` when it is at least on the reported side of its
baseline, else `not reproduced`; one without a value is `reproduced` on the reported side.

The way of a study: `source` (the text) -> `file` (its tables) -> `definition`, with `axes` and `figures` (whether what
is named is there) -> `model`; `plan` (the runs, resolved and checked) -> `execute` (over `local` or `cluster` workers,
each doing `work`) -> `store` (what is kept) -> `metrics` -> `effects`, `judge` (figures, verdicts) -> report.
"""

from nandlab.study.problems import StudyError
from nandlab.study.study import Study, StudyResult

__all__ = ["Study", "StudyError", "StudyResult"]
