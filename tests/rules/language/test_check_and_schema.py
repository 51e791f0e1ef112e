# ruff: noqa: E501 - messages stand whole, so that they can be searched for
from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml

from advisor_core.contracts.advisor import Advisor
from advisor_core.rules.files.check import check_rules
from advisor_core.rules.files.ruleset import load_rules
from advisor_core.rules.files.schema import rule_schema
from advisor_core.text.base import Text

Rule = Callable[..., str]
Write = Callable[..., Path]


@pytest.fixture
def rule(rule: Rule) -> Rule:
    """As everywhere, without what a reviewer would mention."""
    return lambda *changes: rule(
        ("high: idle_share > 0.5, medium: idle_share > 0.3", "high: launches > 1, medium: true"), *changes
    )


def test_a_good_file_has_nothing_to_be_said_about(rule: Rule, write: Write, advisors: dict[str, Advisor]) -> None:
    assert check_rules([write(rule())], advisors) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('zh: "再次运行。"', 'zh: ""', "30:34: warning: text has no Chinese: reports show the English"),
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


def test_numbers_are_not_typed_into_conditions(rule: Rule, write: Write, advisors: dict[str, Advisor]) -> None:
    text = rule(
        ("launches > 0", "launches > 0 and size in (1, 512)"),
        ("high: launches > 1", "high: launches > 50"),
        ("    unless: profile.graph_mode", "    unless: number * 2 > 1"),
    )
    path = write(text)
    expected = [
        ("8:27", "size in (1, 512)"),
        ("12:29", "50"),
        ("18:22", "2"),
    ]
    for own in (False, True):
        severity = "" if own else "warning: "
        assert [str(problem) for problem in check_rules([path], advisors, own=own)] == [
            f"r.yaml:{place}: {severity}the number {number} is typed into a condition "
            "(make it a parameter, with its unit and where it comes from)"
            for place, number in expected
        ]


def test_a_severity_of_other_columns_says_why(rule: Rule, write: Write, advisors: dict[str, Advisor]) -> None:
    text = rule(("high: launches > 1", "high: size > 1"))
    assert [str(problem) for problem in check_rules([write(text)], advisors)] == [
        "r.yaml:12:1: warning: severity depends on what the condition does not look at: size (say `why` in it)"
    ]
    said = text.replace("high: size > 1", "why: large ones cost most, high: size > 1")
    assert check_rules([write(said)], advisors) == []


ZH = """\
zh: HD001
text: {title: "device 空闲占 {{ idle_share }}", good: 主机下发及时, why: "超过限度的是 {{ kernel }}", verify: 再次运行。}
advice:
  - {text: 设置 TASK_QUEUE_ENABLE。, risk: 占用更多内存。, unless_text: 不能与图捕获同时使用。}
  - {text: "查看 {{ kernel | code }}。"}
"""


def english(text: str) -> str:
    """The rule with its English alone, written as plain text where it can be."""
    without = re.sub(r', zh: "[^"]*"', "", text)
    return re.sub(r'\n    en: ("[^"]*")\n    zh: .*', r" \1", without)


def test_chinese_stands_in_a_document_of_its_own(rule: Rule, write: Write, advisors: dict[str, Advisor]) -> None:
    write(english(rule()), "set/HD001.yaml")
    folder = write(ZH, "set/zh/HD001.yaml").parent.parent
    book = load_rules([folder], advisors)
    title, advice = book["HD001"].title, book["HD001"].advice[0]
    assert title.render({"idle_share": 0.5}) == Text(
        en="50.0 % of the step waits for the host", zh="device 空闲占 50.0 %"
    )
    assert advice.risk is not None and advice.risk.render({}).zh == "占用更多内存。"
    told = [str(problem) for problem in check_rules([folder], advisors)]
    assert told == ["set/zh/HD001.yaml:2:65: warning: the two languages quote different values: params.idle_share"]


def test_without_chinese_the_english_is_shown(rule: Rule, write: Write, advisors: dict[str, Advisor]) -> None:
    path = write(english(rule()))
    assert load_rules([path], advisors)["HD001"].good.render({}).zh == "The host keeps up"
    for own in (False, True):
        found = check_rules([path], advisors, own=own)
        assert {problem.message for problem in found} == {"text has no Chinese: reports show the English"}
        assert {problem.severity for problem in found} == {"error" if own else "warning"}
        assert len(found) == 8


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("zh: HD001", "zh: HD002", "2:5: no rule 'HD002' (did you mean 'HD001'?)"),
        ("text: {title:", "text: {titel:", "3:8: unknown key 'titel' (did you mean 'title'?)"),
        ("good: 主机下发及时", "good: '主机 {{ kernel }}'", "3:59: unknown name 'kernel' (`good` is shown when no row is at fault: it can quote params and profile only)"),
        ("good: 主机下发及时", "not_a_problem_if: 主机", "3:46: HD001 has no such text"),
        ("  - {text: \"查看 {{ kernel | code }}。\"}\n", "", "4:1: 1 advice, but the rule has 2 (give one for each, in the order of the rule)"),
    ],
)  # fmt: skip
def test_translations_that_do_not_fit(
    old: str, new: str, message: str, rule: Rule, write: Write, advisors: dict[str, Advisor]
) -> None:
    assert old in ZH
    folder = write(english(rule()), "set/a.yaml").parent
    write("# comment\n" + ZH.replace(old, new), "set/zh.yaml")
    errors = [str(problem) for problem in check_rules([folder], advisors) if problem.severity == "error"]
    assert errors == [f"set/zh.yaml:{message}"]


def test_a_text_is_translated_once(rule: Rule, write: Write, advisors: dict[str, Advisor]) -> None:
    folder = write(rule(), "set/a.yaml").parent
    write("zh: HD001\ntext: {good: 主机}\n", "set/zh.yaml")
    (problem,) = check_rules([folder], advisors)
    assert str(problem) == "set/zh.yaml:2:8: the text is Chinese in the rule already"
