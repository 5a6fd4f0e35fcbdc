# `make test` and `make demo` work on a machine that has Python, make and the package registry.
# Set-up happens once: a stamp in .venv remembers it, and is made anew when the lock, the project
# file or the Python version change.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
STAMP := $(VENV)/.ready-$(VERSION)
# What the demo needs is less, and a full set-up has it.
DEMO := $(if $(wildcard $(STAMP)),$(STAMP),$(VENV)/.demo-$(VERSION))
INSTALL := $(BIN)/python scripts/install.py
LOCK := UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile pyproject.toml --universal \
	--python-version 3.11 --generate-hashes --quiet
# The MLIR wheel asks for CUDA's bindings, of which nothing is used on a CPU.
WITHOUT := $(addprefix --no-emit-package ,cuda-bindings cuda-core cuda-pathfinder)
# Arguments for pytest: make test PYTEST='-k promotion'
PYTEST ?=
# Processes that run tests: one a core, or a number
JOBS ?= auto
# Make fuzz draws this many times what tests count, of which make test draws half.
FUZZ ?= 10

# For pictures of Perfetto and of HTML pages
BROWSER ?= chromium

# mypy looks for garbage, of which it makes little, whenever it has made 200,000 objects more: a fifth
# of its time.
define MYPY
$(BIN)/python -c 'import gc, sys; own = gc.set_threshold; \
	gc.set_threshold = lambda *_: own(1000000, 50, 1000); sys.argv[0] = "mypy"; \
	from mypy.__main__ import console_entry; console_entry()'
endef

# Those that need neither a GPU nor torch: make bench BENCHMARKS=cpu_kernels
BENCHMARKS ?= compile_time profiling trace_io viewer

# Bytecode lies in the environment, and nowhere else: without any, each start of Python compiles all
# that it imports, which takes seconds. So it is written here where nobody wants it beside sources.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(abspath $(VENV))/bytecode

.PHONY: bench bless clean corpus demo docs docs-pictures format fuzz help lint lock replay setup style test \
	test-fast test-gpu test-torch

help: ## what the targets do
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1\t/' | expand -t 22

demo: $(DEMO) ## run a kernel, profile it, and write a trace
	@$(BIN)/python -m proton.demo

# mypy is one process, and takes as long as hundreds of tests: it runs beside them, and what it says
# comes behind what they say. Nobody reads the cache that it would leave in CI.
test: style ## check style, then types and every test
	@log=$$(mktemp); $(MYPY) $(if $(CI),--cache-dir=/dev/null) >"$$log" 2>&1 & mypy=$$!; \
	trap 'kill $$mypy 2>/dev/null; rm -f "$$log"' EXIT; \
	echo "==> pytest"; $(BIN)/python -m pytest -n $(JOBS) $(PYTEST); tests=$$?; \
	echo "==> mypy"; wait $$mypy; types=$$?; cat "$$log"; exit $$((tests ? tests : types))

test-fast: $(STAMP) ## run tests that compile no kernel: seconds
	@$(BIN)/python -m pytest -n $(JOBS) tests/pure tests/test_architecture.py $(PYTEST)

# make test draws the same examples each time; these are new each time.
fuzz: $(STAMP) ## run the tests that draw random examples, more of them, from a new seed
	@seed=$${PROTON_TEST_SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; \
	echo "==> again: make fuzz FUZZ=$(FUZZ) PROTON_TEST_SEED=$$seed"; \
	PROTON_TEST_FUZZ=$(FUZZ) PROTON_TEST_SEED=$$seed \
		$(BIN)/python -m pytest -n $(JOBS) $(PYTEST)

# JOBS=15: in so many processes. Without worksteal all tests of the GPU are one process's.
test-gpu: $(STAMP) ## run the tests that need an NVIDIA GPU (and torch: pip install torch)
	@$(BIN)/python -m pytest $(if $(filter-out auto,$(JOBS)),-n $(JOBS) --dist worksteal) tests/gpu $(PYTEST)

# CORPUS='--only norm': see benchmarks/corpus.py. It needs a Python with torch and the libraries.
corpus: $(STAMP) ## kernels of public libraries on a GPU, by Proton and by Triton
	@$(TORCH) benchmarks/corpus.py $(CORPUS)

# TORCH is a Python with torch (its wheel for CPUs will do) beside what the lock has.
TORCH ?= $(BIN)/python
DEVICE ?= cpu
test-torch: $(STAMP) ## run torch.compile's tests, with TORCH=python that has torch (DEVICE=cuda)
	@PROTON_TEST_TORCH=$(DEVICE) $(TORCH) -m pytest -n 0 -p no:logging -W default tests/torch_compile $(PYTEST)

replay: $(STAMP) ## compare the code of kernels with that of BASE=commit (REPLAY='--tests tests/cpu')
	@$(BIN)/python scripts/replay.py $(BASE) $(REPLAY)

bench: $(STAMP) ## measure kernels, launches, compilation and profiling on the CPU
	@for name in $(BENCHMARKS); do echo "==> $$name"; $(BIN)/python benchmarks/$$name.py || exit 1; done

format: $(STAMP) ## put imports and layout in order
	@$(BIN)/ruff check --select I --fix --quiet .
	@$(BIN)/ruff format .

lint: style ## check style and types
	@echo "==> mypy"
	@$(MYPY)

style: $(STAMP)
	@echo "==> ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .

docs: $(STAMP) ## build the site into site/; a broken link fails
	@$(BIN)/mkdocs build

docs-pictures: $(STAMP) ## make the pictures and outputs in docs anew (BROWSER=chromium)
	@$(BIN)/python scripts/docs_pictures.py --browser $(BROWSER)

bless: $(STAMP) ## write what the front end makes of the golden kernels as the new goldens
	@BLESS=1 $(BIN)/python -m pytest tests/ir/test_goldens.py

lock: $(STAMP) ## choose the newest versions within pyproject.toml's ranges
	@$(LOCK) --extra dev --upgrade --output-file requirements.lock
	@$(LOCK) --extra cpu --extra build --constraint requirements.lock $(WITHOUT) --upgrade \
		--output-file requirements-demo.lock
	@! grep -nE '://|^-|^\./|file:' requirements*.lock || { echo "the lock names a place"; exit 1; }

setup: $(STAMP) ## make the virtual environment

define virtual_environment
@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
	{ echo "Proton needs Python 3.11 to 3.13; $(PYTHON) is $(VERSION)." \
	       "Name another one: make PYTHON=python3.12"; exit 1; }
@if [ -x $(BIN)/python ] && [ ! -d $(VENV)/lib/python$(VERSION) ]; then \
	echo "==> removing $(VENV), made by another Python"; rm -rf $(VENV); fi
@echo "==> virtual environment $(VENV) with Python $(VERSION)"
@$(PYTHON) -m venv $(VENV)
endef

$(STAMP): requirements.lock pyproject.toml
	$(virtual_environment)
	@echo "==> packages of requirements.lock (about 1.1 GB, once)"
	@$(INSTALL) requirements.lock
	@rm -f $(VENV)/.ready-* && touch $@

$(VENV)/.demo-$(VERSION): requirements-demo.lock pyproject.toml
	$(virtual_environment)
	@echo "==> packages of requirements-demo.lock (170 MB to fetch, 0.5 GB on disk, once)"
	@$(INSTALL) requirements-demo.lock
	@touch $@

clean: ## remove everything that make made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
