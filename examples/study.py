# %% [markdown]
# A study from Python: two victim policies, three sizes of over-provisioning, one table.
# Look at: the table by over-provisioning, and the verdict on the claim.
# Runs as a script, or cell by cell in an editor that supports `# %%` cells.

# %% Write the study. A study is usually a file of its own, such as studies/garbage-collection/study.toml.
import sys
import tempfile
from pathlib import Path

import nandlab

STUDY = """
[study]
title = "Greedy or FIFO?"
question = "How much less does GC write if its victim is the emptiest instead of the oldest block?"

[base.drive]
channels = 1
chips_per_channel = 1
planes_per_die = 1
blocks_per_plane = 256
pages_per_block = 32

[base.precondition]
method = "pts"

[base.workload]
synthetic = { requests = 40_000, read_fraction = 0.0, size = "4KiB", address = "uniform" }
arrival = { queue_depth = 1 }

[variants.greedy]
set = { "gc.victim" = "greedy" }
[variants.fifo]
title = "FIFO"
set = { "gc.victim" = "fifo" }

[grid]
"drive.op" = [0.1, 0.2, 0.4]

[[figures]]
id = "waf"
title = "Write amplification"
metric = "steady.waf"
over = "drive.op"

[[claims]]
figure = "waf"
what = "Write amplification of greedy relative to FIFO, over-provisioning 0.1"
value = 0.85
source = "a guess, to be replaced by what a paper reports"
measure = { where = { variant = "greedy", "drive.op" = 0.1 }, normalised_to = "fifo" }
"""

out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="nandlab-example-"))
out.mkdir(parents=True, exist_ok=True)
(out / "victims.toml").write_text(STUDY)

# %% Load the study. The specs of all runs are checked before the first run.
study = nandlab.Study.load(out / "victims.toml")
print(f"{len(study.runs)} runs; the first is {study.runs[0].row}")

# %% Run the study. Finished runs are kept, so executing this cell again simulates nothing.
result = study.run(out / "victims", workers=2)
print(f"{result.runs_done} runs done, {result.runs_kept} kept from before")

# %% One table of all results: a row per run, a column per metric.
print(study.results.select("variant", "drive.op", "steady.waf", "latency_us.write.p99", "erases.mean"))

# %% The data of a figure, and the verdicts on the claims.
print(result.figure("waf"))
for claim in result.claims:
    print(f"{claim['what']}: reported {claim['reported']}, measured {claim['measured']:.3f}: {claim['verdict']}")

# %% The report, one HTML file.
print(result.report)
