from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.contracts.problems import SourceError
from advisor_core.rules.language.expression import MAX_LENGTH, parse
from advisor_core.rules.language.scope import Scope


def refused(source: str, scope: Scope, **wanted: str) -> SourceError:
    with pytest.raises(SourceError) as caught:
        parse(source, scope, **wanted)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("idle_ns > params.min_gap", ["idle_ns", "params.min_gap"]),
        ("gap_us > idle_ns", ["gap_us", "idle_ns"]),  # both are times
        ("size >= params.amount", ["size", "params.amount"]),
        ("1 < launches <= 3", ["launches"]),
        ("-idle_share < -0.5", ["idle_share"]),
        ("kernel in ('a', 'b') or kernel not in ['c']", ["kernel"]),
        ("launches in (1, -2.5)", ["launches"]),
        ("not (late and params.flag)", ["late", "params.flag"]),
        ("late == false", ["late"]),
        ("env.TASK_QUEUE_ENABLE != '2'", ["env.TASK_QUEUE_ENABLE"]),
        ("profile.kind == 'training' and profile.steps > 1", ["profile.kind", "profile.steps"]),
        ("fired.HD001 or not fired.OLD001", ["fired.HD001"]),  # the former id is the same rule
        ("kernel == '算子 \"x\"'", ["kernel"]),
        ("idle_ns * idle_share > params.min_gap", ["idle_ns", "idle_share", "params.min_gap"]),
        ("idle_ns / launches > gap_us", ["idle_ns", "launches", "gap_us"]),
        ("1 - idle_share > params.share", ["idle_share", "params.share"]),
        ("idle_ns / 1000 > number", ["idle_ns", "number"]),  # may be a conversion: any unit
        ("size / idle_ns > 1", ["size", "idle_ns"]),
        ("idle_ns\n > 5\n and late", ["idle_ns", "late"]),
        ("true", []),
    ],
)
def test_accepted(source: str, names: list[str], scope: Scope) -> None:
    assert [symbol.key for symbol in parse(source, scope).symbols] == names


@pytest.mark.parametrize(
    ("source", "offset", "message", "hint"),
    [
        ("idle_shre > 1", 0, "unknown name 'idle_shre'", "did you mean 'idle_share'?"),
        ("late and params.shar > 1", 9, "unknown name 'params.shar'", "did you mean 'share'?"),
        ("min_gap > 1", 0, "unknown name 'min_gap'", "write params.min_gap"),
        ("kind == 'training'", 0, "unknown name 'kind'", "write profile.kind"),
        ("profile.knd == 'x'", 0, "unknown name 'profile.knd'", "did you mean 'kind'?"),
        ("env == '1'", 0, "unknown name 'env'", "write env.NAME"),
        ("parms.share > 1", 0, "unknown name 'parms.share'", "did you mean 'params'?"),
        ("fired.HD002", 0, "fired.HD002 is not among the rules in `after`", "did you mean 'HD001'?"),
        ("kernel == '算子' and nmber > 1", 19, "unknown name 'nmber'", "did you mean 'number'?"),
        ("idle_share", 0, "'idle_share' is a number, but a condition is needed here", "compare it with something"),
        ("late and launches", 9, "'launches' is a number, but a condition is needed here", "compare it with something"),
        ("not kernel", 4, "'kernel' is text, but a condition is needed here", "compare it with something"),
        ("kernel == 1", 0, "'kernel' is text, but '1' is a number: they cannot be compared", "write '1'"),
        ("late == 1", 0, "'late' is a condition, but '1' is a number: they cannot be compared", ""),
        ("kernel + 1 > 2", 0, "'+' needs numbers, but 'kernel' is text", ""),
        ("-late > 2", 1, "'late' is a condition, but a number is needed here", ""),
        ("kernel < 'a'", 0, "'<' compares numbers only", "for text there are == != in"),
        ("late < true", 0, "'<' compares numbers only", "for text there are == != in"),
        ("idle_ns > idle_share", 0, "'idle_ns' in ns cannot be compared with 'idle_share' in ratio", ""),
        ("idle_ns + size > 1", 0, "'idle_ns' in ns cannot be added to 'size' in B", ""),
        ("idle_ns - params.share > 1", 0, "'idle_ns' in ns cannot be subtracted from 'params.share' in ratio", ""),
        ("launches > params.min_gap", 0, "'launches' in count cannot be compared with 'params.min_gap' in ns", ""),
        ("idle_ns * idle_share > size", 0, "'idle_ns * idle_share' in ns cannot be compared with 'size' in B", ""),
        ("kernel in ('a')", 11, "'in' needs a list of constants, such as ('a', 'b')", "write ('a',)"),
        ("'a' in kernel", 7, "'in' needs a list of constants, such as ('a', 'b')", ""),
        ("kernel in ()", 10, "the list after 'in' is empty", ""),
        ("kernel in ('a', 1)", 16, "'kernel' is text, but the list has '1'", ""),
        ("launches in (1, size)", 16, "'in' needs a list of numbers or texts as they are", ""),
        (
            "late == kernel in ('a', 'b')",
            0,
            "'in' cannot be chained with other comparisons",
            "use parentheses and `and`",
        ),
        ("launches = 1", 9, "character '=' is not allowed", "compare with =="),
        ("late && late", 5, "character '&' is not allowed", "write and"),
        ("idle_share > 10%", 15, "character '%' is not allowed", "write the ratio: 0.1 for 10 %"),
        ("late is true", 5, "'is' is not allowed", "compare with =="),
        ("late == True", 8, "'True' is not allowed", "write true"),
        ("kernel == None", 10, "'None' is not allowed", "what is not known is neither equal nor unequal to anything"),
        ("late if late else late", 5, "'if' is not allowed", "not part of the condition language"),
        ("kernel == 'a", 10, "text is not closed, or stands where it cannot", ""),
        ("launches > 0x10", 11, "not a plain number", "write decimal digits, such as 1000 or 0.25"),
        ("launches > 1_000", 11, "not a plain number", "write decimal digits, such as 1000 or 0.25"),
        ("launches > 99999999999999999999", 11, "number 99999999999999999999 is too large", ""),
        ("launches > 1e999", 11, "number 1e999 is too large", ""),
        ("late # x\n and late", 5, "character '#' is not allowed", "no comments in conditions"),
    ],
)
def test_refused_with_place_and_hint(source: str, offset: int, message: str, hint: str, scope: Scope) -> None:
    error = refused(source, scope)
    assert (error.message, error.offset, error.hint) == (message, offset, hint)


@pytest.mark.parametrize(
    "source",
    [
        "__import__('os').system('true')",
        "print(1)",
        "late.__class__",
        "params.__class__.__mro__",
        "params.share.real > 1",
        "env['PATH'] == ''",
        "().__class__",
        "launches ** 9 > 1",
        "launches // 2 > 1",
        "launches @ 2",
        "~launches > 1",
        "+launches > 1",
        "(x := 1) > 0",
        "lambda: true",
        "[x for x in (1, 2)]",
        "{1: 2}",
        "f'{late}' == kernel",
        "r'a' == kernel",
        "b'a' == kernel",
        "'a' % 1 == kernel",
        "late, late",
        "*late",
        "...",
        "1j == launches",
        "ｌate",  # full width l: Python would read it as `late`
        "lаte",  # Cyrillic a
        "late\u00a0and late",
        "launches > ٣",  # an Arabic digit
        "late; late",
        "late\\\n and late",
        "'\\x41' == kernel",
        "late\x00",
        "yield",
        "await late",
        "010 > launches",
        "",
        "   ",
        "(late",
        "late)",
        "late and",
        "launches > > 1",
        "launches > 1or late",
    ],
)
def test_nothing_else_is_in_the_language(source: str, scope: Scope) -> None:
    refused(source, scope)


@pytest.mark.parametrize(
    "source",
    [
        "(" * 60 + "launches" + ")" * 60 + " > 1",
        "-" * 450 + "launches > 1",
        "not " * 120 + "late",
        "launches" + " + 1" * 60 + " > 1",
        "[" * 200 + "]" * 200,
        "(late and " * 40 + "late" + ")" * 40,
    ],
)
def test_deep_nesting(source: str, scope: Scope) -> None:
    assert "nested deeper than 30 levels" in refused(source, scope).message


def test_length_is_limited_before_anything_is_read(scope: Scope) -> None:
    assert f"longer than {MAX_LENGTH}" in refused("late" + " " * 0 + " and late" * 100_000, scope).message
    assert "longer" in refused("kernel == '" + "x" * 1_000_000 + "'", scope).message
    assert parse("late or " * 60 + "late", scope).symbols


def test_amounts_have_a_unit(scope: Scope) -> None:
    assert parse("idle_ns", scope, want="number", unit="ns").root.unit == "ns"
    assert parse(0, scope, want="number", unit="ns").source == "0"
    assert parse(2.5, scope, want="number").source == "2.5"
    assert parse("idle_ns * (1 - params.share)", scope, want="number", unit="ns").root.unit == "ns"
    assert parse("0.5 * idle_ns", scope, want="number", unit="ns").root.unit == ""
    assert (
        refused("idle_share", scope, want="number", unit="ns").message == "'idle_share' is in ratio, but ns is needed"
    )
    assert "but a number is needed here" in refused("late", scope, want="number").message


def test_booleans_of_yaml_are_conditions(scope: Scope) -> None:
    assert (parse(True, scope).source, parse(False, scope).source) == ("true", "false")


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text, Scope())
    except SourceError as error:
        assert 0 <= error.offset <= len(text)


@given(
    st.lists(
        st.sampled_from(
            [
                "late",
                "launches",
                "(",
                ")",
                "[",
                "]",
                ",",
                "1",
                "'a'",
                ".",
                "params",
                "share",
                *"+-*/<>=!",
                "and",
                "or",
                "not",
                "in",
                " ",
                "if",
                ":",
            ]
        ),
        max_size=25,
    )
)
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    with contextlib.suppress(SourceError):
        parse("".join(words), Scope())
