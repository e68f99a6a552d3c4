# Two commands on a fresh machine: `make demo` and `make test`. Each sets up its own virtual environment first.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
HOME_FOLDER ?= demo-runs

.PHONY: demo test lint types imports debian unit docs clean

demo: $(VENV)/.installed
	$(BIN)/platform sweep sweeps/loo.yaml --scale smoke --home $(HOME_FOLDER)

test: lint types imports unit

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	$(BIN)/pyright --pythonpath $(BIN)/python

imports: $(VENV)/.installed-dev
	$(BIN)/lint-imports

# The sandbox has two isolations; without root or apt only the one that needs no package is tested.
debian:
	@command -v bwrap >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && apt-get update -qq >/dev/null && apt-get install -y -qq bubblewrap >/dev/null; } \
	  || echo "bubblewrap cannot be installed: the sandbox is tested with its own namespaces alone"

unit: $(VENV)/.installed-dev debian
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)

# torch first and pinned: another package's open range would bring gigabytes of CUDA libraries.
$(VENV)/.installed: $(VENV)/bin/pip pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dashboard]'
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dashboard,dev]'
	touch $@

# The page of every setting, from the models themselves.
docs: $(VENV)/.installed
	$(BIN)/python -m scalerl.recipe.reference > docs/recipes.md

clean:
	rm -rf $(VENV) $(HOME_FOLDER) .pytest_cache .ruff_cache .import_linter_cache
