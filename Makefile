# The words of the project: people, CI and pre-commit use the same ones.
# A fresh machine needs Python 3.11 or newer, and nothing else.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Two more than there are cores: some tests wait for processes and clocks.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min((os.cpu_count() or 1) + 2, 16))')
PIP    := $(BIN)/pip --disable-pip-version-check install --quiet -c constraints.txt
MINUTES ?= 5
ALONE  := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest
PYTEST := $(ALONE) -n $(WORKERS) --no-loadscope-reorder
# What failed in company is asked once more, alone, and stays told: only what fails twice fails the run.
AGAIN  := { [ $$? -eq 1 ] && echo "Once more, alone, what failed above:" && $(ALONE) --last-failed --last-failed-no-failures none --maxfail 1; }

.PHONY: run test check quick unit bench fuzz base agent-file format screenshots clean

run: $(VENV)/.console  ## the console on http://127.0.0.1:8000
	$(BIN)/incident-console serve

test: $(VENV)/.test check  ## everything that must hold; browser tests where Chromium is found
	$(PYTEST) || $(AGAIN)

check: $(VENV)/.test  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

quick: $(VENV)/.test  ## the everyday run: SQLite alone, no browser, no workers or processes that are started
	$(PYTEST) -m "not benchmark and not browser and not slow"

unit: $(VENV)/.test  ## the pure functions
	$(BIN)/python -m pytest tests/unit

bench: $(VENV)/.test  ## the tables of docs/benchmarks.md; never part of `test`
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest tests/benchmarks -m benchmark -s

fuzz: $(VENV)/.test  ## changed pickles for MINUTES, led by coverage where atheris can be had; never part of `test`
	-$(PIP) -e '.[fuzz]'
	$(BIN)/python -m tests.fuzz.pickled $$(( $(MINUTES) * 60 ))

screenshots: $(VENV)/.test  ## the pictures of the README, of a seeded console
	$(BIN)/python -m tests.e2e.pictures

base:  ## proof that the agent needs nothing of the console: a fresh environment, really installed
	rm -rf build/base
	$(PYTHON) -m venv build/base
	build/base/bin/pip --disable-pip-version-check install --quiet -c constraints.txt .
	cd build && base/bin/python -I ../scripts/base-install-check base/bin/incident-console

agent-file:  ## the agent as one file to copy, for this Python, libc and machine: dist/incident-agent.tar.gz
	rm -rf build/agent-file
	$(PYTHON) -m pip --disable-pip-version-check install --quiet -c constraints.txt --target build/agent-file .
	mkdir -p dist
	PYTHON=$(PYTHON) scripts/agent-file build/agent-file dist/incident-agent.tar.gz

format: $(VENV)/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.console: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[console]'
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[test]'
	touch $@ $(VENV)/.console
