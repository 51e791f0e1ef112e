# Two commands for a fresh machine: `make demo` and `make test`. Needs Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := demo
PACKAGES := build/packages

# Some hundred processes are started here. Without kept bytecode each compiles the whole project and pandas anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test search lint docs names picture wheel diagnosis counterfactuals programs recordings benchmark benchmark-size report-fixtures versions lowest clean

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("npu-advisor needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --no-compile --editable '.[dev]'
	touch $@

# Writes a sample profile with known problems, analyses it, and says where the report is.
demo: $(VENV)/installed
	rm -rf $(DEMO)
	$(BIN)/advisor sample $(DEMO)/profile
	$(BIN)/advisor run $(DEMO)/profile -o $(DEMO)/report

# Some tests need Chromium, axe-core, Perfetto's trace processor or the schema of SARIF: these are fetched where that is
# possible, else the tests are skipped and say so. The tests of a file run in one process, which then makes what they share
# once.
test: $(VENV)/installed
	CHROMIUM="$$(.ci/chromium.sh)" AXE="$$(.ci/axe.sh build/axe)" PERFETTO="$$(.ci/perfetto.sh build/perfetto)" \
	SARIF_SCHEMA="$$(.ci/sarif_schema.sh build/sarif)" $(BIN)/python -m pytest -q -n auto --dist loadfile

# Property tests with many random examples, of which `make test` takes the same few each time, many damages to real
# recordings, and further variants of what `make test` does once.
search: $(VENV)/installed
	CHROMIUM="$$(.ci/chromium.sh)" AXE="$$(.ci/axe.sh build/axe)" \
	HYPOTHESIS_PROFILE=search $(BIN)/python -m pytest -q -n auto -m "hypothesis or search"

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy docs/generate.py
	$(BIN)/lint-imports
	$(BIN)/python .ci/check_portable.py advisor_core advisors reports rulesets docs examples .ci
	$(BIN)/python docs/generate.py --check

# Writes docs/reference/ from the code. `make lint` fails where it is not what the code says.
docs: $(VENV)/installed
	$(BIN)/python docs/generate.py

# Compares the registry of names with the code of the packages that have them, without installing any (about 1 GB).
names: $(VENV)/installed
	BIN=$(BIN) .ci/fetch_packages.sh $(PACKAGES)
	NPU_ADVISOR_PACKAGES=$(PACKAGES) $(BIN)/python -m pytest -q tests/names/test_packages.py

# Takes docs/images/report.png, the first screen of the report on the embedded sample.
picture: $(VENV)/installed
	$(BIN)/pip install --quiet pillow
	CHROMIUM="$$(.ci/chromium.sh)" $(BIN)/python docs/picture.py

# Simulates jobs with known causes, judges them, prints how well that went and writes docs/diagnosis.md.
diagnosis: $(VENV)/installed
	$(BIN)/python -m tests.diagnosis

# The part of it about what a change would win; with JOBS="name ..." of some jobs, which is only printed; with MINUTES=n
# no further job is begun after so long, and another run goes on where this one was.
counterfactuals: $(VENV)/installed
	$(BIN)/python -m tests.diagnosis counterfactuals $(JOBS) $(if $(MINUTES),--minutes $(MINUTES))

# Records the operators of public model code anew, for the simulator (advisor_core/sample/recorded; installs PyTorch).
recordings: $(VENV)/installed
	$(BIN)/pip install --quiet --editable '.[record]'
	$(BIN)/python -m tests.programs.recording

# Looks for the computations of recorded programs (NPU_ADVISOR_PROGRAMS: their folder,
# NPU_ADVISOR_PROGRAMS_OF_GPUS: the same as traces of GPUs), writes docs/programs.md.
programs: $(VENV)/installed
	$(BIN)/python -m tests.programs

# What the tool says of some simulated jobs, kept for the tests of reports (tests/report_fixtures).
report-fixtures: $(VENV)/installed
	$(BIN)/python -m tests.report_fixtures

# The table of docs/speed.md, in about ten minutes; NPU_ADVISOR_PROFILES: the folder of real recordings.
benchmark: $(VENV)/installed
	$(BIN)/python -m tests.benchmarks

# Time and memory of `advisor run` on large inputs, beside the vendor's advisor where NPU_ADVISOR_VENDOR or the PATH has
# it, and the time of the parts whose work grows with the kernels.
benchmark-size: $(VENV)/installed
	$(BIN)/python -m pytest -q tests/benchmarks/bench_run.py tests/benchmarks/bench_size.py

# Builds the wheel and runs it in an environment that has nothing else, beside the example plugin's own wheel.
wheel: $(VENV)/installed
	$(BIN)/python .ci/check_wheel.py

# A part of the tests with the built wheel on further interpreters, and with the oldest releases of all dependencies.
versions: $(VENV)/installed
	$(BIN)/python .ci/check_versions.py python3.12 python3.13

lowest: $(VENV)/installed
	$(BIN)/python .ci/check_versions.py --lowest python3.11

clean:
	rm -rf $(VENV) $(DEMO) build dist advisor-report
