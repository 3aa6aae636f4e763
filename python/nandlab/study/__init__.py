"""Studies: many runs of a base spec, with figures, and verdicts on claims.

A study file is TOML:

    [study]                          # title, question, base = "spec.toml" (or its keys under [base]), notes, name;
                                     # replicates = 10: seeds of each run, from that of the base on;
                                     # setting: the part whose runs judge the headlines;
                                     # extends = "study.toml": takes over base, values, variants, factors,
                                     # workloads, parameters and metrics of this study
    [parameters]                     # where the values of keys of the spec come from: "ecc.levels" =
                                     # { sourced = "Tables I and II" }, { derived = ... }, { assumed = ... }, or
                                     # { calibrated = "to which number", sensitivity = FIGURE, claims = [CLAIM],
                                     # checks = [CLAIM] }: claims on this number, and on workloads left out of the
                                     # fit; at most two are calibrated
    [variants.NAME]                  # title, set = { "gc.victim" = "fifo" }: keys of the spec;
                                     # facts = { soft = 0.36 }: numbers that expressions may use
    [factors.A]                      # title, off = { ... }, on = { ... }: keys of the spec; k factors make 2^k
                                     # variants, named by the letters that are on: none, A, B, AB
    [workloads.NAME]                 # title, set, facts, or keys of [workload]: trace = "hm_0.csv.zst"
    [grid]
    "drive.op" = [0.07, 0.28]        # an axis: a key and its values
    [[grid.NAME]]                    # or a point of an axis that sets several keys: value, title, set
    [values]
    NAME = "64KiB"                   # the value of "{NAME}" in a set; an axis of this name replaces it;
                                     # "{busy / load}": a number from values, axes and facts
    [parts.NAME]                     # a block with its own variants, workloads, grid, set and replicates; without
                                     # parts: all x all
    [smoke]                          # the smoke size: parts, variants, workloads, grid (values to keep), values, set
    [metrics]
    NAME = "1 - steady.free_share"   # arithmetic over summary.json, smart.*, steady.*, exposure.*, load.*, drive.*,
                                     # copybacks.*, spec.*, grid axes; waf['fifo']: waf of the same run with variant
                                     # fifo; at(ecc.levels, 1), total(ecc.levels): entry and sum of a metric by number;
                                     # no value for a run without one of the names
    [[figures]]                      # id, title, caption, kind = "line" | "bar" | "cdf", metric, over, series, panels,
                                     # where, normalised_to (a variant), reduce, mean (bars: adds their means), log_x,
                                     # log_y, x_title, y_title; kind = "effects" (of factors; see
                                     # `nandlab.study.effects`): metric, panels, where, y_title,
                                     # scale = "ratio" | "difference"
    [[figures.reference]]            # name, expression, where: a computed curve beside the measured ones
    [[claims]]                       # figure, what, value, source, measure = { where, reduce, metric, normalised_to },
                                     # or, for a mean over runs, average = "ratio-of-means" | "mean-of-ratios" |
                                     # "geomean" in place of reduce; baseline; of effects:
                                     # measure = { effect = "A" } or { effect = "A:B" }, baseline 0;
                                     # direction = "above" | "below" | "not above" | "not below" the baseline: without a
                                     # value when the source reports no number;
                                     # tolerance = { relative = 0.02 } or { absolute = 0.1 }; effect: the reported
                                     # effect if it is not value - baseline; headline = true; inferred = true: a value
                                     # that the study infers against the words of the source;
                                     # by_workload: a fact, the reported value of each workload; each = true: must hold
                                     # for each workload; testable = { why, metric, where, reduce, above or below }, or
                                     # { why } if it never is; deviation: why it does not come out,
                                     # in which {CLAIM} and {CLAIM.WORKLOAD} are measured values.
                                     # In place of value and direction: monotone = { over = AXIS, direction =
                                     # "rising" | "falling" }, or correlated = { against = EXPRESSION, direction };
                                     # beside a direction: most = true, in more than half of the workloads

The study that varies the assumed and scaled parameters of another one, in the same folder: the other one has
`[study] ranges = "maps.toml"`, this one `[study] extends = "study.toml"` and parts with `range = KEY`, an entry of
[parameters] or of [values]. Each headline of the other study is judged at each point of these parts. The other study
then refuses an `assumed` value that no part varies, unless `untouched = "..."` says why the value cannot touch a claim.

Limits: files of 256 KiB, 32 levels of nested tables and lists, 1,000 entries of a table or list, names of 100
characters and strings of 10,000, expressions of 1,000 characters and 50 levels of nested operations, 10,000 runs,
finite numbers of 64 bits. The name of the study and the ids of figures become file names: letters, digits, -, _ and
points.

A relative path starts at the directory of the file that contains it. In the study file, $NAME in the path of an input
file (`workload.trace`, `precondition.load`, `reliability.rber.table`) is an environment variable.

The replicates of a run differ only in their seed, which renews workload, fill and policies. A measure is reduced over
the runs of each seed, and baselines are paired by seed; the measured value is the mean over the seeds, with its 95 %
confidence interval (Student's t). With one seed the value stands for the interval. `ratio-of-means` evaluates the
metric on the means of its own metrics over the runs. Every claim shows the averages that it does not use.

The tolerance of a value is a quarter of the reported effect, value - baseline, and at least 0.005; a study may give a
narrower one. The verdict on a claim:

- `reproduced`: the whole interval lies within the tolerance; `fitted` if a parameter is calibrated to the claim;
- `reproduced at a setting`: a headline of a study with `ranges`, reproduced at the setting of the study but not at each
  point of the ranges, or the ranges have not been run with this build (`ranges.json` beside the study's folder);
- `inferred`: as `reproduced`, for a reading that the study infers against the words of the source, such as a misprint;
  with `ranges` it is judged at each point of the ranges too, and never counts as reproduced;
- `undecided`: the interval lies partly within the tolerance;
- `same direction`: outside the tolerance, and beyond the baseline on the reported side; else `not reproduced`;
- `not testable`: the effect cannot occur in the set-up, by the condition `testable` of the claim.

A direction is `reproduced` when the whole interval of the difference from the baseline is beyond the tolerance, by
default 0.5 % of the baseline; "not above" and "not below" allow a difference up to the tolerance. At smoke size a claim
without runs is `not measured`.

A claim that a measure is monotone in a setting has a verdict for each step between neighbouring values of the axis,
paired by seed: all steps must be in the claimed direction; a step whose interval contains 0 makes the claim
`undecided`, a step in the other direction `not reproduced`. A claim that a measure rises or falls with a property of
the workloads (a fact, or a metric, whose mean over the runs of a workload counts) is judged by Spearman's rank
correlation over the workloads; its interval has the 2.5 and 97.5 % quantiles of 10,000 resamples of the workloads. A
claim on most workloads is `reproduced` if more than half of the workloads are for it, each by its own interval, `not
reproduced` if the others are too many, else `undecided`.

The modules in the order of use: `source` (text) -> `file` (tables) -> `definition`, with `axes`, `figures`,
`claims` and `parameters` (checks of names) -> `model`; `plan` (the runs, resolved and checked) -> `execute` (over
`local` or `cluster` workers, each doing `work`) -> `store` (finished runs) -> `metrics` -> `effects`, `sample` (means
and intervals over seeds) -> `judge` (verdicts), `draw` (the data of figures) -> report.
"""

import lazy_loader

# Parts of the package are used by comparisons and reports, which need no study.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
