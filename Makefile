# Attention Queue: everything a checkout needs, with nothing but Python 3.11 or newer, pip and make.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
STYLED := $(wildcard src tests examples benchmarks scripts)

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test unit check bench soak docs clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## Watch a thousand shops share a few workers (under two minutes)
	$(BIN)/attn demo

test: $(READY) ## Run every test
	$(BIN)/pytest

unit: $(READY) ## Run the fast tests only (unit and contract)
	$(BIN)/pytest -q tests/unit tests/contract

check: $(READY) docs ## Check style, types, import floors and docs
	$(BIN)/ruff check $(STYLED)
	$(BIN)/ruff format --check $(STYLED)
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY) ## Measure against the engine's own ceiling; ONLY=sqlite for one engine
	$(BIN)/python -m benchmarks $(ONLY)

soak: $(READY) ## Long simulation and crash campaigns
	ATTN_TEST_SOAK=1 $(BIN)/pytest tests/simulation tests/scenario

docs: $(READY) ## Check the pages' links and anchors and run their code blocks
	$(BIN)/pytest -q tests/docs

clean: ## Remove what these commands have made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find $(STYLED) -name __pycache__ -type d -prune -exec rm -rf {} +

# The development tools are the "dev" group of pyproject.toml; older versions of pip cannot read it.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  "Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c 'import tomllib; \
	  print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"], sep="\n")' \
	  > $(VENV)/dev.txt
	$(BIN)/python -m pip install --quiet --editable . --requirement $(VENV)/dev.txt
	touch $@
