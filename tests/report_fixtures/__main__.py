"""``make report-fixtures``: simulates the jobs, analyses them, and keeps what the tool says of them."""

from __future__ import annotations

import sys

from tests.report_fixtures import keep
from tests.report_fixtures.jobs import JOBS, analysed


def main(names: list[str]) -> None:
    """Of the jobs with these names, or of all."""
    for name in names or JOBS:
        path = keep(name, analysed(JOBS[name]))
        sys.stdout.write(f"{path.name}: {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
