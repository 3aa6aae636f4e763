# The targets for developers. `make` without a target lists them.

SHELL := bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install
OUT ?= out
# Number of power cuts of `make crash`.
CUTS ?= 1000000
# Duration of `make soak` in minutes.
SOAK ?= 10
# A revision with which `make bench` compares this one.
BASE ?=
# `make instructions BLESS=1` writes the numbers on file.
BLESS ?=
# Mutants of each room of `make mutants`, and the seed of the draw.
MUTANTS ?= 25
MUTANTS_SEED ?= 1
# Frames at each point of `make frames`.
FRAMES ?= 1000
# Number of specs and number of traces of `make inputs`.
INPUTS ?= 2000,500

export PIP_QUIET := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The binding is compiled for the Python of the virtual environment.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

RUST := $(shell find crates presets -type f 2>/dev/null) Cargo.toml $(wildcard Cargo.lock)

.PHONY: help demo picture build dev docs wheel result-types test test-programs test-rust test-python check bench bench-live instructions crash soak mutants journeys inputs steady frames
.PHONY: fuzz-smoke
.DEFAULT_GOAL := help

help:
	@echo "make demo        build, compare two GC policies, write the page ($(OUT)/demo/compare.html): start here"
	@echo "make build       build the command nandlab: $(BIN)/nandlab"
	@echo "make dev         the same, compiled in a third of the time, runs a sixth slower: after a change of a policy"
	@echo "make picture     the picture of the README from the page of the demo (needs Chromium)"
	@echo "make docs        the site: tutorials, guides, explanation, reference ($(OUT)/site/index.html)"
	@echo "make wheel       wheel and source distribution in $(OUT)/wheel; the wheel runs an example where there is no Rust"
	@echo "make result-types  write python/nandlab/result_types.py from the declarations of the core"
	@echo "make test        all Rust and Python tests"
	@echo "make check       formatting, lints, types, licences and known vulnerabilities"
	@echo "make bench       the standard benchmark, the command on a trace against a bare loop, and the cost of policies"
	@echo "                 in Python; with BASE=REV: this checkout against the revision REV"
	@echo "make bench-live  the server of live drives: processor time a request beside nbdkit, and how late replies are"
	@echo "make instructions  the instructions of a page operation against those on file (BLESS=1 writes them)"
	@echo "make crash       a million power cuts in small random drives (another number with CUTS=...)"
	@echo "make soak        small random drives for ten minutes, with random mechanisms, then live drives whose power is cut"
	@echo "                 under a program on ext4 for as long, a guest of QEMU, a server that is killed 200 times, and power tests"
	@echo "make mutants     changed operators and missing statements: does a test notice? (hours; fewer with MUTANTS=...)"
	@echo "make inputs      2,000 generated specs and 500 traces through the command (other numbers with INPUTS=...)"
	@echo "make steady      the demo, steady at four times its length, is steady at twice that too (three minutes)"
	@echo "make frames      frames of the shipped codes over the channels of pages: where 1 % fail, beside what read levels"
	@echo "                 predict (FRAMES=... sets the frames at a point)"
	@echo "make journeys    what a student, an engineer and a researcher do in an empty folder (compiles a clone)"
	@echo "make fuzz-smoke  fuzz the parsers and the drive, 30 s per target"

demo:
	@echo "1 of 2: the command nandlab (one to three minutes the first time, then nothing)"
	@$(MAKE) --no-print-directory -q $(VENV)/.stamp-built || $(MAKE) --no-print-directory dev
	@echo "2 of 2: does cost-benefit GC wear a drive of 32 GiB less than greedy GC? Three seeds each (half a minute)"
	$(BIN)/nandlab compare examples/demo.toml gc.victim=greedy --seeds 3 --out $(OUT)/demo
	@echo
	@echo "Open $(OUT)/demo/compare.html in a browser. Next: $(BIN)/nandlab examples, $(BIN)/nandlab --help"

picture: $(VENV)/.stamp-dev demo
	$(BIN)/python tools/picture.py $(OUT)/demo/compare.html docs/compare.png

build: $(VENV)/.stamp-built

dev: $(VENV)/.stamp-built-dev

wheel: $(VENV)/.stamp-dev
	$(BIN)/python tools/wheel.py $(OUT)/wheel

# The build of the site is strict: a broken link or anchor fails it.
docs: $(VENV)/.stamp-dev $(VENV)/.stamp-built
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet --site-dir $(OUT)/site
	@echo "the site: $(OUT)/site/index.html"

result-types: $(VENV)/.stamp-built
	$(BIN)/python tools/result_types.py

# The extension module and the Rust test programs are compiled in parallel, because each uses only one core for long.
# Both suites run in parallel, because the tests of Python wait for a sixth of their time.
test: $(VENV)/.stamp-dev
	@$(MAKE) --no-print-directory -j2 $(VENV)/.stamp-built test-programs
	@$(MAKE) --no-print-directory -j2 test-rust test-python

test-rust:
	cargo test --workspace -- --test-threads 1

test-python: $(VENV)/.stamp-dev $(VENV)/.stamp-built
	$(BIN)/python -m pytest -n 2

test-programs:
	@cargo test --workspace --no-run

check: $(VENV)/.stamp-dev
	cargo fmt --all --check
	rustfmt --edition 2024 --check crates/nandlab/src/background/gc/*.rs crates/nandlab/src/write_cache/eviction/*.rs crates/nandlab/src/write_cache/sync/*.rs crates/nandlab/src/migration/policy/*.rs  # cargo fmt does not find these files, because macros declare their modules
	cargo clippy --workspace --all-targets -- -D warnings
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy --strict python/nandlab tools
	$(BIN)/python tools/supply_chain.py check

bench: $(VENV)/.stamp-built
ifeq ($(BASE),)
	cargo bench -p nandlab --bench standing
	$(BIN)/python tools/bench.py $(OUT)/bench
	$(BIN)/python tools/bench_policies.py
else
	$(BIN)/python tools/bench.py $(OUT)/bench --base $(BASE)
endif

bench-live: $(VENV)/.stamp-built
	cargo build --release -p nandlab-live --example memory
	$(BIN)/python tools/bench_live.py $${CARGO_TARGET_DIR:-target}/release/examples/memory

instructions: $(VENV)/.stamp-venv
	$(BIN)/python tools/instructions.py $(if $(BLESS),--bless)

crash:
	NANDLAB_CRASH_CUTS=$(CUTS) cargo test --profile crash -p nandlab --test drive power_loss::acknowledged_writes_within_the_budget_survive -- --nocapture

soak: $(VENV)/.stamp-dev $(VENV)/.stamp-built
	NANDLAB_SOAK_MINUTES=$(SOAK) cargo test --profile crash -p nandlab --test drive random_runs::the_host_reads -- --nocapture
	NANDLAB_LIVE_MINUTES=$(SOAK) $(BIN)/python -m pytest -s tests/python/test_live_soak.py
	NANDLAB_KILLS=200 $(BIN)/python -m pytest -n 2 tests/python/test_recording.py
	NANDLAB_POWER_TESTS=all $(BIN)/python -m pytest -s tests/python/test_power_test.py tests/python/test_batches.py

mutants: $(VENV)/.stamp-dev
	$(BIN)/python tools/mutants.py run $(OUT)/mutants --seed $(MUTANTS_SEED) --per-room $(MUTANTS)

steady: $(VENV)/.stamp-dev $(VENV)/.stamp-built
	NANDLAB_STEADY=1 $(BIN)/python -m pytest -n 2 tests/python/test_steady.py

frames:
	NANDLAB_FRAMES=$(FRAMES) cargo test --profile crash -p nandlab --test drive frames::the_boundaries_of_pages -- --nocapture

journeys: $(VENV)/.stamp-dev $(VENV)/.stamp-built
	NANDLAB_JOURNEYS=1 $(BIN)/python -m pytest -s tests/python/test_journeys.py

inputs: $(VENV)/.stamp-dev $(VENV)/.stamp-built
	NANDLAB_INPUTS=$(INPUTS) $(BIN)/python -m pytest -s tests/python/test_generated_input.py

fuzz-smoke: $(VENV)/.stamp-venv
	@if [ -d fuzz/fuzz_targets ] && cargo +nightly fuzz --version >/dev/null 2>&1; then \
		set -e; \
		for target in $$(cargo +nightly fuzz list); do \
			echo "fuzzing $$target"; \
			cargo +nightly fuzz run "$$target" -- -max_total_time=30 -rss_limit_mb=2048; \
		done; \
	else \
		echo "cargo-fuzz is not installed: the smoke tests run instead"; \
		cargo test -p nandlab-trace --test trace any_bytes::; \
		cargo test -p nandlab --test spec spec_fuzz::; \
	fi

# Stamps: a step runs again only if one of its dependencies has changed.

$(VENV)/.stamp-venv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "nandlab needs Python 3.11 or later; name one with PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.stamp-runtime: requirements.txt requirements-build.txt $(VENV)/.stamp-venv
	$(PIP) -r requirements.txt -r requirements-build.txt
	@touch $@

$(VENV)/.stamp-dev: requirements-dev.txt $(VENV)/.stamp-runtime
	$(PIP) -r requirements-dev.txt
	@touch $@

$(VENV)/.stamp-built: $(RUST) pyproject.toml $(VENV)/.stamp-runtime
	@command -v cargo >/dev/null || { echo "nandlab needs a Rust toolchain (cargo); install one with rustup" >&2; exit 1; }
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet
	@rm -f $(VENV)/.stamp-built-dev
	@touch $@

# The same module, compiled in a fraction of the time. `make build` replaces it.
$(VENV)/.stamp-built-dev: $(RUST) pyproject.toml $(VENV)/.stamp-runtime
	@command -v cargo >/dev/null || { echo "nandlab needs a Rust toolchain (cargo); install one with rustup" >&2; exit 1; }
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --profile dev-release --quiet
	@rm -f $(VENV)/.stamp-built
	@touch $@
