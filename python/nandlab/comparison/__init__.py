"""Comparisons: what differs between two or more runs, in their settings and in their outcomes.

    comparison = nandlab.compare("out/greedy", "out/fifo")
    comparison = nandlab.compare("greedy.toml", "fifo.toml", seeds=10, out="out/victims")
    comparison = nandlab.compare("greedy.toml", {"gc.victim": "fifo"})    # the first spec with another value
    print(comparison)                     # as `nandlab compare` prints it
    comparison.sentences                  # "p99 of writes is 12 % lower (95 % interval 9 to 15)", ...
    comparison.pairs[0].changes           # the metrics, the largest difference first
    comparison.series                     # the series of all runs, one polars data frame, for curves
    comparison.latency                    # the latency histograms of all runs, likewise
    comparison.pairs[0].without_effect    # keys without effect; singly with one_at_a_time=True
    comparison.to_dict()                  # compare.json

The first of the runs is the baseline. A difference is a ratio to the baseline. With several seeds the runs are paired
by seed, and the mean of the ratios is geometric, with its 95 % confidence interval (Student's t on the logarithms).
Where a value is 0 there is no ratio, and the difference itself is judged in the same way. A difference whose interval
contains "no change" is not clear. A key has no effect if all results are the same to the byte without its change.

The modules in the order of use: `inputs` (folders and specs) -> `execute` (the runs that are missing) -> `metrics`
(values and their names in words) -> `changes` (ratios, intervals, sentences), `identity` (results that are the same to
the byte) -> `cautions` (what misleads) -> `model`.

All specs are run with the seeds of the first one, so that runs are paired. The settings that differ are read from the
resolved specs that the results keep.
"""

from nandlab.comparison.model import Alone, Comparison, Pair, Runs, Setting, compare

__all__ = ["Alone", "Comparison", "Pair", "Runs", "Setting", "compare"]
