"""Cases that were measured, kept by the whole source: a benchmark that was interrupted goes on where it was."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter

import advisor_core
import advisors
import rulesets
from tests import diagnosis
from tests.diagnosis import kept_files
from tests.diagnosis.counterfactuals.jobs import Case
from tests.diagnosis.counterfactuals.measure import Counterfactual, measured

_SOURCES = tuple(Path(package.__path__[0]) for package in (advisor_core, advisors, rulesets, diagnosis))
_FOUND = TypeAdapter(list[Counterfactual])


def measured_together(cases: Sequence[Case]) -> list[list[Counterfactual]]:
    """Of each case; cases of one job share what is simulated for the truth. For a pool of processes, whose workers
    import this module and not the one that is run."""
    return [_measured(case) for case in cases]


def _measured(case: Case) -> list[Counterfactual]:
    key = (
        kept_files.version_of(_SOURCES),
        case.scenario.name,
        repr(case.scenario.setup),
        case.part,
        case.dose,
        case.unshared,
    )
    path = kept_files.FOLDER / "counterfactuals" / sha256(repr(key).encode()).hexdigest()
    return _FOUND.validate_json(kept_files.kept(path, lambda: _FOUND.dump_json(measured(case)).decode()))
