# Two commands for a fresh machine: `make demo` and `make test`. Needs Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := demo

.PHONY: demo test lint wheel diagnosis clean

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("npu-advisor needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

# Writes a sample profile with known problems, analyses it, and says where the report is.
demo: $(VENV)/installed
	rm -rf $(DEMO)
	$(BIN)/advisor sample $(DEMO)/profile
	$(BIN)/advisor run $(DEMO)/profile -o $(DEMO)/report

test: $(VENV)/installed
	$(BIN)/python -m pytest -q -n auto

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Builds the wheel and runs it in an environment that has nothing else, beside the example plugin's own wheel.
wheel: $(VENV)/installed
	$(BIN)/python .ci/check_wheel.py

clean:
	rm -rf $(VENV) $(DEMO) build dist advisor-report
