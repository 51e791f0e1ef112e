"""Writes docs/reference/ from the code, so that it cannot say anything else than the code does.

``python docs/generate.py`` writes; with ``--check`` it only compares and ends with 1 where what is there differs. The
command line is read from click, rules from the rule book, advisors and facts from the registries, tables and files
from their schemas, report.json, compare.json, rule documents and jobs from the pydantic models, real cases from
docs/cases.yaml, what guides ask for from docs/guides.yaml.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from importlib import metadata
from pathlib import Path

from reference_pages.advisors import advisor_pages
from reference_pages.cases import PAGE as CASES
from reference_pages.cases import cases_page
from reference_pages.catalogue import Catalogue
from reference_pages.command_line import command_line
from reference_pages.compare_json import comparison_page
from reference_pages.facts import facts_page
from reference_pages.guides import PAGE as GUIDES
from reference_pages.guides import guides_page
from reference_pages.index import index_page
from reference_pages.job_file import job_file_page
from reference_pages.markdown import TARGET, Pages
from reference_pages.names import name_pages
from reference_pages.report_json import report_page
from reference_pages.rule_file import rule_file_page
from reference_pages.rules import rule_pages
from reference_pages.tables import tables_page

from advisor_core.plugins import hookspecs
from advisor_core.plugins.host import ONLY, load_host
from advisor_core.run.prepared import RunOptions, rule_book


def pages() -> Pages:
    """Every page of the reference. Only what npu-advisor itself brings: other plugins have their own reference."""
    points = metadata.distribution("npu-advisor").entry_points.select(group=hookspecs.GROUP)
    os.environ[ONLY] = ",".join(point.name for point in points)
    host = load_host()
    failed = [plugin for plugin in host.plugins if plugin.problem]
    if failed:
        sys.exit("\n".join(f"plugin {plugin.name}: {plugin.problem}" for plugin in failed))
    catalogue = Catalogue(host, list(rule_book(host, RunOptions())))
    return {
        "index.md": index_page(catalogue),
        "command-line.md": command_line(),
        "facts.md": facts_page(catalogue),
        "tables.md": tables_page(catalogue),
        CASES: cases_page(catalogue),
        GUIDES: guides_page(catalogue),
        "report-json.md": report_page(),
        "compare-json.md": comparison_page(),
        "rule-file.md": rule_file_page(),
        "job-file.md": job_file_page(),
        **rule_pages(catalogue),
        **name_pages(host.name_book()),
        **advisor_pages(catalogue),
    }


def write(target: Path, wanted: Pages) -> None:
    """The pages and nothing else below ``target``."""
    shutil.rmtree(target, ignore_errors=True)
    for name, text in wanted.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def differences(target: Path, wanted: Pages) -> list[str]:
    """Pages that are missing, left over or different below ``target``."""
    found = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    return sorted(
        name
        for name in found | set(wanted)
        if name not in wanted or name not in found or (target / name).read_text(encoding="utf-8") != wanted[name]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes docs/reference/ from the code.")
    parser.add_argument("--check", action="store_true", help="compare only; 1 where a page differs")
    parser.add_argument("--target", type=Path, default=TARGET, help="another folder")
    arguments = parser.parse_args()
    wanted = pages()
    if not arguments.check:
        write(arguments.target, wanted)
        sys.stdout.write(f"{len(wanted)} pages in {arguments.target}\n")
    elif different := differences(arguments.target, wanted):
        sys.exit(f"docs/reference/ is not what the code says; run `make docs`: {', '.join(different)}")


if __name__ == "__main__":
    main()
