"""Studies: many runs of a base spec, with figures, and verdicts on claims.

A study file is TOML:

    [study]                          # title, question, base = "spec.toml" (or its keys under [base]), notes, name
    [variants.NAME]                  # title, set = { "gc.victim" = "fifo" }: keys of the spec;
                                     # facts = { soft = 0.36 }: numbers that expressions may use
    [factors.A]                      # title, off = { ... }, on = { ... }: keys of the spec; k factors make 2^k
                                     # variants, named by the letters that are on: none, A, B, AB
    [workloads.NAME]                 # title, set, facts, or keys of [workload]: trace = "hm_0.csv.zst"
    [grid]
    "drive.op" = [0.07, 0.28]        # an axis: a key and its values
    [[grid.NAME]]                    # or a point of an axis that sets several keys: value, title, set
    [values]
    NAME = "64KiB"                   # the value of "{NAME}" in a set; an axis of this name replaces it
    [parts.NAME]                     # a block with its own variants, workloads, grid and set; without parts: all x all
    [smoke]                          # the smoke size: parts, variants, workloads, grid (values to keep), values, set
    [metrics]
    NAME = "1 - steady.free_share"   # arithmetic over summary.json, smart.*, steady.*, exposure.*, drive.*, spec.*,
                                     # grid axes; waf['fifo']: waf of the same run with variant fifo;
                                     # at(ecc.levels, 1), total(ecc.levels): entry and sum of a metric by number;
                                     # no value for a run without one of the names
    [[figures]]                      # id, title, caption, kind = "line" | "bar" | "cdf", metric, over, series, panels,
                                     # where, normalised_to (a variant), reduce, mean (bars: adds their mean), log_x,
                                     # log_y, x_title, y_title; kind = "effects" (of factors; see
                                     # `nandlab.study.effects`): metric, panels, where, y_title,
                                     # scale = "ratio" | "difference"
    [[figures.reference]]            # name, expression, where: a computed curve beside the measured ones
    [[claims]]                       # figure, what, value, tolerance = { relative = 0.02 } or { absolute = 0.1 },
                                     # source, measure = { where, reduce, metric, normalised_to }, baseline,
                                     # of effects: measure = { effect = "A" } or { effect = "A:B" }, baseline 0;
                                     # direction, deviation; a direction without value and tolerance when the source
                                     # reports no number

Limits: files of 256 KiB, 32 levels of nested tables and lists, 1,000 entries of a table or list, names of 100
characters and strings of 10,000, expressions of 1,000 characters and 50 levels of nested operations, 10,000 runs,
finite numbers of 64 bits. The name of the study and the ids of figures become file names: letters, digits, -, _ and
points.

A relative path starts at the directory of the file that contains it. In the study file, $NAME in the path of an input
file (`workload.trace`, `precondition.load`, `reliability.rber.table`) is an environment variable.

A claim is `reproduced` when the measured value is within the tolerance; else in the `same direction` when it is on the
reported side of the baseline; else `not reproduced`. A claim without a value is `reproduced` on the reported side. At
smoke size a claim without runs is `not measured`.

The modules in the order of use: `source` (text) -> `file` (tables) -> `definition`, with `axes` and `figures` (checks
of names) -> `model`; `plan` (the runs, resolved and checked) -> `execute` (over `local` or `cluster` workers, each
doing `work`) -> `store` (finished runs) -> `metrics` -> `effects`, `judge` (figures, verdicts) -> report.
"""

from nandlab.study.problems import StudyError
from nandlab.study.study import Study, StudyResult

__all__ = ["Study", "StudyError", "StudyResult"]
