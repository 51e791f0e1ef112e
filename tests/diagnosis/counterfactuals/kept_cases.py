"""Cases that were measured, kept by the source of all that they depend on: a benchmark that was interrupted goes on
where it was."""

from __future__ import annotations

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

_PACKAGES = tuple(Path(package.__path__[0]) for package in (advisor_core, advisors, rulesets))
_JUDGES = (
    "expectations.py",
    "diagnosis.py",
    "truth.py",
    "counterfactuals/measure.py",
    "counterfactuals/predictions.py",
)
_SOURCES = (*_PACKAGES, *(Path(diagnosis.__path__[0]) / name for name in _JUDGES))
_FOUND = TypeAdapter(list[Counterfactual])


def kept_or_measured(case: Case) -> list[Counterfactual]:
    """All sets of cures of one case."""
    return _FOUND.validate_json(kept_files.kept(_path(case), lambda: _FOUND.dump_json(measured(case)).decode()))


def is_kept(case: Case) -> bool:
    """Whether the case was measured before."""
    return _path(case).is_file()


def _path(case: Case) -> Path:
    key = (
        kept_files.version_of(_SOURCES),
        case.scenario.name,
        repr(case.scenario.setup),
        case.part,
        case.dose,
        case.unshared,
    )
    return kept_files.FOLDER / "counterfactuals" / sha256(repr(key).encode()).hexdigest()
