"""The parts of the difference between two devices: kernels by what they compute, communication, idle time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor_core.compare.computed import Both, Key, kernel_origins
from advisor_core.result.comparison import LedgerDifference, Origin

BESIDE = "compute/beside"
"""The time of kernels beyond the computing of the step: kernels that ran beside others."""


def origins(rows: Mapping[Key, Both], ledger: Sequence[LedgerDifference]) -> list[Origin]:
    """The parts of the difference, largest first. ``rows``: what the kernels compute. With a ``ledger`` they add up to
    that of the step; without one, where the steps are none that can be compared, only kernels are told. Where it is not
    known what the kernels of a side compute, computing is one part."""
    kernels = kernel_origins(rows)
    parts = [*kernels]
    for row in ledger:
        if row.path == "compute" and kernels:
            parts += _beside(row, kernels)
        elif row.before_ns or row.after_ns:
            parts.append(
                Origin(path=row.path, before_ns=row.before_ns, after_ns=row.after_ns, difference_ns=row.difference_ns)
            )
    return sorted(parts, key=lambda part: (-abs(part.difference_ns), part.path))


def _beside(compute: LedgerDifference, kernels: Sequence[Origin]) -> list[Origin]:
    before = compute.before_ns - sum(part.before_ns for part in kernels)
    after = compute.after_ns - sum(part.after_ns for part in kernels)
    if not before and not after:
        return []
    return [Origin(path=BESIDE, before_ns=before, after_ns=after, difference_ns=after - before)]
