"""The catalogue of jobs that a sample can show: healthy ones, and jobs with causes that make them lose time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from advisor_core.rules.files.yaml_file import Document, read_trusted_yaml

from .job_file import job_of, read_job, read_jobs
from .scenario import Scenario

__all__ = ["SCENARIOS", "Scenario", "job_from", "jobs_from"]

_DOCUMENTS: Mapping[str, Document] = {
    document.data["name"]: document
    for document in read_trusted_yaml(Path(__file__).with_name("catalogue.yaml"), "catalogue.yaml")
}


def _document(name: str) -> Mapping[str, Any] | None:
    document = _DOCUMENTS.get(name)
    return None if document is None else document.data


SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {name: job_of(document, name, _document) for name, document in _DOCUMENTS.items()}
)
"""All scenarios by name."""


def job_from(path: Path) -> Scenario:
    """The job that a file describes. Raises :class:`.job_file.JobFileError`, with the place of every mistake."""
    return read_job(path, _document)


def jobs_from(path: Path) -> list[Scenario]:
    """The jobs of a file of several documents, each with its name. Raises :class:`.job_file.JobFileError`."""
    return read_jobs(path, _document)
