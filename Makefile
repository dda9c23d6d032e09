# `make demo` and `make test` need python3 (3.11 or newer), its venv module, and make; everything else they set up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
MODELS := $(wildcard symdual/paper/models/[a-z]*.py examples/[a-z]*.py tests/models/[a-z]*.py)

.PHONY: demo test soak docs lint generated clean

# derive and check an example, then the paper's experiments in a quick version, with figures and a page
demo: $(READY)
	@$(BIN)/symdual show symdual/paper/models/schedule.py
	@$(BIN)/symdual check --kernels symdual/paper/models/schedule.py -o out/paper/generated
	@rm -rf out/paper/sweeps
	@$(BIN)/symdual paper run --quick -o out/paper

test: $(READY) lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

# the tests that take too long for every change; fails if there are none
soak: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m soak

# the documentation site, offline, with everything in it run; warnings are errors
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -b html -d out/docs/trees docs out/docs/html
	@echo "open out/docs/html/index.html"

$(VENV)/.docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	@touch $@

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# write generated/ again; a test compares it with a fresh run
generated: $(READY)
	for model in $(MODELS); do $(BIN)/symdual generate $$model -o generated --no-compile || exit 1; done

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[plot,pandas,cluster,gym]" --group test
	@touch $@

clean:
	rm -rf $(VENV) out dist build docs/gallery docs/sg_execution_times.rst .pytest_cache .mypy_cache .ruff_cache
