"""The parts of a difference add up to it exactly, whatever the ledgers and whatever is withheld."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from advisor_core.compare.causes import MATTERS
from advisor_core.compare.compare import compare
from advisor_core.compare.difference import covered_shares, ledger_differences
from advisor_core.compare.match import matched
from advisor_core.result.run import COVERED, LedgerEntry, LedgerStep
from tests.compare.results import finding, result, step, work

PATHS = (
    "compute/matmul", "compute/cast", "communication/transmit", "communication/wait/rank 1",
    "communication/wait/rank 2", "idle/host/python", "idle/sync",
)  # fmt: skip
entries = st.dictionaries(st.sampled_from(PATHS), st.integers(0, 10**12), min_size=1)


@st.composite
def ledgers(draw: st.DrawFn) -> list[LedgerStep]:
    ranks, steps = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    return [step(draw(entries), rank, number) for rank in range(ranks) for number in range(steps)]


@given(ledgers(), ledgers(), st.sets(st.sampled_from(["compute", "communication", "idle"])))
def test_entries_add_up(before: list[LedgerStep], after: list[LedgerStep], whole: set[str]) -> None:
    match = matched(result(before), result(after))
    rows = ledger_differences(match, whole)
    assert sum(row.difference_ns for row in rows) == match.after.mean.wall_ns - match.before.mean.wall_ns
    assert sum(row.before_ns for row in rows) == match.before.mean.wall_ns
    assert all(row.after_ns - row.before_ns == row.difference_ns for row in rows)
    assert not any(row.path.startswith(f"{trunk}/") for row in rows for trunk in whole)


# The mean of two ranks, rounded to whole nanoseconds, may be a step of no length.
@example([step({"compute/matmul": 0})], [step({"compute/matmul": 0}), step({"compute/matmul": 1}, rank=1)])
@given(ledgers(), ledgers())
def test_the_waterfall_adds_up(before: list[LedgerStep], after: list[LedgerStep]) -> None:
    told = compare(result(before), result(after))
    parts = sum(cause.difference_ns for cause in told.causes)
    assert told.verdict.before_ns + parts + told.rest_ns == told.verdict.after_ns
    assert all(abs(cause.difference_ns) >= MATTERS * told.verdict.before_ns for cause in told.causes)
    assert sum(row.difference_ns for row in told.ledger) == told.verdict.difference_ns


def test_a_cause_names_what_moved_the_same_way() -> None:
    before = result([step({"compute/matmul": 800, "idle/sync": 200})], [finding("A", 150)], states={"B": "pass"})
    after = result(
        [step({"compute/matmul": 800, "idle/sync": 900})], [finding("A", 80), finding("B", 700), finding("C", 50)]
    )
    told = compare(before, after)
    (cause,) = told.causes
    assert (cause.path, cause.difference_ns) == ("idle/sync", 700)
    assert [told.findings[place].rule for place in cause.findings] == ["B", "C"]  # A shrank
    back = compare(after, before)
    assert [back.findings[place].rule for place in back.causes[0].findings] == ["B", "C"]


def test_waiting_for_another_rank_is_one_entry() -> None:
    before = result([step({"compute/matmul": 500, "communication/wait/rank 5": 500})])
    after = result([step({"compute/matmul": 500, "communication/wait/rank 6": 510})])
    told = compare(before, after)
    assert [(cause.path, cause.difference_ns) for cause in told.causes] == [("communication/wait", 10)]
    assert len([row for row in told.ledger if row.path.startswith("communication/wait/")]) == 2


def test_two_causes_in_one_regression_stand_apart() -> None:
    """Idle time of the host, and kernels that take longer at equal counts (docs/reference/cases.md, case 31)."""
    before = result(
        [step({"compute/matmul": 600, "idle/host/framework": 100})],
        work=[work(("MatMulV2", "8,8", 4, 600))],
        states={"HD": "pass"},
    )
    after = result(
        [step({"compute/matmul": 900, "idle/host/framework": 500})],
        [finding("HD", 400, "idle/host/framework")],
        work=[work(("MatMulV2", "8,8", 4, 900))],
    )
    told = compare(before, after)
    assert [(cause.path, cause.difference_ns) for cause in told.causes] == [
        ("idle/host/framework", 400),
        ("compute/matmul", 300),
    ]
    idle, computing = told.causes
    assert ([told.findings[place].rule for place in idle.findings], idle.operators) == (["HD"], [])
    (slower,) = (told.operators[place] for place in computing.operators)
    assert (slower.type, slower.change, slower.by_count_ns, slower.by_time_ns) == ("MatMulV2", "time", 0, 300)
    assert computing.findings == []


def test_covered_communication_is_compared() -> None:
    def covering(covered: int, bare: int) -> LedgerStep:
        computing = LedgerEntry(path="compute/matmul", ns=900, detail={COVERED: covered} if covered else {})
        plain = step({"compute/cast": 100, "communication/transmit": bare})
        return plain.model_copy(update={"wall_ns": 1000 + bare, "entries": [computing, *plain.entries]})

    before, after = result([covering(30, 90), covering(20, 60)]), result([covering(80, 20)])
    assert covered_shares(matched(before, after)) == (0.25, 0.8)
    assert covered_shares(matched(before, result([covering(0, 0)]))) == (0.25, None)
