# make audit    audit the built-in sample and say where the report lies
# make test     every check, and the wheel outside the checkout
# make format   sort imports and format
#
# PYTHON=python3.12 names the interpreter, VENV=path another virtual environment.

PYTHON ?=
VENV ?= .venv
SAMPLE ?= herald-sample
REPORT ?= herald-report
WORKERS ?= auto

BIN := $(VENV)/bin

.PHONY: audit test setup lint types imports unit wheel format clean
.NOTPARALLEL:

audit: setup
	$(BIN)/herald sample $(SAMPLE)
	$(BIN)/herald audit $(SAMPLE) --out $(REPORT)

test: setup lint types imports unit wheel

setup:
	@scripts/setup.sh "$(VENV)" "$(PYTHON)"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

unit: setup
	$(BIN)/pytest -n $(WORKERS) --dist loadfile

wheel: setup
	$(BIN)/python scripts/smoke_wheel.py

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf build dist herald_jax.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
