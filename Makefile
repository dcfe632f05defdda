# Two commands set everything up: `make demo` and `make test`. Both need python3, make and git only.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_VENV := .venvs/demo
AUDIT_VENV := .venvs/audit
DEMO_BIN := $(DEMO_VENV)/bin
# Weights and caches of tests and demo stay inside the checkout.
export FAST_AGENT_HOME ?= $(CURDIR)/.demo/home
PIP := -m pip --disable-pip-version-check install --quiet --require-hashes
EXTRAS := core local openai anthropic google temporal all dev build

.DEFAULT_GOAL := help
.PHONY: help demo demo-workflows test fuzz soak check format lint types imports bench bench-peers lock audit docs clean setup weights

help:  ## Say what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

# Make a virtual environment $(1) with what requirements/$(2).txt pins and this checkout. uv takes a
# fifth of the time of pip, but does not read its configuration: where only that names the index, or
# what else is needed to reach it, pip installs.
define install
	$(PYTHON) -m venv $(1)
	$(1)/bin/python $(PIP) -r requirements/build.txt
	$(1)/bin/uv pip install --quiet --python $(1)/bin/python --compile-bytecode --require-hashes \
	  -r requirements/$(2).txt || $(1)/bin/python $(PIP) -r requirements/$(2).txt
	$(1)/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --no-build-isolation --editable .
endef

# A virtual environment is complete when its stamp is newer than the lock it was installed from.
$(VENV)/.ready: requirements/dev.txt requirements/build.txt pyproject.toml
	$(call install,$(VENV),dev)
	@touch $@

$(DEMO_VENV)/.ready: requirements/demo.txt requirements/build.txt pyproject.toml
	$(call install,$(DEMO_VENV),demo)
	@touch $@

setup: $(VENV)/.ready  ## Install everything a contributor needs into .venv

weights: setup  ## Fetch the small local model into .demo/home
	@$(BIN)/fast-agent models pull smollm2 --quiet

demo: $(DEMO_VENV)/.ready  ## Run a card set on real input: the local model, then every kind of tool
	@PATH="$(CURDIR)/$(DEMO_BIN):$$PATH" $(DEMO_BIN)/python examples/demo/demo.py

demo-workflows: $(DEMO_VENV)/.ready  ## Run a card set of every kind of workflow, offline
	@PATH="$(CURDIR)/$(DEMO_BIN):$$PATH" $(DEMO_BIN)/python examples/workflows.py

.PHONY: demo-cluster
demo-cluster: $(DEMO_VENV)/.ready  ## Run a batch of 1,000 items over two workers, and kill one midway
	@PATH="$(CURDIR)/$(DEMO_BIN):$$PATH" $(DEMO_BIN)/python examples/cluster/demo.py

TRACING_VENV := .venvs/tracing
$(TRACING_VENV)/.ready: requirements/tracing.txt requirements/build.txt pyproject.toml
	$(call install,$(TRACING_VENV),tracing)
	@touch $@

.PHONY: demo-tracing
demo-tracing: $(TRACING_VENV)/.ready  ## Show the trace of a workflow in a viewer on this machine
	@PATH="$(CURDIR)/$(TRACING_VENV)/bin:$$PATH" $(TRACING_VENV)/bin/python examples/tracing/demo.py

# Tests of several servers. They wait more than they compute, so `.ci/run` has them run among all others.
CLUSTER := tests/sessions/postgres tests/serve/test_replicas.py tests/engine/temporal \
  tests/models/test_shared_limits.py
TESTS ?= $(CLUSTER:%=--ignore=%)

test: weights  ## Set everything up and run the tests
	@# Where Python may not write bytecode, each of some thousand processes would compile the program.
	@$(BIN)/python -m compileall -q src tests
	@# Each process would rewrite the assertions of all tests, in 20 seconds; the tests that fail run
	@# again alone, where they are.
	$(BIN)/python -m pytest --cache-clear --assert=plain --numprocesses 4 --dist worksteal $(TESTS) || \
	  { [ $$? = 1 ] && $(BIN)/python -m tests.alone; }
	@$(BIN)/python -m tests.conformance.run

.PHONY: postgresql
postgresql:  ## Install PostgreSQL and PgBouncer where this may
	@{ command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; } >/dev/null 2>&1 && \
	  { command -v pgbouncer || ls /usr/sbin/pgbouncer; } >/dev/null 2>&1 || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -q && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -q -y postgresql pgbouncer; } || true

.PHONY: test-cluster
test-cluster: setup postgresql  ## Run the tests of several servers and of Temporal
	@$(BIN)/python -m compileall -q src tests
	$(BIN)/python -m pytest --cache-clear -rs --numprocesses 2 --dist worksteal $(CLUSTER) || \
	  { [ $$? = 1 ] && $(BIN)/python -m tests.alone; }

.PHONY: screens
screens: setup  ## Write the screens of the terminal again, as text for tests and pictures for docs
	WRITE_SCREENS=1 $(BIN)/python -m pytest -q tests/tui/test_screens.py

.PHONY: loops
loops: setup  ## Run the tests of agents, workflows, apps and servers by every runner of coroutines
	for runner in asyncio.run anyio.run "running loop" uvloop.run; do \
	  $(BIN)/python -m pytest --numprocesses 2 --dist worksteal --runner "$$runner" \
	    tests/agents tests/runtime tests/workflows tests/app tests/serve || exit 1; done

fuzz: setup  ## Run the fuzz tests long, and another way each time
	HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest --timeout 3600 tests/fuzz
	HOSTILE_SEED=$$(date +%s) HOSTILE_ROUNDS=1000 $(BIN)/python -m pytest \
	  tests/hostile/test_generator.py
	EXPORTED_CARDS=10000 $(BIN)/python -m pytest tests/formats/test_export.py

.PHONY: test-faults
test-faults: setup  ## Kill batches of every type of card at each boundary of their steps, and 500 times at random
	$(BIN)/python -m tests.engine.faults

.PHONY: test-long
test-long: setup  ## Hold a conversation of 10,000 turns on a Temporal server, some minutes long
	$(BIN)/python -m tests.engine.temporal.long_conversation

soak: setup  ## Let random editors and clients at real servers for SOAK_MINUTES, 30 if not said
	$(BIN)/python -m tests.soak.run

check: setup format-check lint types imports docs-check test  ## What a contributor runs before a commit

.PHONY: format-check docs-check conformance house mutants
format: setup  ## Format the code and mend what can be mended
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .

format-check: setup
	$(BIN)/ruff format --check --quiet .

lint: setup  ## Lint
	$(BIN)/ruff check --quiet .

types: setup  ## Check types, strictly
	$(BIN)/basedpyright

imports: setup  ## Check that imports go down the list of rooms
	$(BIN)/lint-imports --no-cache > .demo-imports.log 2>&1 || (cat .demo-imports.log; rm -f .demo-imports.log; exit 1)
	@rm -f .demo-imports.log

docs: setup  ## Write the generated references into docs/
	$(BIN)/python docs/generate.py

docs-check: setup
	$(BIN)/python docs/generate.py --check

bench: weights  ## Measure the figures and print them as a table
	$(BIN)/python -m bench

.PHONY: bench-pairs
bench-pairs: setup  ## Compare with commit AGAINST in processor time, 20 pairs; FAMILIES="turn tool" for others
	$(BIN)/python -m bench.pairs $(if $(AGAINST),--against $(AGAINST)) $(FAMILIES)

bench-peers: weights  ## The same, with the peer from the package registry beside it
	$(BIN)/python -m bench --peers

mutants: setup  ## Run a sample of mutants of five rooms, and list those that no test of the room kills
	@$(BIN)/python -m tests.mutants

house: setup  ## Count how the source stands to its goals
	@$(BIN)/python -m bench.house

conformance: setup  ## Run the official MCP scenarios and the Inspector; fetches Node where there is none
	$(BIN)/python -m tests.conformance.run

lock: setup  ## Pin every dependency anew, with hashes and without addresses
	$(BIN)/python requirements/lock.py

$(AUDIT_VENV)/.ready: requirements/audit.txt
	$(PYTHON) -m venv $(AUDIT_VENV)
	$(AUDIT_VENV)/bin/python $(PIP) -r requirements/audit.txt
	@touch $@

audit: $(AUDIT_VENV)/.ready  ## Look up known vulnerabilities of every pinned package
	$(AUDIT_VENV)/bin/python requirements/audit.py

clean:  ## Remove what make made
	rm -rf .venv .venvs .demo build dist .pytest_cache .ruff_cache .hypothesis
