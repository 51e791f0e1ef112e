"""Runs the benchmark, prints its tables and writes ``docs/diagnosis.md``: all of it, or ``findings`` or
``counterfactuals`` alone, or the counterfactuals of some jobs, which are only printed."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from math import inf
from multiprocessing import get_context
from pathlib import Path

from advisor_core.run.workers import usable_processors
from tests.diagnosis.abstention import losses
from tests.diagnosis.counterfactuals.jobs import Case, cases
from tests.diagnosis.counterfactuals.kept_cases import is_kept, kept_or_measured
from tests.diagnosis.counterfactuals.measure import Counterfactual
from tests.diagnosis.counterfactuals.page import HEADING, section
from tests.diagnosis.diagnosis import diagnose
from tests.diagnosis.grid import ABSTAINING, CATALOGUE, HELD_OUT, OTHER_SIZES
from tests.diagnosis.table import document

PAGE = Path(__file__).parent.parent.parent / "docs" / "diagnosis.md"
PARTS = ("findings", "counterfactuals")


def main(arguments: Sequence[str]) -> None:
    """The parts that are asked for, over as many processes as there are cores."""
    parser = argparse.ArgumentParser(prog="python -m tests.diagnosis", description=__doc__)
    parser.add_argument("part", nargs="?", choices=PARTS, help="only this part")
    parser.add_argument("job", nargs="*", help="only the counterfactuals of these jobs")
    parser.add_argument("--minutes", type=float, default=inf, help="begin no further counterfactual after so long")
    options = parser.parse_args(arguments)
    if options.job and options.part != "counterfactuals":
        parser.error("jobs are those of the counterfactuals")
    page = PAGE.read_text(encoding="utf-8")
    if options.part != "counterfactuals":
        page = with_section(findings(), section_of(page))
        PAGE.write_text(page, encoding="utf-8")  # the other part takes long, and may be interrupted
    if options.part != "findings":
        try:
            found = cases(options.job)
        except ValueError as error:
            parser.error(str(error))
        part = counterfactuals(found, options.minutes)
        if options.job:
            sys.stdout.write(part)
            return
        page = with_section(page, part)
    PAGE.write_text(page, encoding="utf-8")
    sys.stdout.write(page)


def findings() -> str:
    """The page without the counterfactuals."""
    with _pool() as pool:
        parts = {
            name: pool.map(diagnose, *zip(*cases, strict=True))
            for name, cases in (("catalogue", CATALOGUE), ("other sizes", OTHER_SIZES), ("held out", HELD_OUT))
        }
        lost = pool.map(losses, ABSTAINING)
        return document({name: list(part) for name, part in parts.items()}, [loss for part in lost for loss in part])


def counterfactuals(found: Sequence[Case], minutes: float = inf) -> str:
    """Their part of the page. After so many ``minutes`` no further case is begun, but those that were measured before
    are told: the page says how many are missing, and another run goes on with these."""
    until = time.monotonic() + 60 * minutes
    turns = in_turn(found)
    results = {place: kept_or_measured(found[place]) for place in turns if is_kept(found[place])}
    with _pool() as pool:
        left = [place for place in turns if place not in results]
        running: dict[Future[list[Counterfactual]], int] = {}
        while left or running:
            while left and len(running) < usable_processors() and time.monotonic() < until:
                place = left.pop(0)
                running[pool.submit(kept_or_measured, found[place])] = place
            if not running:
                break
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                place = running.pop(done)
                results[place] = done.result()
                sys.stderr.write(f"{len(results)} of {len(found)}: {found[place].scenario.name}\n")
    return section([one for place in sorted(results) for one in results[place]], len(found) - len(results))


def in_turn(found: Sequence[Case]) -> list[int]:
    """The places of the cases in the order in which they are measured: what most figures are of first; of that the
    largest first, so that no process is left with one of them at the end."""

    def order(place: int) -> tuple[bool, bool, int]:
        case = found[place]
        return case.unshared, case.dose < 1, -case.scenario.ranks

    return sorted(range(len(found)), key=order)


_SECTION = re.compile(rf"^{re.escape(HEADING)}$.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def section_of(page: str) -> str:
    """The counterfactuals on the page, or nothing."""
    found = _SECTION.search(page)
    return found.group(0) if found else ""


def with_section(page: str, part: str) -> str:
    """The page with these counterfactuals, behind the first table."""
    rest = _SECTION.sub("", page)
    before, first, behind = rest.partition("## By cause")
    return f"{before}{part.rstrip()}\n\n{first}{behind}" if part.strip() else rest


@contextmanager
def _pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(usable_processors(), mp_context=get_context("spawn")) as pool:
        yield pool


if __name__ == "__main__":
    main(sys.argv[1:])
