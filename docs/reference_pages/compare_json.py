"""The page of compare.json."""

from __future__ import annotations

from advisor_core.result.comparison import ComparisonResult
from reference_pages.markdown import join, to
from reference_pages.models import model_sections, one_model


def comparison_page() -> str:
    page = "compare-json.md"
    schema = ComparisonResult.model_json_schema()
    return join(
        "# compare.json",
        "What `advisor compare` says; compare.html and compare.md are functions of it. The JSON schema is printed by "
        f"{to('command-line.md', 'advisor result-schema', page, '`advisor result-schema --comparison`')}. Times are "
        "int64 ns of the mean step; a difference is the later value less the earlier one.",
        one_model("ComparisonResult", schema, page),
        *model_sections(schema, page),
    )
