# ruff: noqa: E501 - messages stand whole, so that they can be searched for
from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml

from advisor_core.contracts.advisor import Advisor
from advisor_core.rules.files.check import check_rules
from advisor_core.rules.files.schema import rule_schema

Rule = Callable[..., str]
Write = Callable[..., Path]


def test_a_good_file_has_nothing_to_be_said_about(rule: Rule, write: Write, advisors: dict[str, Advisor]) -> None:
    assert check_rules([write(rule())], advisors) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('zh: "再次运行。"', 'zh: ""', "30:34: warning: text is empty in 'zh'"),
        ('zh: "再次运行。"', 'zh: "Run again."', "30:34: warning: Chinese text is the same as the English"),
        ('zh: "再次运行。"', 'zh: "Encore."', "30:34: warning: Chinese text has no Chinese in it"),
        ("超过 {{ params.idle_share }} 即为 {{ kernel }}", "即为 {{ kernel }}", "29:70: warning: the two languages quote different values: params.idle_share"),
        ("Run again.", "Above 10 % run again.", "30:23: warning: the number 10 is the value of the parameter 'idle_share' (write {{ params.idle_share }})"),
        ("Run again.", "Gaps of 50 us.", "30:25: warning: the number 50 is the value of the parameter 'min_idle' (write {{ params.min_idle }})"),
        ("Run again.", "About 0.1.", None),
        ("Run again.", "See `--x 50`, X=50, [a](https://b.c/50), v50, 1.50, 50.5.", ""),
        ("The host keeps up", "A" * 101, ""),
        ("waits for the host", "A" * 101, "26:9: warning: title is longer than 100 characters"),
        ("The host keeps up", "Above {{ params.idle_share }} it is x.", "28:60: warning: the two languages quote different values: params.idle_share"),
    ],
)  # fmt: skip
def test_what_a_reviewer_would_say(
    old: str, new: str, message: str | None, rule: Rule, write: Write, advisors: dict[str, Advisor]
) -> None:
    found = [str(problem) for problem in check_rules([write(rule((old, new)))], advisors)]
    if message is None:
        assert found == [
            "r.yaml:30:23: warning: the number 0.1 is the value of the parameter 'idle_share' (write {{ params.idle_share }})"
        ]
    else:
        assert found == ([f"r.yaml:{message}"] if message else [])


def test_copied_texts(rule: Rule, write: Write, advisors: dict[str, Advisor]) -> None:
    other = rule(
        ("id: HD001", "id: HD002"), ("name: device-idle", "name: other"), ("aliases: [OLD001, old-name]\n", "")
    )
    found = [str(problem) for problem in check_rules([write(f"{rule()}---\n{other}")], advisors)]
    assert len(found) == 6
    assert found[0] == "r.yaml:58:9: warning: the same words as 'title' of HD001"


def test_every_problem_of_every_file_and_of_no_other(rule: Rule, write: Write, advisors: dict[str, Advisor]) -> None:
    base = write(rule(("launches > 0", "lunches > 0")), "base/a.yaml").parent
    write("override: HD001\nlimit: 99\n", "mine/a.yaml")
    write("x: on\n", "mine/b.yaml")
    mine = write("override: HD009\n", "mine/c.yaml").parent
    assert [str(problem) for problem in check_rules([mine, Path("nowhere")], advisors, [base])] == [
        "mine/a.yaml:2:8: 'limit' should be less than or equal to 50",
        'mine/b.yaml:1:4: some YAML readers take on for a boolean (write true or false, or "on" in quotes)',
        "mine/c.yaml:1:11: no rule 'HD009' (did you mean 'HD001'?)",
        "nowhere: does not exist",
    ]


def test_a_file_of_the_base_can_be_checked_alone(rule: Rule, write: Write, advisors: dict[str, Advisor]) -> None:
    path = write(rule(), "base/a.yaml")
    assert check_rules([path], advisors, [path.parent]) == []


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(json.dumps(rule_schema()))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_schema_knows_rules_and_overrides(rule: Rule, validator: jsonschema.Draft202012Validator) -> None:
    assert validator.is_valid(yaml.safe_load(rule()))
    assert validator.is_valid({"override": "HD001", "enabled": False, "params": {"x": {"value": 1}}})
    assert not validator.is_valid({"override": "HD001", "when": "late"})
    assert not validator.is_valid({"id": "HD001"})
    wrong = yaml.safe_load(rule(("upper_bound", "guess")))
    (error,) = validator.iter_errors(wrong)
    assert list(error.absolute_path) == ["impact", "basis"]


def test_what_the_schema_refuses_the_loader_refuses(
    rule: Rule, write: Write, advisors: dict[str, Advisor], validator: jsonschema.Draft202012Validator
) -> None:
    for old, new in (("id: HD001", "id: x"), ("advisor:", "adviser:"), ('"2"', "2"), ("[idle/host]", "[' ']")):
        text = rule((old, new))
        assert not validator.is_valid(yaml.safe_load(text))
        assert check_rules([write(text)], advisors)


def test_parsing_rules_needs_neither_pandas_nor_numpy() -> None:
    """Editors and ``rules schema`` answer at once. (The loader itself needs advisors, and these need pandas.)"""
    code = (
        "import sys; import advisor_core.rules.files.yaml_file, advisor_core.rules.language.expression, advisor_core.rules.language.template, "
        "advisor_core.rules.files.documents, advisor_core.rules.compiled, advisor_core.rules.files.schema, advisor_core.text.units; "
        "sys.exit(' '.join({'pandas', 'numpy', 'pyarrow', 'markdown_it'} & set(sys.modules)) or None)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
