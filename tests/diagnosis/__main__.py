"""Runs the whole grid, prints the tables and writes ``docs/diagnosis.md``."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.diagnosis.abstention import losses
from tests.diagnosis.diagnosis import diagnose
from tests.diagnosis.grid import ABSTAINING, CATALOGUE, HELD_OUT
from tests.diagnosis.table import document

PAGE = Path(__file__).parent.parent.parent / "docs" / "diagnosis.md"


def main() -> None:
    """The grid, over as many processes as there are cores."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=get_context("spawn")) as pool:
        catalogue = pool.map(diagnose, *zip(*CATALOGUE, strict=True))
        held_out = pool.map(diagnose, *zip(*HELD_OUT, strict=True))
        lost = pool.map(losses, ABSTAINING)
        page = document(list(catalogue), list(held_out), [loss for part in lost for loss in part])
    PAGE.write_text(page, encoding="utf-8")
    sys.stdout.write(page)


if __name__ == "__main__":
    main()
