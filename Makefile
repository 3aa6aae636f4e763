# The verbs of nandlab. `make` alone lists them.

SHELL := bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install
OUT ?= out
# Power cuts of `make crash`.
CUTS ?= 1000000
# Minutes of `make soak`.
SOAK ?= 10
# Specs and traces of `make inputs`.
INPUTS ?= 2000,500

export PIP_QUIET := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The binding is compiled against the environment's own interpreter.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

RUST := $(shell find crates presets -type f 2>/dev/null) Cargo.toml $(wildcard Cargo.lock)

.PHONY: help demo build result-types test test-programs check bench crash soak inputs fuzz-smoke
.DEFAULT_GOAL := help

help:
	@echo "make demo        build, run examples/demo.toml, write its report ($(OUT)/demo/report.html)"
	@echo "make build       the command nandlab, in $(BIN)/nandlab"
	@echo "make result-types  python/nandlab/result_types.py, from what the core declares"
	@echo "make test        all tests, Rust and Python"
	@echo "make check       formatting, lints, types, licences and known vulnerabilities"
	@echo "make bench       the standing workloads: requests/s, page operations/s, bytes per page"
	@echo "make crash       a million power cuts in small random drives (fewer with CUTS=...)"
	@echo "make soak        small random drives for ten minutes (more with SOAK=...), every mechanism on and off"
	@echo "make inputs      2,000 generated specs and 500 traces through the command (others with INPUTS=...)"
	@echo "make fuzz-smoke  the parsers on random input, for a short while"

demo: build
	$(BIN)/nandlab run examples/demo.toml --out $(OUT)/demo
	@echo
	@echo "the report: $$($(BIN)/nandlab report $(OUT)/demo)"

build: $(VENV)/.stamp-built

result-types: $(VENV)/.stamp-built
	$(BIN)/python tools/result_types.py

# The extension module and the tests' programs are compiled side by side: each has long stretches on one core.
test: $(VENV)/.stamp-dev
	@$(MAKE) --no-print-directory -j2 $(VENV)/.stamp-built test-programs
	cargo test --workspace
	$(BIN)/python -m pytest -n 2

test-programs:
	@cargo test --workspace --no-run

check: $(VENV)/.stamp-dev
	cargo fmt --all --check
	rustfmt --edition 2024 --check crates/nandlab/src/background/gc/*.rs crates/nandlab/src/write_cache/sync/*.rs crates/nandlab/src/copyback/policy/*.rs  # declared by a macro, which cargo fmt does not see
	cargo clippy --workspace --all-targets -- -D warnings
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy --strict python/nandlab tools
	$(BIN)/python tools/supply_chain.py check

bench:
	cargo bench -p nandlab --bench standing

crash:
	NANDLAB_CRASH_CUTS=$(CUTS) cargo test --profile crash -p nandlab --test drive power_loss::no_acknowledged_write_is_lost -- --nocapture

soak:
	NANDLAB_SOAK_MINUTES=$(SOAK) cargo test --profile crash -p nandlab --test drive random_runs::the_host_reads -- --nocapture

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
		echo "no cargo-fuzz: the smoke tests instead"; \
		cargo test -p nandlab-trace --test trace any_bytes::; \
		cargo test -p nandlab --test spec spec_fuzz::; \
	fi

# Stamps: each step runs again only when what it depends on has changed.

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
	@touch $@
