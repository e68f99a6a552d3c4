# Two commands on a fresh machine: `make demo` and `make test`. Each sets up its own virtual environment first.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
HOME_FOLDER ?= demo-runs

.PHONY: demo slurm-demo test lint types imports debian unit docs clean

demo: $(VENV)/.installed
	$(BIN)/platform sweep sweeps/loo.yaml --scale smoke --home $(HOME_FOLDER)

# The same study as jobs of a real Slurm of one node, which is started for it and stopped after it.
slurm-demo: $(VENV)/.installed debian
	PYTHONPATH=tests $(BIN)/python tests/slurm/demo.py --home $(HOME_FOLDER)

test: lint types imports unit

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	$(BIN)/pyright --pythonpath $(BIN)/python

imports: $(VENV)/.installed-dev
	$(BIN)/lint-imports

# Of Debian: bubblewrap for the sandbox's stronger isolation, Slurm and MariaDB for a real cluster of one node. Without root
# or apt the tests that need them are left out, and say so; on CI that is a failure.
DEBIAN := bubblewrap slurm-wlm munge slurmdbd mariadb-server
debian:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  dpkg-query -W -f '$${db:Status-Status}\n' $(DEBIAN) 2>/dev/null | grep -c '^installed$$' | grep -qx $(words $(DEBIAN)) || { \
	    apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(DEBIAN) >/dev/null; }; \
	else echo "not root, or no apt: tests that need $(DEBIAN) are left out where these are missing"; fi

unit: $(VENV)/.installed-dev debian
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)

# torch first and pinned: another package's open range would bring gigabytes of CUDA libraries.
$(VENV)/.installed: $(VENV)/bin/pip pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dashboard]'
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dashboard,dev,docs]'
	touch $@

# The pages of every setting and every command, made from the code, then the whole site into site/. Warnings are errors.
docs: $(VENV)/.installed-docs
	$(BIN)/python -m scalerl.recipe.reference > docs/recipes.md
	$(BIN)/python -m ablations.cli.reference > docs/commands.md
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dashboard,docs]'
	touch $@

clean:
	rm -rf $(VENV) $(HOME_FOLDER) site .pytest_cache .ruff_cache .import_linter_cache
