"""Runs a part of the tests with the built wheel on other interpreters, or with the oldest releases of all dependencies.

    check_versions.py python3.12 python3.13     # each that is at hand; says which are not
    check_versions.py --lowest python3.11       # every dependency at the lower bound of pyproject.toml

The tests run in a copy without our packages beside them, so that what is tested is the wheel.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from commands import build_wheel, call, new_environment

ROOT = Path(__file__).parent.parent
PART = (
    "tests/loaders/test_loaders_formats_agree.py",
    "tests/loaders/test_loaders_csv.py",
    "tests/loaders/kineto/test_kineto_tables.py",
    "tests/reports/test_report_phases.py",
    *(
        f"tests/reports/test_report_texts.py::test_{name}"
        for name in (
            "markdown_has_no_html_no_image_and_resolving_links[en-hostile]",
            "markdown_has_no_html_no_image_and_resolving_links[zh-training]",
            "json_is_the_whole_result[training]",
            "the_plugin_adds_a_report_and_formats_for_programs",
            "a_renderer_that_is_imported_on_demand_lacks_nothing",
            "prose_of_strangers_is_safe_html",
            "links_in_prose_do_not_give_away_the_page",
            "code_spans_hold_any_value",
            "prose_rewritten_as_markdown_reads_the_same",
            "a_change_of_the_plan_that_holds_on_conditions_only_says_so",
        )
    ),
    "tests/engine/test_cluster.py::test_no_scheduler_and_no_worker_are_told",
    "tests/remote",
    "tests/testing",
)
"""The embedded sample in every format, tables read from files, results of whole runs rendered by each renderer, a
connection to a scheduler, profiles at URLs, rules over scenes. Of the texts of reports what another release of a parser
of Markdown, of templates or of models could change; how full they are is our own code alone."""

EXTRAS = ("cluster", "remote")
"""Extras of the wheel that these tests need: installed with it, and held at their lower bounds as the rest is."""

TOOLS = ("pytest", "pytest-xdist", "hypothesis", "jsonschema")
"""Packages that these tests need beside the wheel, always the newest: they are no part of what is installed."""

BOUND = ">="


def lowest(requirements: list[str]) -> list[str]:
    """Constraints to the lower bound of each requirement. Ends the program where one has none."""
    pinned = []
    for requirement in requirements:
        name, bound, version = requirement.partition(BOUND)
        if not bound or set(version) & set("<>=!~,; "):
            sys.exit(f"pyproject.toml: {requirement!r} is no name with a lower bound alone")
        pinned.append(f"{name}=={version}")
    return pinned


def at_hand(interpreter: str) -> bool:
    """Whether it can be started: a shim of a version that is not chosen cannot."""
    if shutil.which(interpreter) is None:
        return False
    return subprocess.run([interpreter, "-c", ""], capture_output=True, check=False).returncode == 0


def check(interpreter: str, wheel: Path, constraints: list[str], folder: Path) -> None:
    """Install the wheel for the interpreter in ``folder`` and run `PART` of the tests."""
    began = time.monotonic()
    work = folder / "work"
    work.mkdir(parents=True)
    pins = folder / "constraints.txt"
    pins.write_text("\n".join(constraints), encoding="utf-8")
    ours = f"{wheel}[{','.join(EXTRAS)}]"
    programs = new_environment(interpreter, folder / "env", "--constraint", pins, ours, *TOOLS)
    shutil.copytree(ROOT / "tests", work / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", work)
    printed = call(programs / "python", "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *PART, cwd=work)
    sys.stdout.write(f"{interpreter}: {printed.strip().splitlines()[-1]}, {time.monotonic() - began:.0f} s in all\n")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("interpreters", nargs="+")
    arguments.add_argument("--lowest", action="store_true")
    chosen = arguments.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [requirement for extra in EXTRAS for requirement in project["optional-dependencies"][extra]]
    constraints = lowest([*project["dependencies"], *extras]) if chosen.lowest else []
    there = [interpreter for interpreter in chosen.interpreters if at_hand(interpreter)]
    for interpreter in sorted({*chosen.interpreters} - {*there}):
        sys.stdout.write(f"{interpreter}: not at hand, nothing was tested with it\n")
    if not there:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build_wheel(ROOT, folder)
        (wheel,) = folder.glob("*.whl")
        for interpreter in there:
            check(interpreter, wheel, constraints, folder / Path(interpreter).name)


if __name__ == "__main__":
    main()
