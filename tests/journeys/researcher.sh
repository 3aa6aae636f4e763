#!/usr/bin/env bash
# A researcher writes a GC policy and compares it with its baselines, in a clone of the repository $REPOSITORY.
set -euo pipefail

git clone --quiet "$REPOSITORY" nandlab
cd nandlab

# The policy of CONTRIBUTING.md: its file, and its line in the table of policies.
awk '/^```rust$/ { on = 1; next } /^```$/ { if (on) exit } on' CONTRIBUTING.md > crates/nandlab/src/background/gc/windowed_greedy.rs
sed -i 's/^    partial_aware,$/    partial_aware,\n    windowed_greedy,/' crates/nandlab/src/background/gc/mod.rs
make dev

.venv/bin/nandlab spec policies | grep windowed-greedy
.venv/bin/nandlab run examples/small.toml --verify --set gc.victim.windowed-greedy='{ w = 16 }' --out out/verified
.venv/bin/nandlab compare examples/small.toml gc.victim=fifo gc.victim.windowed-greedy='{ w = 16 }' --seeds 3 --out out/policies
test -s out/policies/compare.html
