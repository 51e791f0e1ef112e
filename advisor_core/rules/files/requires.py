"""Whether this version of npu-advisor can read a document: what its ``requires`` asks for."""

from __future__ import annotations

from importlib import metadata

from advisor_core.contracts.problems import Problem
from advisor_core.rules.files.yaml_file import Document

TOOL = "npu-advisor"


def unmet(document: Document) -> Problem | None:
    """The mistakes in ``requires``: with any, nothing else of the document is worth reading."""
    wanted = document.get(("requires",))
    if not isinstance(wanted, str):
        return None
    from packaging.requirements import InvalidRequirement, Requirement  # few documents ask for anything

    try:
        requirement = Requirement(wanted)
    except InvalidRequirement:
        return document.problem(("requires",), f"{wanted!r} is not a requirement", f"write {TOOL}>=0.1")
    if requirement.name != TOOL:
        return document.problem(("requires",), f"a rule file can require {TOOL} only", f"write {TOOL}>=0.1")
    version = metadata.version(TOOL)
    if requirement.specifier.contains(version, prereleases=True):
        return None
    return document.problem(("requires",), f"needs {wanted}, and this is {version}", f"upgrade {TOOL}")
