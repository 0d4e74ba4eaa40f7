# Two commands do everything on a machine with Python 3.11 or newer, pip and make: `make demo` and `make test`.
# tools/environment keeps .venv equal to the locked requirements; when it already is, it answers at once, without network.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test lint types fmt bench lock upgrade clean

python := .venv/bin/python
export PYTHONUNBUFFERED := 1

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

demo: ## see it work: set up what it needs, then run `paceline demo`
	@tools/environment runtime
	@.venv/bin/paceline demo

test: lint types ## everything that must be true: lint, types, architecture rules and all tests (ARGS="tests/core -k lanes" for some)
	$(python) -m pytest --numprocesses auto --dist worksteal $(ARGS)

lint: ## formatting and lint
	@tools/environment test
	$(python) -m ruff format --check .
	$(python) -m ruff check .

types: ## strict types
	@tools/environment test
	$(python) -m mypy

fmt: ## format the code and repair what ruff can repair
	@tools/environment test
	$(python) -m ruff check --fix .
	$(python) -m ruff format .

bench: ## run every benchmark; each prints JSON
	@tools/environment runtime
	@set -e; for script in $(wildcard benchmarks/[a-z]*.py); do echo "# $$script" >&2; $(python) "$$script"; done

lock: ## write requirements/*.txt anew from pyproject.toml, keeping the versions that still fit
	@tools/environment lock

upgrade: ## as lock, with the newest versions
	@tools/environment lock --upgrade

clean: ## remove the environment, caches and builds (never a store)
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
