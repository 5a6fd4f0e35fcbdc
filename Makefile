# `make test` and `make demo` work on a machine that has Python, make and the package registry.
# Set-up happens once: a stamp in .venv remembers it, and is made anew when the lock, the project
# file or the Python version change.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
STAMP := $(VENV)/.ready-$(VERSION)
PIP := $(BIN)/python -m pip --disable-pip-version-check --require-virtualenv
LOCK := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--extra test --extra dev --quiet
# Arguments for pytest: make test PYTEST='-k promotion'
PYTEST ?=
# Processes that run tests: one a core, or a number
JOBS ?= auto

# Those that need neither a GPU nor torch: make bench BENCHMARKS=cpu_kernels
BENCHMARKS ?= compile_time profiling trace_io

.PHONY: bench bless clean demo format help lint lock setup test test-fast test-gpu

help: ## what the targets do
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1\t/' | expand -t 18

demo: $(STAMP) ## run a kernel, profile it, and write a trace
	@$(BIN)/python -m proton.demo

test: lint ## check style and types, then run every test
	@echo "==> pytest"
	@$(BIN)/python -m pytest -n $(JOBS) $(PYTEST)

test-fast: $(STAMP) ## run tests that compile no kernel: seconds
	@$(BIN)/python -m pytest -n $(JOBS) tests/pure tests/test_architecture.py $(PYTEST)

test-gpu: $(STAMP) ## run the tests that need an NVIDIA GPU (and torch: pip install torch)
	@$(BIN)/python -m pytest tests/gpu $(PYTEST)

bench: $(STAMP) ## measure kernels, launches, compilation and profiling on the CPU
	@for name in $(BENCHMARKS); do echo "==> $$name"; $(BIN)/python benchmarks/$$name.py || exit 1; done

format: $(STAMP) ## put imports and layout in order
	@$(BIN)/ruff check --select I --fix --quiet .
	@$(BIN)/ruff format .

lint: $(STAMP) ## check style and types
	@echo "==> ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@echo "==> mypy"
	@$(BIN)/mypy

bless: $(STAMP) ## write what the front end makes of the golden kernels as the new goldens
	@BLESS=1 $(BIN)/python -m pytest tests/ir/test_goldens.py

lock: $(STAMP) ## choose the newest versions within pyproject.toml's ranges
	@UV_CUSTOM_COMPILE_COMMAND="make lock" $(LOCK) --upgrade --output-file requirements.lock
	@! grep -nE '://|^-|^\./|file:' requirements.lock || { echo "the lock names a place"; exit 1; }

setup: $(STAMP) ## make the virtual environment

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
		{ echo "Proton needs Python 3.11 to 3.13; $(PYTHON) is $(VERSION)." \
		       "Name another one: make PYTHON=python3.12"; exit 1; }
	@if [ -x $(BIN)/python ] && [ ! -d $(VENV)/lib/python$(VERSION) ]; then \
		echo "==> removing $(VENV), made by another Python"; rm -rf $(VENV); fi
	@echo "==> virtual environment $(VENV) with Python $(VERSION)"
	@$(PYTHON) -m venv $(VENV)
	@echo "==> packages of requirements.lock (about 1 GB, once)"
	@$(PIP) install --require-hashes -r requirements.lock
	@echo "==> proton itself"
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@rm -f $(VENV)/.ready-* && touch $@

clean: ## remove everything that make made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
