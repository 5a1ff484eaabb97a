# Two commands matter: `make demo` builds an agent from nothing and plays it, `make test` checks all of it.
# While you work, `make quick` looks at every layer in less than two minutes.
# Both work from a fresh clone with nothing but Python, make and the package index.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.up-to-date
unexport PYTHONDONTWRITEBYTECODE

.PHONY: env test test-long test-gpu test-lowest chaos quick demo house tour lint types docs lab pictures unit clean

env: $(STAMP)

# A peer without a ready-made wheel for this machine is compiled; where there is no compiler, an older wheel of it will do.
# Python compiles what is imported, and keeps it; of most packages that is little, and all of it takes half a minute.
# `kilt setup` compiles the kernels of kilt that commands call first. Tests call them too. Without it, nothing fails.
$(STAMP): pyproject.toml lab/pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"kilt needs Python 3.11 or newer; $(PYTHON) is {v[0]}.{v[1]}. Try: make PYTHON=python3.12 env")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[dev]' --editable lab || \
	$(BIN)/python -m pip install --quiet --no-compile --prefer-binary --editable '.[dev]' --editable lab
	-$(BIN)/kilt setup
	@touch $@

# Types and pages are looked at beside the tests, which leave the cores idle now and then.
test: lint
	$(MAKE) --no-print-directory --jobs 3 types docs unit

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: env
	$(BIN)/mypy

# Some tests of every layer, none of them slow, for the inner loop; kernels are compiled once.
QUICK := layers private_parts compiling machine artifact deck isomorphism gamedef games holdings cluster actions solve lp sampled \
	postprocess translate match sanity report api progress cli

quick: lint env
	$(BIN)/pytest -n 2 --dist worksteal -m 'not slow and not long' $(QUICK:%=tests/test_%.py)

unit: env
	$(BIN)/pytest -n 3 --dist worksteal -m 'not long'

# Published figures that take a walk of the full deck, by themselves.
test-long: env
	$(BIN)/pytest -m long

# Faults by the thousand: kills, full disks, damaged files, spoilt texts. An hour; what was tried is printed.
chaos: env
	$(BIN)/python tests/chaos.py

# On a machine with an NVIDIA GPU and CuPy (the extra `gpu`): the tests that need one, which others skip.
test-gpu: env
	$(BIN)/pytest tests/test_device.py tests/test_device_spots.py tests/test_external_device.py tests/test_external_device_classes.py

# Tests with the lowest versions that pyproject.toml allows, in an environment of their own. It takes Python 3.11 or 3.12:
# the lowest NumPy has no wheels for later ones. Packages of today warn old ones of what they will change.
LOWEST := .venv-lowest

test-lowest:
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --upgrade pip packaging
	$(LOWEST)/bin/python tests/lowest.py > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/python -m pip install --quiet --constraint $(LOWEST)/lowest.txt --editable '.[portable]'
	NUMBA_CACHE_DIR=$(LOWEST)/kernels $(LOWEST)/bin/pytest -n 2 -m 'not slow and not long' -W ignore::DeprecationWarning @tests/portable.txt

docs: env
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir .site

# Pages and tables that are rendered from the result files in lab/results; a test demands that nothing would change.
lab: env
	$(BIN)/kilt lab render

# What kilt draws, as the documentation shows it: some minutes. Look at the pictures before they are committed.
pictures: env
	$(BIN)/python docs/make_pictures.py

# From the rules of no-limit hold'em to an agent, its matches and a report in runs/demo: some minutes.
demo: env
	$(BIN)/kilt demo

# The agent that comes with kilt, made again: half an hour. What is in src/kilt/strategy/shipped is such a file.
# `make house DEVICE=gpu` solves on a GPU.
house: env
	$(BIN)/kilt solve src/kilt/strategy/shipped/house.toml --out runs/house $(if $(DEVICE),--device $(DEVICE))
	$(BIN)/kilt export runs/house runs/house.agent --packed

# Each line is a command to try; it is shown, then run.
define TOUR
kilt game list
kilt game show leduc
kilt game size holdem.limit.2p -a "IR 169-9000-9000-9000"
kilt game size holdem.nolimit.2p
kilt solve --game leduc --algorithm cfr+ --iterations 1000
kilt solve --game leduc --algorithm lp
kilt cards strength "As Ah Kd Kc Ks 9d 2c"
kilt cards equity AsKh "QQ+,AKs,A5s-A2s,KQs:0.5" --board Qd7h2c
cd "$$(mktemp -d)" && kilt abstraction build "IR-KE-KO 20-30-30-30" --game royal.limit.2p --out cards && kilt abstraction where cards AsKh QdJdTc
endef
export TOUR

tour: env
	@echo "$$TOUR" | while IFS= read -r line; do \
	  printf '\n\033[1m$$ %s\033[0m\n' "$$line"; \
	  PATH="$(CURDIR)/$(BIN):$$PATH" sh -c "$$line" || exit 1; \
	done

clean:
	rm -rf $(VENV) $(LOWEST) .site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -prune -exec rm -rf {} +
