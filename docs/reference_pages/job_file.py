"""The page of files that describe a job to simulate."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields

from advisor_core.sample import SCENARIOS, job_file
from advisor_core.sample.causes import CAUSES
from advisor_core.sample.causes.known import KnownCause
from advisor_core.sample.job_file import JobFile
from reference_pages.markdown import code, join, table, to
from reference_pages.models import model_sections, one_model
from reference_pages.texts import details, prose


def job_file_page() -> str:
    page = "job-file.md"
    schema = JobFile.model_json_schema()
    example = re.search(r"\n\n((?:    .*\n)+)", details(job_file))
    return join(
        "# Job files",
        f"{to('command-line.md', 'advisor sample', page, '`advisor sample DIR --job FILE`')} simulates the job that a "
        "YAML file describes and writes its profile. The scenarios of the catalogue are described in the same way "
        "(`advisor_core/sample/catalogue.yaml`); `like` takes one of them over, key by key, but for its name, its "
        "description and, where the file has one, its layout. `--without CAUSE` leaves a cause out.",
        f"```yaml\n{re.sub('(?m)^    ', '', example.group(1)).strip()}\n```" if example else "",
        one_model("Keys", schema, page),
        "## Causes",
        "An entry of `causes` is a name, or a name with its settings. `dose` is the share of the cause's strength, "
        "more than 0 and at most 1; a cause that is either there or not has no other dose than 1.",
        table(("Cause", "Settings", "Doses", "Cure"), [_row(name, known) for name, known in CAUSES.items()]),
        *model_sections(schema, page),
    )


def _row(name: str, known: KnownCause) -> tuple[str, str, str, str]:
    some = next(cause for job in SCENARIOS.values() for cause in job.causes if cause.name == name)
    settings = ", ".join(_settings(known)) or "none"
    return code(name), settings, "yes" if some.divisible else "no", prose(some.cure)


def _settings(known: KnownCause) -> Iterator[str]:
    for field in fields(known.kind):
        if field.name in known.settings and field.name != "dose":
            default = field.default
            yield code(field.name if default is MISSING else f"{field.name}: {json.dumps(default)}")
