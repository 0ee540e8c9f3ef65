# Everything runs in .venv, which the first target that needs it creates. It is updated only when pyproject.toml changes.

PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
ARGS ?=

.PHONY: serve admin test check format parity bench clean
.DEFAULT_GOAL := serve

serve: $(RUNTIME)  ## serve the demo model (ARGS="MODEL --flag ..." for others)
	@$(BIN)/python manage.py migrate --verbosity 0
	@$(BIN)/python manage.py serve $(ARGS)

admin: $(RUNTIME)  ## make a login for the admin page (asks for a name and a password)
	@$(BIN)/python manage.py migrate --verbosity 0
	@$(BIN)/python manage.py createsuperuser $(ARGS)

test: $(DEV)  ## everything: unit tests, recorded parity (tests/parity runs what run_parity runs), live servers
	@$(BIN)/pytest -n auto $(ARGS)

check: $(DEV)  ## format, lint, types, system checks, missing migrations, fast tests
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python manage.py check --fail-level WARNING
	@$(BIN)/python manage.py makemigrations --check --dry-run
	@$(BIN)/pytest -n auto -q -m "not live and not parity" $(ARGS)

format: $(DEV)  ## rewrite the sources as `check` wants them
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

parity: $(DEV)  ## compare with the recordings of vLLM
	@$(BIN)/python manage.py run_parity $(ARGS)

bench: $(DEV)  ## requests per second, start-up time, memory
	@$(BIN)/python manage.py bench $(ARGS)

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "derender needs Python 3.11 or newer; set PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(DEV): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(RUNTIME)
