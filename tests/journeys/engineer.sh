#!/usr/bin/env bash
# An engineer decides between two settings of a drive under a trace of blktrace, in an empty folder.
set -euo pipefail

# The output of `blkparse`: 300 requests per second, mostly writes to a fifth of the addresses.
awk 'BEGIN {
    srand(1)
    for (n = 0; n < 30000; n++) {
        hot = rand() < 0.8
        page = int(rand() * (hot ? 60000 : 300000))
        op = rand() < 0.7 ? "WS" : "R"
        printf "8,0 0 %d %.9f 100 Q %s %d + 8 [db]\n", n + 1, n / 300, op, page * 8
    }
}' > db.blkparse
nandlab trace stat db.blkparse

cat > drive.toml <<'SPEC'
[drive]
channels = 2
chips_per_channel = 1
planes_per_die = 2
blocks_per_plane = 256
pages_per_block = 256
page_size = "8KiB"
cell = "mlc"
op = 0.07
[gc]
victim = "greedy"
[precondition]
used = 0.95
valid = 0.80
[workload]
trace = "db.blkparse"
beyond = "wrap"
repeat = 8
SPEC
nandlab spec check drive.toml

# Does another GC policy help the latency and the lifetime? Each ratio has a 95 % interval.
nandlab compare drive.toml gc.victim=cost-benefit --seeds 3 --out policies
grep -q '"ratio_interval": \[' policies/compare.json
test -s policies/compare.html
