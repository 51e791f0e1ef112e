"""The page of rule files."""

from __future__ import annotations

import re

from advisor_core.rules.files import yaml_file
from advisor_core.rules.files.schema import rule_schema
from advisor_core.rules.language import expression, template
from advisor_core.rules.language.profile_names import PROFILE_NAMES
from advisor_core.text import units
from reference_pages.markdown import code, join, table, to
from reference_pages.models import model_sections
from reference_pages.texts import details


def rule_file_page() -> str:
    page = "rule-file.md"
    schema = rule_schema()
    said = re.sub(r"^.*?\n\n", "", details(expression), count=1).split("\n\n")[0]
    known = sorted(units.UNITS.items(), key=lambda item: (item[1].base, item[1].factor, item[0]))
    return join(
        "# Rule files",
        "A file of YAML documents: each is a [Rule](#rule) or, with one of these keys, something that belongs to "
        "rules: `override` [changes one](#ruleoverride), `defaults` gives [parameters](#setdefaults) to all rules of "
        "the same file or folder, `zh` has the [Chinese texts](#ruletranslation) of one, `cases` "
        "[examples](#rulecases) of one, which `advisor rules test` runs. "
        f"{to('command-line.md', 'advisor rules schema', page, '`advisor rules schema`')} prints the JSON schema for "
        f"editors, {to('command-line.md', 'advisor rules check', page, '`advisor rules check`')} checks a file. "
        "[Writing a rule](../writing-a-rule.md) is the way in.",
        "What is enforced beyond the types below: every `why` has at least 10 characters; `references` and `advice` "
        "are not empty; one advice has no condition (no `when`, `unless`, `holds_for`, `hazards`), so that no finding "
        "is left without any, and the first has no hazards; a `url` and every link in a text is https; every "
        "parameter is used, and every column, parameter, rule and ledger path that is named exists. "
        "All mistakes of a file are told at once.",
        f"A file has at most {yaml_file.MAX_BYTES // 1024} kB and {yaml_file.MAX_DOCUMENTS} documents.",
        "## Conditions",
        said,
        f"At most {expression.MAX_LENGTH} characters, nested {expression.MAX_NESTING} deep. Columns are those of the "
        "rule's [advisor](index.md#advisors); a number that is compared with one in another unit of the same kind is "
        "converted when the file is read, one of another kind is an error.",
        "## Names of the profile",
        table(
            ("Name", "Type", "Unit", "Meaning"),
            ((code(f"profile.{c.name}"), c.dtype, c.unit, c.meaning) for c in PROFILE_NAMES.values()),
        ),
        "## Units",
        "What a threshold may be written in, and what conditions see. Any other unit is its own base and converts into "
        "nothing.",
        table(("Unit", "Base unit", "Factor"), ((code(n), code(u.base), str(u.factor)) for n, u in known)),
        "## Placeholders",
        "`{{ name }}` shows a column, `params.NAME` or `profile.NAME` in its most readable unit; `{{ name | unit }}` "
        f"in a chosen one: {', '.join(map(code, template.UNIT_FILTERS))}; `raw` is the bare number, `code` code font; "
        "`plural('row is', 'rows are')` the words that fit the number, for English; "
        "`part('the step')` the part of a recording in words, or these for all of it; "
        "`words(one: 'this', other: 'that')` what a text means, or the texts between commas; "
        "`either('rows are missing', 'no row is missing')` those that fit a truth value. "
        f"A text has at most {template.MAX_LENGTH} characters, a value put in at most {template.MAX_VALUE_LENGTH}.",
        details(template).split("\n\n")[1],
        *model_sections(schema, page),
    )
