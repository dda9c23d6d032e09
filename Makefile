# `make demo` and `make test` need python3 (3.11 or newer), its venv module, and make; everything else they set up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-oldest soak docs lint generated clean

# the paper's experiments in a minute, with a page that shows them
demo: $(READY)
	@$(BIN)/symdual demo

test: $(READY) lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

# what depends on the versions of others, with the oldest ones that pyproject.toml allows, in an environment of its own
test-oldest: out/oldest/.ready
	out/oldest/bin/python -m pytest -n 2 --dist loadfile -p no:cacheprovider tests/spec tests/derive tests/emit \
	    tests/test_generated.py tests/runtime/test_problem.py tests/runtime/test_closed_loop.py tests/commands/test_generate.py

out/oldest/.ready: pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv out/oldest
	out/oldest/bin/python -m pip install --quiet --disable-pip-version-check --editable . pytest pytest-xdist hypothesis ruff --constraint tests/oldest.txt
	@touch $@

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

# write generated/ again: eight packages, and digests of all others; a test compares both with a fresh run
generated: $(READY)
	$(BIN)/python tests/goldens.py

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[pandas,cluster,gym]" --group test
	@touch $@

clean:
	rm -rf $(VENV) out dist build docs/gallery docs/sg_execution_times.rst .pytest_cache .mypy_cache .ruff_cache
