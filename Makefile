# The verbs of this project. `make demo` and `make test` do all the set-up they need.
#
#   make demo        a job of ten partitions through a scheduler and two provers, each proof checked
#                    (by snarkjs where Node is there)
#   make test        every test that takes less than a minute, Rust's included
#   make test-slow   the long ones: proofs of edge sizes, soaks, fuzzing
#   make check       format, lint, types, import rules, generated files
#   make stubs       write the Python stubs of protos/
#   make docs        write docs/metrics.md and docs/logs.md from the code
#   make lock        write requirements/*.txt from pyproject.toml
#   make format      format everything
#   make clean       remove what the targets above made

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

BUILD := .build
BIN := .venv/bin
PYTHON ?= python3
CARGO := cargo
NATIVE_SOURCES := $(shell find native -path native/target -prune -o -type f -print)
CODE := services clients tests tools examples

.PHONY: demo test test-slow check stubs docs lock format clean setup

demo: setup $(if $(shell command -v npm),$(BUILD)/node.stamp)
	$(BIN)/python examples/demo.py

test: setup $(BUILD)/node.stamp
	$(CARGO) test --quiet --locked --release --manifest-path native/Cargo.toml
	$(BIN)/python -m pytest -q -m "not slow and not gpu"

test-slow: setup $(BUILD)/node.stamp
	$(BIN)/python -m pytest -q -m "slow and not gpu"

check: setup
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports
	$(BIN)/buf lint
	$(BIN)/python tools/gen_stubs.py --check
	$(BIN)/python tools/gen_docs.py --check
	$(BIN)/python tools/tidy.py
	$(CARGO) fmt --manifest-path native/Cargo.toml --all --check
	$(CARGO) clippy --quiet --locked --release --manifest-path native/Cargo.toml --all-targets -- -D warnings

setup: $(BUILD)/venv.stamp $(BUILD)/native.stamp

$(BUILD)/venv.stamp: requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	mkdir -p $(BUILD) && touch $@

$(BUILD)/native.stamp: $(BUILD)/venv.stamp $(NATIVE_SOURCES)
	rm -rf $(BUILD)/wheels
	$(BIN)/maturin build --quiet --release --locked \
		--manifest-path native/crates/python/Cargo.toml --out $(BUILD)/wheels
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall \
		$(BUILD)/wheels/partita_native-*.whl
	touch $@

$(BUILD)/node.stamp: tools/node/package.json tools/node/package-lock.json
	cd tools/node && npm ci --silent --no-audit --no-fund
	mkdir -p $(BUILD) && touch $@

stubs: setup
	$(BIN)/python tools/gen_stubs.py

docs: setup
	$(BIN)/python tools/gen_docs.py

LOCK := $(BIN)/pip-compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links \
	--allow-unsafe --strip-extras
lock: $(BUILD)/venv.stamp
	$(LOCK) --output-file requirements/base.txt pyproject.toml
	$(LOCK) --extra scheduler --output-file requirements/scheduler.txt pyproject.toml
	$(LOCK) --extra prover --output-file requirements/prover.txt pyproject.toml
	$(LOCK) --extra scheduler --extra prover --extra dev --output-file requirements/dev.txt pyproject.toml

format: setup
	$(BIN)/ruff check --quiet --fix $(CODE) || true
	$(BIN)/ruff format $(CODE)
	$(CARGO) fmt --manifest-path native/Cargo.toml --all

clean:
	rm -rf .venv $(BUILD) native/target tools/node/node_modules
