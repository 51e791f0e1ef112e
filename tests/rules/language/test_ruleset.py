# ruff: noqa: E501 - messages stand whole, so that they can be searched for
from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from advisor_core.contracts.advisor import Advisor
from advisor_core.contracts.problems import RuleFileError
from advisor_core.contracts.registry import Ruleset
from advisor_core.rules.files.ruleset import load_rules
from advisor_core.rules.origins import Origins
from advisor_core.text.base import Scalar

Rule = Callable[..., str]
Write = Callable[..., Path]
Advisors = dict[str, Advisor]


def second(rule: Rule, *changes: tuple[str, str], number: int = 2) -> str:
    """Another rule, with a name of its own."""
    own = (("id: HD001", f"id: HD00{number}"), ("name: device-idle", f"name: rule-{number}"))
    return rule(*own, ("aliases: [OLD001, old-name]\n", ""), *changes)


def told(sources: list[Path], advisors: Advisors, overrides: Mapping[str, Scalar] | None = None) -> list[str]:
    with pytest.raises(RuleFileError) as caught:
        load_rules(sources, advisors, overrides)
    return str(caught.value).splitlines()


def test_a_rule_book(rule: Rule, write: Write, advisors: Advisors) -> None:
    book = load_rules([write(rule())], advisors)
    (compiled,) = book
    assert (len(book), compiled.id, compiled.file, compiled.line) == (1, "HD001", "r.yaml", 1)
    assert compiled.params == {"idle_share": 0.1, "min_idle": 50_000}
    assert compiled.measure_params == {"min_idle": 50_000}
    assert [book[name].id for name in ("HD001", "device-idle", "OLD001", "old-name")] == ["HD001"] * 4
    with pytest.raises(KeyError):
        book["HD002"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("severity:", "serverity:", "12:1: unknown key 'serverity' (did you mean 'severity'?)"),
        ("why: \"our choice: more", "wy: \"our choice: more", "6:62: unknown key 'wy' (did you mean 'why'?)"),
        ("zh: \"再次运行。\"", "zhh: 1", "30:30: unknown key 'zhh' (did you mean 'zh'?)"),
        ("id: HD001", "id: hd1", "1:5: 'hd1' is not an id such as HD001"),
        ("name: device-idle", "name: Device Idle", "2:7: 'Device Idle' is not a name such as device-idle"),
        ("OLD001, ", "'x y', ", "3:11: 'x y' is not an id such as HD001, or a name such as device-idle"),
        ("advisor: host.idle", "advisor: host.idel", "4:10: no advisor 'host.idel' (did you mean 'host.idle'?)"),
        ("  idle_share: {", "  Idle Share: {", "6:3: 'Idle Share' is not a name such as min_share"),
        ("value: 0.10,", "value: [1],", "6:23: expected true or false or a whole number or a number or text, found [1]"),
        ("unit: ratio", "unit: <b>", "6:35: '<b>' is not a unit such as ns or ratio"),
        ("[0.01, 0.9]", "[0.2, 0.9]", "6:23: 0.1 is outside of the range 0.2 to 0.9"),
        ("[0.01, 0.9]", "[0.9, 0.01]", "6:49: range 0.9 to 0.01 is empty"),
        ("[0.01, 0.9]", "[a, 0.9]", "6:50: expected a number, found \"a\""),
        ('why: "our choice: more than this is dispatch bound"', "why: short", "6:67: 'why' should have at least 10 characters"),
        ("launches > 0", "lunches > 0", "8:10: unknown name 'lunches' (did you mean 'launches'?)"),
        ("params.idle_share\n", "params.idle_shre\n", "10:16: unknown name 'params.idle_shre' (did you mean 'idle_share'?)"),
        ("idle_ns >= params.min_idle", "idle_ns >= params.idle_share", "11:7: 'idle_ns' in ns cannot be compared with 'params.idle_share' in ratio"),
        ("high: idle_share > 0.5", "high: idle_share", "12:18: 'idle_share' is a number, but a condition is needed here (compare it with something)"),
        ("high: idle_share > 0.5", "high: 5", "12:18: expected true or false or text, found 5 (write \"5\" in quotes)"),
        ("value: idle_ns", "value: idle_share", "13:17: 'idle_share' is in ratio, but ns is needed"),
        ("upper_bound", "uper_bound", "13:33: 'uper_bound' is not one of exact, estimate, upper_bound (did you mean 'upper_bound'?)"),
        ("[idle/host]", "[/idle]", "14:10: '/idle' is not a path such as idle/host"),
        ("[idle/host]", "['idle/{{ kernl }}']", "14:19: unknown name 'kernl' (did you mean 'kernel'?)"),
        ("[idle/host]", "['idle/{{ launches }}']", "14:19: 'launches' is not text: it cannot be part of a path"),
        ('"2"}', "2}", '17:30: expected text, found 2 (write "2" in quotes)'),
        ("kind: env", "kind: evn", "16:11: 'evn' is not one of env, code, config, collect, investigate (did you mean 'env'?)"),
        ("unless: profile.graph_mode", "unless: profile.grap_mode", "18:13: unknown name 'profile.grap_mode' (did you mean 'graph_mode'?)"),
        ('{en: "Run again.", zh: "再次运行。"}', "5", "30:11: expected a mapping, found 5 (write the text in quotes, or {en: ..., zh: ...})"),
        ('en: "{{ idle_share }} of', 'en: "{{ idel_share }} of', "26:13: unknown name 'idel_share' (did you mean 'idle_share'?)"),
        ('zh: "{{ idle_share }} 的', 'zh: "时间 {{ idle_share | mss }} 的', "27:29: unknown unit 'mss' (did you mean 'ms'?)"),
        ("The host keeps up", "{{ idle_ns }}", "28:18: unknown name 'idle_ns' (`good` is shown when no row is at fault: it can quote params and profile only)"),
        ("Run again.", "<b>Run</b>", "30:17: raw HTML '<b>Run</b>' is not allowed (write &lt; for <)"),
        ("https://www", "http://www", "32:38: link is not https"),
        ("  min_idle: {value: 50, unit: us, why: \"shorter gaps are launch latency\"}\n", "", None),
    ],
)  # fmt: skip
def test_mistakes_have_a_place(
    old: str, new: str, message: str | None, rule: Rule, write: Write, advisors: Advisors
) -> None:
    if message is None:
        found = told([write(rule((old, new)))], advisors)
        assert found == [
            "r.yaml:5:1: advisor 'host.idle' reads the parameter 'min_idle', which is not given",
            "r.yaml:10:18: unknown name 'params.min_idle'",
        ]
        return
    found = told([write(rule((old, new)))], advisors)
    where, _, rest = message.partition(": ")
    assert [line.split(": ", 1)[1] for line in found] == [rest], found
    assert found[0].startswith(f"r.yaml:{where}:"), found


def test_names_in_claims(rule: Rule, write: Write, advisors: Advisors) -> None:
    book = load_rules([write(rule(("[idle/host]", "['idle/{{ kernel }}']")))], advisors)
    assert book["HD001"].rule.claims == ["idle/{{ kernel }}"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("  min_idle:", "  spare: {value: 1, unit: count, why: for no reason}\n  min_idle:"),
         "r.yaml:7:3: parameter 'spare' is not used: not in a condition, not in a text, not by the advisor"),
        (("    unless_text: {en: \"Not together with graph capture.\", zh: \"不能与图捕获同时使用。\"}\n", ""),
         "r.yaml:16:5: `unless` and `unless_text` go together (say in words what the reader must check when it cannot be decided)"),
        (("  - kind: investigate", "  - kind: investigate\n    when: late"),
         "r.yaml:15:1: all advice is conditional: a finding could be left with none (give one without `when`, `unless`, `holds_for` and `hazards`)"),
        (("claims:", "caveats: [comm]\nclaims:"), "r.yaml:14:1: `caveat` and `caveats` go together"),
        (("claims:", "first_pass: true\nclaims:"),
         "r.yaml:14:1: `first_pass` is about the findings of `caveats`, and there are none"),
        (("claims:", "caveats: [commm]\ncaveat: {en: a, zh: b}\nclaims:"),
         "r.yaml:14:11: no advisor begins with 'commm' (did you mean 'comm'?)"),
        (("claims:", "explains: [HD009]\nclaims:"), "r.yaml:14:12: no rule 'HD009' (did you mean 'HD001'?)"),
        (("claims:", "after: [HD001]\nclaims:"), "r.yaml:14:9: rule HD001 is itself"),
        (("launches > 0", "fired.HD009"), "r.yaml:8:10: fired.HD009 is not among the rules in `after`"),
        (("  min_idle:", "  word: {value: x, unit: ns, range: [1, 2], why: for no reason}\n  min_idle:"), None),
    ],
)  # fmt: skip
def test_what_does_not_fit_together(
    change: tuple[str, str], message: str | None, rule: Rule, write: Write, advisors: Advisors
) -> None:
    found = told([write(rule(change))], advisors)
    if message is None:
        assert found == [
            "r.yaml:7:26: only numbers have a unit (write unit: '')",
            "r.yaml:7:37: only numbers have a range",
        ]
    else:
        assert found == [message]


def test_advice_for_either_case_is_enough(rule: Rule, write: Write, advisors: Advisors) -> None:
    text = rule(("  - kind: investigate", "  - kind: investigate\n    when: profile.graph_mode"))
    assert len(load_rules([write(text)], advisors)) == 1


def test_all_mistakes_of_all_files_are_told(rule: Rule, write: Write, advisors: Advisors) -> None:
    write(rule(("launches > 0", "lunches > 0"), ("Run again.", "{{ x }}")), "set/a.yaml")
    write("a: on\n", "set/b/c.yml")
    write(second(rule) + "---\n- x\n", "set/d.yaml")
    write("", "set/e.yaml")
    write("not a rule", "set/notes.txt")
    source = write("", "set/f.yaml").parent
    assert [line.split(": ")[0] for line in told([source, Path("nowhere")], advisors)] == [
        "nowhere",
        "set/a.yaml:8:10",
        "set/a.yaml:30:20",
        "set/b/c.yml:1:4",
        "set/d.yaml:33:1",
        "set/e.yaml",
        "set/f.yaml",
    ]
    book = load_rules([source, Path("nowhere")], advisors, strict=False)
    assert [compiled.id for compiled in book] == ["HD002"]
    assert len(book.problems) == 7


def test_an_empty_folder_is_a_mistake(tmp_path: Path, advisors: Advisors) -> None:
    assert told([tmp_path], advisors) == [f"{tmp_path}: has no rule files (*.yaml)"]


def test_ids_and_names_are_given_once(rule: Rule, write: Write, advisors: Advisors) -> None:
    assert told([write(rule() + "---\n" + rule())], advisors) == [
        "r.yaml:34:5: rule HD001 is given twice (first in r.yaml:1)"
    ]
    same_name = second(rule, ("name: rule-2", "name: old-name"))
    assert told([write(rule() + "---\n" + same_name)], advisors) == [
        "r.yaml:35:7: 'old-name' already belongs to rule HD001 (r.yaml:1)"
    ]
    same_alias = second(rule, ("advisor:", "aliases: [new, HD001]\nadvisor:"))
    assert told([write(rule() + "---\n" + same_alias)], advisors) == [
        "r.yaml:36:16: 'HD001' already belongs to rule HD001 (r.yaml:1)"
    ]


def test_a_later_source_gives_a_rule_again(rule: Rule, write: Write, advisors: Advisors) -> None:
    sources = [write(rule(), "a.yaml"), write(rule(("The host keeps up", "Mine")), "b.yaml")]
    (compiled,) = load_rules(sources, advisors)
    assert (compiled.file, compiled.rule.text.good.en) == ("b.yaml", "Mine")


OVERRIDE = """\
override: device-idle
params:
  idle_share: {value: 0.2, why: "our jobs are small"}
  min_idle: {value: 7}
severity: {high: idle_share > params.idle_share}
limit: 3
"""


def test_override_documents(rule: Rule, write: Write, advisors: Advisors) -> None:
    base = write(rule(), "a.yaml")
    (compiled,) = load_rules([base, write(OVERRIDE, "mine.yaml")], advisors)
    assert compiled.params == {"idle_share": 0.2, "min_idle": 7000}
    assert compiled.rule.params["idle_share"].why == "our jobs are small"
    assert compiled.rule.params["min_idle"].why == "shorter gaps are launch latency"
    assert compiled.set_by == {"idle_share": "mine.yaml:1", "min_idle": "mine.yaml:1"}
    assert [condition.source for _, condition in compiled.severity] == [
        "idle_share > params.idle_share",
        "false",
        "true",
    ]
    assert (compiled.rule.limit, compiled.file) == (3, "a.yaml")
    assert compiled.why.render({"kernel": "x"}).en == "Above 20 % it is x."
    same_source = write("override: HD001\nlimit: 1\n---\n" + rule(), "c.yaml")
    assert load_rules([same_source], advisors)["HD001"].rule.limit == 1


def test_switching_a_rule_off(rule: Rule, write: Write, advisors: Advisors) -> None:
    book = load_rules([write(rule(), "a.yaml"), write("override: OLD001\nenabled: false", "b.yaml")], advisors)
    assert (len(book), [compiled.id for compiled in book.disabled]) == (0, ["HD001"])
    assert book["HD001"].rule.name == "device-idle"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("override: HD002\n", "b.yaml:1:11: no rule 'HD002' (did you mean 'HD001'?)"),
        ("override: HD001\nlimits: 1\n", "b.yaml:2:1: unknown key 'limits' (did you mean 'limit'?)"),
        ("override: HD001\nwhen: late\n", "b.yaml:2:1: unknown key 'when'"),
        ("override: HD001\nparams: {idle_shre: {value: 1}}\n", "b.yaml:2:10: rule HD001 has no parameter 'idle_shre' (did you mean 'idle_share'?)"),
        ("override: HD001\nparams: {idle_share: {value: 2}}\n", "b.yaml:2:30: 2 is outside of the range 0.01 to 0.9 ratio"),
        ("override: HD001\nparams: {idle_share: {value: true}}\n", "b.yaml:2:30: True is not a number"),
        ("override: HD001\nseverity: {high: idle_shre > 1}\n", "b.yaml:2:18: unknown name 'idle_shre' (did you mean 'idle_share'?)"),
        ("override: HD001\nenabled: off\n", "b.yaml:2:10: some YAML readers take off for a boolean (write true or false, or \"off\" in quotes)"),
    ],
)  # fmt: skip
def test_overrides_that_do_not_fit(text: str, message: str, rule: Rule, write: Write, advisors: Advisors) -> None:
    assert told([write(rule(), "a.yaml"), write(text, "b.yaml")], advisors) == [message]


def test_params_of_the_command_line(rule: Rule, write: Write, advisors: Advisors) -> None:
    path = write(rule())
    (compiled,) = load_rules([path], advisors, {"HD001.idle_share": "0.25", "old-name.min_idle": 100})
    assert compiled.params == {"idle_share": 0.25, "min_idle": 100_000}
    assert compiled.set_by == {"idle_share": "--set", "min_idle": "--set"}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("HD001.idle_shre", 1, "rule HD001 has no parameter 'idle_shre' (did you mean 'idle_share'?)"),
        ("HD001.zzz", 1, "rule HD001 has no parameter 'zzz' (it has: idle_share, min_idle)"),
        ("HD002.idle_share", 1, "no rule 'HD002' (did you mean 'HD001'?)"),
        ("idle_share", 1, "write ID.param=VALUE"),
        ("HD001.idle_share", 5, "5 is outside of the range 0.01 to 0.9 ratio"),
        ("HD001.idle_share", "lots", "'lots' is not a number"),
        ("HD001.idle_share", "nan", "'nan' is not a number"),
        ("HD001.idle_share", float("nan"), "nan is not a number"),
        ("HD001.min_idle", float("inf"), "inf is not a number"),
        ("HD001.min_idle", None, "None is not a number"),
    ],
)  # fmt: skip
def test_params_of_the_command_line_that_do_not_fit(
    key: str, value: Scalar, message: str, rule: Rule, write: Write, advisors: Advisors
) -> None:
    assert told([write(rule())], advisors, {key: value}) == [f"--set {key}: {message}"]


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("HD001.idle_share", "30%", 0.3),
        ("HD001.idle_share", " 7 percent", 0.07),
        ("HD001.min_idle", "2 ms", 2_000_000),
        ("HD001.min_idle", "0.5us", 500),
        ("HD001.min_idle", "100 \u00b5s", 100_000),
    ],
)
def test_numbers_of_the_command_line_may_have_a_unit(
    key: str, text: str, value: float, rule: Rule, write: Write, advisors: Advisors
) -> None:
    (compiled,) = load_rules([write(rule())], advisors, {key: text})
    assert compiled.params[key.partition(".")[2]] == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 ms", "'2 ms' is in ms, but the parameter is in ratio"),
        ("2 persent", "unknown unit 'persent' (did you mean 'percent'?)"),
        ("95 %", "95 % is outside of the range 0.01 to 0.9 ratio"),
    ],
)
def test_units_that_do_not_fit(text: str, message: str, rule: Rule, write: Write, advisors: Advisors) -> None:
    assert message in told([write(rule())], advisors, {"HD001.idle_share": text})[0]


def test_settings_tell_their_place(rule: Rule, write: Write, advisors: Advisors) -> None:
    origins = Origins(
        reasons=(("HD001", ("advisor.toml:3", "*ours*")),), settings=(("HD001.idle_share", "advisor.toml:5"),)
    )
    book = load_rules([write(rule())], advisors, {"HD001.idle_share": 0.2}, origins=origins)
    assert book["HD001"].set_by == {"idle_share": "advisor.toml:5"}
    text = book.ignore(["HD001"], origins).left_out["HD001"]
    assert text.en.endswith(": \\*ours\\*") and text.zh.endswith("：\\*ours\\*")
    assert book.ignore(["device-idle"], origins).left_out["HD001"].en == "left out by --ignore"


def test_words_and_booleans_can_be_set(rule: Rule, write: Write, advisors: Advisors) -> None:
    params = "  flag: {value: false, unit: '', why: for this test}\n  word: {value: a, unit: '', why: for this test}\n"
    text = rule(("  min_idle:", params + "  min_idle:"), ("launches > 0", "params.flag or kernel == params.word"))
    book = load_rules([write(text)], advisors, {"HD001.flag": "true", "HD001.word": "2"})
    assert (book["HD001"].params["flag"], book["HD001"].params["word"]) == (True, "2")
    assert "is not true or false" in told([write(text)], advisors, {"HD001.flag": "maybe"})[0]


def test_order_follows_after_and_else_the_id(rule: Rule, write: Write, advisors: Advisors) -> None:
    texts = [
        second(rule, ("claims:", "after: [HD003]\nclaims:"), number=1),
        second(rule, number=2),
        second(rule, ("claims:", "after: [HD004]\nclaims:"), number=3),
        second(rule, number=4),
    ]
    for order in itertools.permutations(texts):
        book = load_rules([write("---\n".join(order))], advisors)
        assert [compiled.id for compiled in book] == ["HD002", "HD004", "HD003", "HD001"]


@pytest.mark.parametrize("relation", ["after", "explains"])
def test_circles(relation: str, rule: Rule, write: Write, advisors: Advisors) -> None:
    texts = [
        second(rule, ("claims:", f"{relation}: [HD00{number % 3 + 1}]\nclaims:"), number=number) for number in (1, 2, 3)
    ]
    texts.append(second(rule, ("claims:", f"{relation}: [HD001]\nclaims:"), number=4))
    path = write("---\n".join(texts))
    assert told([path], advisors) == [f"r.yaml:13:1: rules HD001, HD002, HD003 form a circle of `{relation}`"]
    assert [compiled.id for compiled in load_rules([path], advisors, strict=False)] == ["HD004"]


def test_referring_to_a_rule_that_is_wrong_is_not_wrong(rule: Rule, write: Write, advisors: Advisors) -> None:
    broken = second(rule, ("severity:", "serverity:"), number=1)
    later = second(rule, ("claims:", "after: [HD001]\nexplains: [HD001]\nclaims:"), number=2)
    path = write(f"{broken}---\n{later}---\noverride: HD001\nlimit: 2\n")
    assert len(told([path], advisors, {"HD001.idle_share": 0.2})) == 1
    assert [compiled.id for compiled in load_rules([path], advisors, strict=False)] == ["HD002"]


def test_select_and_ignore(rule: Rule, write: Write, advisors: Advisors) -> None:
    other = rule(
        ("id: HD001", "id: CO001"), ("name: device-idle", "name: other"), ("aliases: [OLD001, old-name]\n", "")
    )
    book = load_rules([write("---\n".join([rule(), second(rule), other]))], advisors)

    def ids(names: list[str]) -> list[str]:
        return [compiled.id for compiled in book.select(names)]

    assert ids(["HD"]) == ids(["HD00"]) == ids(["HD002", "OLD001"]) == ["HD001", "HD002"]
    assert ids(["other", "device-idle"]) == ["CO001", "HD001"]
    assert [compiled.id for compiled in book.ignore(["HD001", "CO"])] == ["HD002"]
    with pytest.raises(
        RuleFileError, match=r"^--select: no rule 'HD003' \(did you mean 'HD00\d'\?\)\n--select: no rule 'xx'$"
    ):
        book.select(["HD001", "HD003", "xx"])
    with pytest.raises(RuleFileError, match="--ignore: no rule ''"):
        book.ignore([""])


def test_a_symptom_names_its_causes(rule: Rule, write: Write, advisors: Advisors) -> None:
    cause = second(rule)
    symptom = rule(("claims:", "explained_by: [HD002]\nclaims:"))
    book = load_rules([write("---\n".join([symptom, cause]))], advisors)
    assert book["HD002"].explains == ("HD001",) and book["HD001"].explains == ()
    circle = rule(("claims:", "explained_by: [HD002]\nexplains: [HD002]\nclaims:"))
    assert "form a circle of `explains`" in "".join(told([write("---\n".join([circle, cause]))], advisors))


def test_only_files_of_the_user_replace_rules(rule: Rule, write: Write, advisors: Advisors) -> None:
    ours, theirs = write(rule(), "ours.yaml"), write(rule(("device-idle", "device-idle-too")), "theirs.yaml")
    installed = load_rules([Ruleset("ours", ours), Ruleset("theirs", theirs)], advisors, strict=False)
    assert [problem.message for problem in installed.problems] == ["rule HD001 is taken"]
    assert installed["HD001"].rule.name == "device-idle"
    asked_for = load_rules([Ruleset("ours", ours), theirs], advisors)
    assert asked_for["HD001"].rule.name == "device-idle-too" and asked_for["HD001"].replaces.endswith("ours.yaml")


VENDORS = ("name: device-idle", "name: device-idle\nvendors: [gpu]")


def test_whose_profiles_a_rule_is_for(rule: Rule, write: Write, advisors: Advisors) -> None:
    """The rule says it, else the defaults of its files, else its set; a file of the user is for any vendor."""
    (of_user,) = load_rules([write(rule())], advisors)
    assert (of_user.ruleset, of_user.vendors) == ("r", ())
    (of_set,) = load_rules([Ruleset("mine", write(rule()), vendors=("ascend",))], advisors)
    assert (of_set.ruleset, of_set.vendors) == ("mine", ("ascend",))
    (own,) = load_rules([Ruleset("mine", write(rule(VENDORS)), vendors=("ascend",))], advisors)
    assert own.vendors == ("gpu",)
    defaults = write("defaults: {}\nvendors: [gpu]\n---\n" + rule())
    assert [compiled.vendors for compiled in load_rules([defaults], advisors)] == [("gpu",)]
    assert of_user.judges(["gpu"]) and of_set.judges(["ascend"]) and of_set.judges([""])
    assert not of_set.judges(["gpu"]) and of_set.judges(["gpu", "ascend"])
    with pytest.raises(TypeError, match="tuple of names"):
        Ruleset("mine", defaults, vendors="gpu")


def test_a_vendor_that_no_plugin_knows_is_a_mistake(rule: Rule, write: Write, advisors: Advisors) -> None:
    book = load_rules([write(rule(VENDORS))], advisors, vendors=("ascend", "gpus"), strict=False)
    assert [problem.message for problem in book.problems] == ["no vendor 'gpu'"] and len(book) == 0
    defaults = write("defaults: {}\nvendors: [ascent]\n---\n" + rule())
    (problem,) = load_rules([defaults], advisors, vendors=("ascend",), strict=False).problems
    assert str(problem).endswith("2:11: no vendor 'ascent' (did you mean 'ascend'?)")


def test_what_is_left_out_says_by_what(rule: Rule, write: Write, advisors: Advisors) -> None:
    change = "override: HD001\nenabled: false\nwhy: our cluster has no such host\n"
    book = load_rules([write(rule(), "a.yaml"), write(change, "b.yaml")], advisors)
    assert book.left_out["HD001"].en == "switched off in b.yaml:1: our cluster has no such host"
    both = load_rules([write("---\n".join([rule(), second(rule)]))], advisors)
    assert both.ignore(["HD001"]).left_out["HD001"].en == "left out by --ignore"
    assert both.select(["HD001"]).left_out["HD002"].en == "left out by --select"
    assert {compiled.id for compiled in both.select(["HD001"]).disabled} == {"HD002"}


def test_claims_are_paths_of_the_ledger(rule: Rule, write: Write, advisors: Advisors) -> None:
    (problem,) = told([write(rule(("[idle/host]", "[idel/host]")))], advisors)
    assert "the ledger has no 'idel/host' (did you mean 'idle/host'?)" in problem


def test_all_mistakes_of_a_rule_are_told_in_one_round(rule: Rule, write: Write, advisors: Advisors) -> None:
    text = rule(
        ("severity:", "serverity:"),
        ("idle_share > 0.5", "idel_share > 0.5"),
        ("launches > 0", "lunches > 0"),
        ("claims:", "explains: [HD009]\nclaims:"),
        ("upper_bound", "guess"),
        ("value: 50,", "value: [1],"),
        ("Run again.", "{{ x }}"),
    )
    assert [line.split(": ")[:2] for line in told([write(text)], advisors)] == [
        ["r.yaml:7:21", "expected true or false or a whole number or a number or text, found [1]"],
        ["r.yaml:8:10", "unknown name 'lunches' (did you mean 'launches'?)"],
        ["r.yaml:12:1", "unknown key 'serverity' (did you mean 'severity'?)"],
        ["r.yaml:12:19", "unknown name 'idel_share' (did you mean 'idle_share'?)"],
        ["r.yaml:13:33", "'guess' is not one of exact, estimate, upper_bound"],
        ["r.yaml:14:12", "no rule 'HD009'"],
        ["r.yaml:31:20", "unknown name 'x'"],
    ]


def test_an_advisor_that_does_not_exist_hides_no_other_mistake(rule: Rule, write: Write, advisors: Advisors) -> None:
    text = rule(("claims:", "explains: [HD009]\nclaims:"), ("launches > 0", "lunches > 0"))
    assert [line.split(":")[1] for line in told([write(text)], advisors)] == ["8", "14"]


def test_all_mistakes_of_an_override_are_told_in_one_round(rule: Rule, write: Write, advisors: Advisors) -> None:
    change = "override: HD001\nlimits: 1\nparams: {idle_shre: {value: 1}}\nseverity: {high: idel_share > 1}\n"
    found = told([write(rule(), "a.yaml"), write(change, "b.yaml")], advisors)
    assert [line.split(": ")[0] for line in found] == ["b.yaml:2:1", "b.yaml:3:10", "b.yaml:4:18"]
    book = load_rules([write(rule(), "a.yaml"), write(change, "b.yaml")], advisors, strict=False)
    assert next(condition.source for _, condition in book["HD001"].severity) == "idle_share > 0.5"


DEFAULTS = """\
defaults:
  medium_share: {value: 0.3, unit: ratio, range: [0, 1], why: "a third of the step is much"}
  high_share: {value: 0.5, unit: ratio, range: [0, 1], why: "half of the step is most of it"}
  spare: {value: 1, unit: count, why: "no rule reads this one"}
"""
BY_SHARE = ("{high: idle_share > 0.5, medium: idle_share > 0.3}", "{by_share: idle_share}")


def test_defaults_are_for_the_rules_of_the_set(rule: Rule, write: Write, advisors: Advisors) -> None:
    folder = write(rule(BY_SHARE), "set/a.yaml").parent
    write(DEFAULTS, "set/defaults.yaml")
    compiled = load_rules([folder], advisors, {"HD001.medium_share": 0.2})["HD001"]
    assert [condition.source for _, condition in compiled.severity] == [
        "idle_share >= params.high_share",
        "idle_share >= params.medium_share",
        "true",
    ]
    assert {
        "high_share": 0.5,
        "medium_share": 0.2,
    }.items() <= compiled.params.items() and "spare" not in compiled.params
    own = rule(BY_SHARE, ("  min_idle:", "  high_share: {value: 0.6, unit: ratio, why: for this test}\n  min_idle:"))
    write(own, "set/a.yaml")
    assert load_rules([folder], advisors)["HD001"].params["high_share"] == 0.6
    other = write(second(rule, BY_SHARE), "other.yaml")
    assert told([folder, other], advisors) == [
        "other.yaml:11:22: unknown name 'params.high_share' (give it in `params`, or in the `defaults` of the set)",
        "other.yaml:11:22: unknown name 'params.medium_share' (give it in `params`, or in the `defaults` of the set)",
    ]
    change = write("override: HD001\nseverity: {by_share: idle_share, high: false}\n", "mine.yaml")
    severity = load_rules([folder, change], advisors)["HD001"].severity
    assert [condition.source for _, condition in severity] == ["false", "idle_share >= params.medium_share", "true"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('[0, 1], why: "a', '[0, 0.2], why: "a', "set/defaults.yaml:2:25: 0.3 is outside of the range 0 to 0.2"),
        ("  high_share:", "  high share:", "set/defaults.yaml:3:3: 'high share' is not a name such as min_share"),
    ],
)
def test_defaults_with_mistakes(old: str, new: str, message: str, rule: Rule, write: Write, advisors: Advisors) -> None:
    folder = write(rule(), "set/a.yaml").parent
    write(DEFAULTS.replace(old, new), "set/defaults.yaml")
    assert told([folder], advisors) == [message]


SIGNS = ("launches > 0\n", "launches > 0\nsigns: {long: idle_ns > params.min_idle, many: launches > 1}\n")
WHEN = (
    "  idle_share > params.idle_share\n  and idle_ns >= params.min_idle\n",
    "  long or (many and idle_share > params.idle_share)\n",
)


def test_signs_are_named_parts_of_the_condition(rule: Rule, write: Write, advisors: Advisors) -> None:
    compiled = load_rules([write(rule(SIGNS, WHEN))], advisors)["HD001"]
    assert compiled.when.source == "long or (many and idle_share > params.idle_share)"
    assert compiled.condition == ("(idle_ns > params.min_idle) or ((launches > 1) and idle_share > params.idle_share)")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("long or", "lomg or", ["11:3: unknown name 'lomg' (did you mean 'long'?)"]),
        ("long or ", "", ["9:9: sign 'long' is not used in `when` or `severity`"]),
        ("signs: {long: idle_ns", "signs: {long: idel_ns", ["9:15: unknown name 'idel_ns' (did you mean 'idle_ns'?)"]),
        ("many", "size", ["9:42: 'size' is a column of the advisor already"]),
    ],
)
def test_signs_that_do_not_fit(
    old: str, new: str, message: list[str], rule: Rule, write: Write, advisors: Advisors
) -> None:
    text = rule(SIGNS, WHEN)
    assert old in text
    found = told([write(text.replace(old, new))], advisors)
    assert [line.removeprefix("r.yaml:") for line in found] == message


@pytest.mark.parametrize(
    ("requires", "message"),
    [
        ("npu-advisor>=99", "r.yaml:3:11: needs npu-advisor>=99, and this is "),
        ("npu-advisor>>1", "r.yaml:3:11: 'npu-advisor>>1' is not a requirement (write npu-advisor>=0.1)"),
        ("other>=1", "r.yaml:3:11: a rule file can require npu-advisor only (write npu-advisor>=0.1)"),
    ],
)
def test_a_rule_for_another_version(requires: str, message: str, rule: Rule, write: Write, advisors: Advisors) -> None:
    text = rule(("launches > 0", "lunches > 0"), ("aliases:", f"requires: {requires}\nunheard_of: 1\naliases:"))
    (found,) = told([write(text)], advisors)
    assert found.startswith(message)
    met = rule(("aliases:", "requires: npu-advisor>=0.1\naliases:"))
    assert len(load_rules([write(met)], advisors)) == 1


def test_of_a_trusted_set_only_what_others_change_is_checked(rule: Rule, write: Write, advisors: Advisors) -> None:
    """The set has a mistake that its tests would have told, in both rules: where it is used, or changed, it is told."""
    mistake = ("idle_share > 0.3", "idle_shar > 0.3")
    ours = Ruleset("ours", write(f"{rule(mistake)}---\n{second(rule, mistake)}", "ours.yaml"))
    book = load_rules([ours], advisors, trusted=["ours"])
    with pytest.raises(RuleFileError, match="unknown name 'idle_shar'"):
        _ = book["HD001"].severity
    change = write("override: HD002\nseverity: {high: idle_share > 0.4}", "mine.yaml")
    assert load_rules([ours, change], advisors, trusted=["ours"])["HD002"].severity[0][0] == "high"
    changed = write("override: HD002\nlimit: 3", "mine.yaml")
    with pytest.raises(RuleFileError) as caught:
        load_rules([ours, changed], advisors, trusted=["ours"])
    (said,) = str(caught.value).splitlines()
    assert "unknown name 'idle_shar'" in said and "ours.yaml:4" in said
    assert len(told([ours, changed], advisors)) == 2, "without trust both are checked"
