# The verbs of this project. `make demo` and `make test` do all the set-up they need.
#
#   make demo        a job of ten partitions through a scheduler and two provers, each proof checked
#                    (by snarkjs where Node is there)
#   make test        every test that takes less than a minute, Rust's included
#   make test-slow   the long ones: proofs of edge sizes, soaks, fuzzing
#   make bench       measure against the peers and write docs/numbers.md; QUICK=1: small sizes,
#                    to see that the benchmarks work
#   make check       format, lint, types, import rules, generated files
#   make stubs       write the Python stubs of protos/
#   make docs        write docs/metrics.md and docs/logs.md from the code
#   make lock        write requirements/*.txt from pyproject.toml
#   make format      format everything
#   make wheels      .build/wheels: the package (with its commit) and its native extension
#   make install-scheduler PREFIX=DIR   a virtual environment with all that a scheduler needs
#   make install-prover PREFIX=DIR      the same for a prover
#   make images      partita-scheduler and partita-prover, which those two targets fill
#   make clean       remove what the targets above made

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

BUILD := .build
BIN := .venv/bin
PYTHON ?= python3
CARGO := cargo
TOOLS := $(BUILD)/tools
WHEELS := $(BUILD)/wheels
PIP := --quiet --disable-pip-version-check
NATIVE_SOURCES := $(shell find native -path native/target -prune -o -type f -print)
CODE := services clients tests tools examples benchmarks

.PHONY: demo test test-slow bench check stubs docs lock format clean setup native-wheel wheels \
	install-scheduler install-prover images

demo: setup $(if $(shell command -v npm),$(BUILD)/node.stamp)
	$(BIN)/python examples/demo.py

test: setup $(BUILD)/node.stamp
	$(CARGO) test --quiet --locked --release --manifest-path native/Cargo.toml
	$(BIN)/python -m pytest -q -m "not slow and not gpu"

test-slow: setup $(BUILD)/node.stamp
	$(BIN)/python -m pytest -q -m "slow and not gpu"

BENCHMARKS := prove service_tax dispatch upload warm_start peak setup_time
bench: setup $(BUILD)/node.stamp
	for name in $(BENCHMARKS); do QUICK=$(QUICK) $(BIN)/python -m benchmarks.$$name; done
	$(BIN)/python -m benchmarks.report

check: setup
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports
	$(BIN)/buf lint
	$(BIN)/python tools/gen_stubs.py --check
	$(BIN)/python tools/gen_docs.py --check
	$(BIN)/python tools/tidy.py
	$(BIN)/hadolint Dockerfile.*
	$(CARGO) fmt --manifest-path native/Cargo.toml --all --check
	$(CARGO) clippy --quiet --locked --release --manifest-path native/Cargo.toml --all-targets -- -D warnings

setup: $(BUILD)/venv.stamp $(BUILD)/native.stamp

$(BUILD)/venv.stamp: requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install $(PIP) --require-hashes -r requirements/dev.txt
	$(BIN)/pip install $(PIP) --no-deps --no-build-isolation --editable .
	mkdir -p $(BUILD) && touch $@

$(BUILD)/native.stamp: $(BUILD)/venv.stamp $(BUILD)/native-wheel.stamp
	$(BIN)/pip install $(PIP) --no-deps --force-reinstall $(WHEELS)/partita_native-*.whl
	touch $@

$(BUILD)/tools.stamp: requirements/build.txt
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install $(PIP) --require-hashes -r requirements/build.txt
	touch $@

native-wheel: $(BUILD)/native-wheel.stamp

$(BUILD)/native-wheel.stamp: $(BUILD)/tools.stamp $(NATIVE_SOURCES)
	rm -f $(WHEELS)/partita_native-*.whl
	$(TOOLS)/bin/maturin build --quiet --release --locked \
		--manifest-path native/crates/python/Cargo.toml --out $(WHEELS)
	touch $@

# Always made anew: it holds the commit, which changes without any of these files.
wheels: native-wheel
	rm -f $(WHEELS)/partita-*.whl
	$(TOOLS)/bin/hatchling build --target wheel --directory $(WHEELS) > /dev/null

PREFIX ?= $(error PREFIX is not set: name the folder to install into, as in PREFIX=/opt/partita)
install-scheduler install-prover: install-%: wheels
	$(PYTHON) -m venv --without-pip $(PREFIX)
	$(TOOLS)/bin/pip --python $(PREFIX)/bin/python install $(PIP) --require-hashes \
		-r requirements/$*.txt
	$(TOOLS)/bin/pip --python $(PREFIX)/bin/python install $(PIP) --no-deps --no-index \
		--force-reinstall $(WHEELS)/partita-*.whl $(WHEELS)/partita_native-*.whl

DOCKER ?= docker
IMAGE_FLAGS ?=
COMMIT ?= $(shell git rev-parse HEAD)
images: images-scheduler images-prover
images-%:
	DOCKER_BUILDKIT=1 $(DOCKER) build --file Dockerfile.$* --tag partita-$* \
		--build-arg COMMIT=$(COMMIT) $(IMAGE_FLAGS) .

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
	$(LOCK) --output-file requirements/build.txt requirements/build.in
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
