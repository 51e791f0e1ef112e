"""The page of report.json."""

from __future__ import annotations

from advisor_core.result.run import RunResult
from reference_pages.markdown import join, to
from reference_pages.models import model_sections, one_model


def report_page() -> str:
    page = "report-json.md"
    schema = RunResult.model_json_schema()
    return join(
        "# report.json",
        "The whole result of a run; report.html and report.md are functions of it. The JSON schema is printed by "
        f"{to('command-line.md', 'advisor result-schema', page, '`advisor result-schema`')}. Times are int64 ns; texts "
        "are objects with `en` and `zh`. The same input gives the same bytes, but for `timings`.",
        one_model("RunResult", schema, page),
        *model_sections(schema, page),
    )
