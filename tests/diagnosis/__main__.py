"""Runs the whole grid, prints the tables and writes ``docs/diagnosis.md``."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.diagnosis.abstention import losses
from tests.diagnosis.diagnosis import diagnose
from tests.diagnosis.grid import ABSTAINING, CATALOGUE, HELD_OUT, OTHER_SIZES
from tests.diagnosis.table import document

PAGE = Path(__file__).parent.parent.parent / "docs" / "diagnosis.md"


def main() -> None:
    """The grid, over as many processes as there are cores."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=get_context("spawn")) as pool:
        parts = {
            name: pool.map(diagnose, *zip(*cases, strict=True))
            for name, cases in (("catalogue", CATALOGUE), ("other sizes", OTHER_SIZES), ("held out", HELD_OUT))
        }
        lost = pool.map(losses, ABSTAINING)
        page = document({name: list(part) for name, part in parts.items()}, [loss for part in lost for loss in part])
    PAGE.write_text(page, encoding="utf-8")
    sys.stdout.write(page)


if __name__ == "__main__":
    main()
