# Everything a newcomer or the CI runs. `make` or `make help` lists it.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up
PIP_FLAGS := --quiet --disable-pip-version-check --no-input
PYTHONS := python3.11 python3.12 python3.13 python3.14 python3

# Those of our folders that exist: benchmarks and examples come and go, and the tools refuse a missing one.
LINTED := $(wildcard src tests tools benchmarks examples)
TYPED := $(wildcard src tests tools benchmarks)

# Compiles what was installed on all cores, where pip would use one; a package may hold templates that are no Python.
COMPILE = $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib src || true

# The shell function `find_python`: the first interpreter that runs, is new enough, and can make an environment.
# PYTHON=… on the command line goes first.
FIND_PYTHON = find_python() { \
	for candidate in $(PYTHON) $(PYTHONS); do \
		"$$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
			&& { echo "$$candidate"; return 0; }; \
	done; \
	echo "make: found no Python 3.11 or newer with venv and ensurepip among: $(PYTHON) $(PYTHONS)." \
		"Install one (on Debian: python3 and python3-venv), or name it: make PYTHON=/path/to/python3" >&2; \
	return 1; }

.PHONY: help
help:  ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' \
		| while IFS=$$'\t' read -r target text; do printf '  %-12s %s\n' "$$target" "$$text"; done

.PHONY: setup
setup: $(STAMP)  ## Create .venv from the lock file and install the package into it

$(STAMP): requirements/lock.txt pyproject.toml
	@$(FIND_PYTHON); \
	if ! $(BIN)/python -c 'import pip' 2>/dev/null; then \
		python=$$(find_python); \
		echo "setup: $(VENV) with $$("$$python" --version)"; \
		"$$python" -m venv --clear $(VENV); \
	fi
	@echo "setup: packages of requirements/lock.txt"
	@$(BIN)/python -m pip install $(PIP_FLAGS) --no-compile -r requirements/lock.txt
	@$(BIN)/python -m pip install $(PIP_FLAGS) --no-deps --no-build-isolation -e .
	@$(COMPILE)
	@touch $@

.PHONY: torch
torch: setup  ## Install PyTorch for the tests that run it; they skip without
	$(BIN)/python -m pip install $(PIP_FLAGS) --no-compile $(TORCH_FLAGS) -r requirements/torch.txt
	@$(COMPILE)

.PHONY: browser
browser: setup  ## Install Playwright, the Perfetto viewer and, where it can be, Debian's Chromium; tests in a browser skip without
	@$(BIN)/python -m pip install $(PIP_FLAGS) -r requirements/browser.txt \
		|| echo "browser: Playwright and the viewer could not be installed; tests in a browser skip" >&2
	@if ! command -v chromium >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		{ timeout 60 apt-get update -qq; timeout 180 apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 \
			|| echo "browser: Chromium could not be installed; the tests of the page skip" >&2; \
	fi

.PHONY: demo
demo: setup  ## Report on the example traces
	$(BIN)/longpole report examples/loader-bound
	$(BIN)/longpole report examples/ddp-gloo-4ranks

.PHONY: check
check: setup  ## Format, lint, types, import rule and repository checks; no tests
	@$(MAKE) --jobs=2 --output-sync=target types rules

.PHONY: types
types:
	$(BIN)/mypy $(TYPED)

.PHONY: rules
rules:
	$(BIN)/ruff format --check $(LINTED)
	$(BIN)/ruff check $(LINTED)
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.run_checks

.PHONY: test
test: check browser  ## Everything of `check`, then all tests but the slow ones
	$(BIN)/pytest -m "not slow" --numprocesses 2 --dist worksteal --durations=10

.PHONY: test-all
test-all: check browser  ## Everything of `check`, then all tests
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-full} $(BIN)/pytest --numprocesses 2 --dist worksteal --durations=25

.PHONY: coverage
coverage: setup  ## All tests but the slow ones, with branch coverage and its lower bound
	$(BIN)/pytest -m "not slow" --cov --cov-report=term-missing

.PHONY: docs-check
docs-check: setup  ## Links, lists and worked examples of the documentation
	$(BIN)/python -m tools.run_checks docs-links docs-lists
	$(BIN)/pytest tests/meta/test_docs_examples.py

.PHONY: bench
bench: setup  ## Time and memory of reading and reporting
	$(BIN)/python benchmarks/run.py

.PHONY: format
format: setup  ## Let ruff format the code and fix what it can
	$(BIN)/ruff format $(LINTED)
	$(BIN)/ruff check --fix $(LINTED)

.PHONY: lock
lock:  ## Make requirements/lock.txt anew from pyproject.toml (see requirements/README.md)
	@$(FIND_PYTHON); python=$$(find_python); "$$python" -m venv --clear .venv-lock
	.venv-lock/bin/python -m pip install $(PIP_FLAGS) --upgrade 'pip>=25.1'
	.venv-lock/bin/python -m pip install $(PIP_FLAGS) -e . \
		--group build --group lint --group test --group typing
	{ sed '/^[^#]/,$$d' requirements/lock.txt; \
		.venv-lock/bin/python -m pip freeze --exclude-editable; } > requirements/lock.txt.new
	mv requirements/lock.txt.new requirements/lock.txt
	rm -rf .venv-lock

.PHONY: clean
clean:  ## Remove caches and build output; .venv stays
	rm -rf build dist htmlcov .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find $(LINTED) -name __pycache__ -type d -prune -exec rm -rf {} +
