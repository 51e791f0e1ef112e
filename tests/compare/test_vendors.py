"""A GPU beside an NPU: by what is computed, with the difference divided, whichever stands first."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.compare.compare import compare, compare_all
from advisor_core.compare.computed import Side, divide
from advisor_core.result.comparison import Comparison, Origin
from advisor_core.result.run import RunResult
from advisor_core.result.work import ChipPeaks, CollectiveTime, ComputedTime, Work
from reports.comparison.document import document, headline
from reports.comparison.terminal import summary
from reports.html import HtmlRenderer
from reports.labels import Labels
from reports.markdown import MarkdownRenderer
from tests.compare.results import result, step, work
from tests.reports.test_report_html import Page
from tests.reports.test_report_texts import parse

GPU = ChipPeaks(flops={"BF16": 300e12}, bytes_per_second=2e12)
NPU = ChipPeaks(flops={"BF16": 150e12}, bytes_per_second=1e12)
FLOPS = 3e12
"""10 ms at the peak of the GPU, 20 ms at that of the NPU."""


def row(kind: str, what: str | None, ns: int, *, computing: int = 0, memory: int = 0, **more: Any) -> ComputedTime:
    least = max(computing, memory)
    fields: dict[str, Any] = {
        "kind": kind, "what": what, "dtype": "BF16" if computing else "", "block": "", "in_pass": "forward",
        "calls": 1, "kernels": 1, "ns": ns, "bounded_ns": ns if least else 0, "least_ns": least,
        "computing_ns": computing, "memory_ns": memory, "flops": 0.0,
    }  # fmt: skip
    return ComputedTime.model_validate(fields | more)


def run(vendor: str, rows: list[ComputedTime], idle: int = 0, peaks: ChipPeaks | None = None, **more: Any) -> RunResult:
    done = Work(rank_steps=1, operators=[], collectives=[], computed=rows, peaks=peaks)
    done = done.model_copy(update=more.pop("work", {}))
    entries = {"compute/matmul": sum(one.ns for one in rows), "idle/host/python": idle, **more.pop("entries", {})}
    return result([step(entries)], source={"vendor": vendor}, work=[done], **more)


MS = 1_000_000


def gpu(**more: Any) -> RunResult:
    """A product at 80 % of the peak, and a norm in one kernel that moves 2 GB."""
    rows = [
        row("product", "4096 x 4096 x 4096", 12_500_000, computing=10 * MS, flops=FLOPS),
        row("computation", "rms_norm", 2 * MS, memory=MS),
    ]
    return run("gpu", rows, idle=MS, peaks=GPU, **more)


def npu(**more: Any) -> RunResult:
    """The same product at half of the peak, and the norm in nine kernels that move 10 GB."""
    rows = [
        row("product", "4096 x 4096 x 4096", 40 * MS, computing=20 * MS, flops=FLOPS),
        row("computation", "rms_norm", 25 * MS, memory=10 * MS, kernels=9),
    ]
    return run("ascend", rows, idle=4 * MS, peaks=NPU, **more)


def origins(told: Comparison) -> dict[str, Origin]:
    return {origin.path: origin for origin in told.origins}


def parts(origin: Origin) -> tuple[int, int, int, int]:
    one = origin.division
    assert one is not None
    assert one.chip_ns + one.work_ns + one.above_ns + one.untold_ns == origin.difference_ns
    return one.chip_ns, one.work_ns, one.above_ns, one.untold_ns


def test_the_difference_is_divided_by_hand() -> None:
    told = compare(gpu(), npu())
    assert told.verdict.outcome == "across_vendors" and told.verdict.difference_ns == (69 - 15.5) * MS
    found = origins(told)
    assert sum(origin.difference_ns for origin in told.origins) == told.verdict.difference_ns
    assert list(found) == ["compute/product", "compute/computation/rms_norm", "idle/host/python"]
    # The product: the chip has half of the peak, and the rest is that less of it is reached.
    assert parts(found["compute/product"]) == (10 * MS, 0, 17_500_000, 0)
    # The norm: 2 GB take 1 ms there and 2 ms here, 10 GB 5 ms and 10 ms; the means of both are 3 and 6 ms.
    assert parts(found["compute/computation/rms_norm"]) == (3 * MS, 6 * MS, 14 * MS, 0)
    division = found["compute/computation/rms_norm"].division
    assert division is not None and (division.kernels_before, division.kernels_after) == (1, 9)
    assert found["idle/host/python"].difference_ns == 3 * MS
    assert told.amounts is not None and told.amounts.same is True
    assert told.amounts.mfu == (pytest.approx(10 / 15.5), pytest.approx(20 / 69))


def test_the_order_does_not_matter() -> None:
    there, back = compare(gpu(), npu()), compare(npu(), gpu())
    assert back.verdict.difference_ns == -there.verdict.difference_ns
    for path, origin in origins(there).items():
        other = origins(back)[path]
        assert (other.before_ns, other.after_ns) == (origin.after_ns, origin.before_ns)
        if origin.division is not None:
            assert parts(other) == tuple(-ns for ns in parts(origin))
    assert [one.what for one in there.computed] == [one.what for one in back.computed]


def test_nothing_of_one_vendor_is_compared() -> None:
    told = compare(gpu(), npu())
    assert not any((told.operators, told.operator_shapes, told.apis, told.findings, told.promises, told.settings))
    assert {"verdict", "operators", "findings", "promises"} <= {*told.withheld}
    assert told.causes == [] and told.rest_ns == 0
    assert {entry.path for entry in told.ledger} == {"compute", "idle/host/python"}


def test_an_unknown_chip_leaves_the_difference_whole() -> None:
    told = compare(gpu(), run("ascend", npu().work[0].computed, peaks=None))
    assert "peaks" in {obstacle.about for obstacle in told.obstacles}
    # Of the product the work is the same, so that both bounds tell; bytes need the bandwidth of the other chip.
    assert parts(origins(told)["compute/computation/rms_norm"]) == (0, 0, 0, 23 * MS)


def test_another_batch_is_said_first() -> None:
    """Twice the tokens in twice the time: not the same work, and as long for each token."""
    half = run(
        "gpu", [row("product", "2048 x 4096 x 4096", 10 * MS, computing=8 * MS, flops=FLOPS)], peaks=GPU,
        work={"samples": {"tokens": 2048}},
    )  # fmt: skip
    whole = run(
        "ascend", [row("product", "4096 x 4096 x 4096", 20 * MS, computing=16 * MS, flops=2 * FLOPS)], peaks=GPU,
        work={"samples": {"tokens": 4096}},
    )  # fmt: skip
    told = compare(half, whole)
    assert told.amounts is not None and told.amounts.same is False and told.amounts.shared == 0
    before, after = told.amounts.ns_per_sample["tokens"]
    assert before == after == round(20 * MS / 4096)
    assert "amounts" in {obstacle.about for obstacle in told.obstacles}
    said = headline(compare_all(["a", "b"], [half, whole]), Labels("en"))
    assert "not the same work" in said and "per token 4.88 µs → 4.88 µs" in said
    # Twice the operations at the same peak: all of it is other work.
    assert parts(origins(told)["compute/product"]) == (0, 8 * MS, 2 * MS, 0)


def test_training_and_a_forward_pass_are_other_work_without_shapes() -> None:
    forward = run("gpu", [row("convolution", "", 10 * MS)])
    both = run("ascend", [row("convolution", "", 10 * MS), row("convolution", "", 20 * MS, in_pass="backward")])
    told = compare(forward, both)
    assert told.amounts is not None and told.amounts.same is False
    assert "passes" in {obstacle.about for obstacle in told.obstacles}


def test_shapes_of_one_side_do_not_tell() -> None:
    told = compare(run("gpu", [row("product", "", 10 * MS)]), npu())
    assert told.amounts is not None and (told.amounts.same, told.amounts.shared) == (None, None)
    assert "unknown_amounts" in {obstacle.about for obstacle in told.obstacles}
    assert "not known" in headline(compare_all(["a", "b"], [run("gpu", [row("product", "", 10)]), npu()]), Labels("en"))


def test_a_recording_without_steps_is_compared_by_its_kernels() -> None:
    told = compare(gpu(profile={"window": "recording"}), npu())
    assert told.ledger == [] and told.verdict.reason is not None
    assert {origin.path for origin in told.origins} == {"compute/product", "compute/computation/rms_norm"}
    assert sum(origin.difference_ns for origin in told.origins) == 50_500_000
    assert told.amounts is not None and told.amounts.ns_per_sample == {} and told.amounts.ns_per_tflop is None
    assert "no steps that could be compared" in headline(
        compare_all(["a", "b"], [gpu(profile={"window": "recording"}), npu()]), Labels("en")
    )


def test_kernels_that_run_beside_others() -> None:
    """14.5 ms of kernels in 12 ms of computing."""
    told = compare(gpu(entries={"compute/matmul": 12 * MS}), npu())
    beside = origins(told)["compute/beside"]
    assert (beside.before_ns, beside.after_ns, beside.difference_ns) == (-2_500_000, 0, 2_500_000)
    assert sum(origin.difference_ns for origin in told.origins) == told.verdict.difference_ns


def test_collectives_stand_side_by_side() -> None:
    calls = [
        CollectiveTime(
            operation="allReduce", members=8, spacing=1, bytes=1 << 20, calls=4, ns=4, uncovered_ns=ns, waiting_ns=0
        )
        for ns in (100, 300)
    ]
    told = compare(*(one(work={"collectives": [call]}) for one, call in zip((gpu, npu), calls, strict=True)))
    (row_,) = told.collectives
    assert (row_.operation, row_.before_ns, row_.after_ns) == ("allReduce", 100, 300)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("hcom_allReduce__445_5", "allReduce"), ("hcom_reduceScatter__1", "reduceScatter"), ("my_own", "my_own")],
)
def test_a_collective_is_known_by_its_kind(name: str, kind: str) -> None:
    def called(operation: str) -> CollectiveTime:
        return CollectiveTime(
            operation=operation, members=None, spacing=None, bytes=None, calls=1, ns=4, uncovered_ns=4, waiting_ns=0
        )

    told = compare(gpu(work={"collectives": [called(kind)]}), npu(work={"collectives": [called(name)] * 2}))
    (row_,) = told.collectives
    assert (row_.operation, row_.calls_before, row_.calls_after) == (kind, 1, 2)


def test_passes_and_parts_in_the_order_of_a_step() -> None:
    places = (("backward", "ffn"), ("forward", "ffn"), ("forward", "attention"))
    rows = [
        row("product", "8 x 8 x 8", 10 + 10 * n, in_pass=where[0], block=where[1]) for n, where in enumerate(places)
    ]
    told = compare(run("gpu", rows), run("ascend", rows[:2]))
    assert [(one.in_pass, one.block, one.before_ns, one.after_ns) for one in told.passes] == [
        ("forward", "attention", 30, 0), ("forward", "ffn", 20, 20), ("backward", "ffn", 10, 10),
    ]  # fmt: skip
    bare = [one.model_copy(update={"block": ""}) for one in rows]
    assert {one.block for one in compare(run("gpu", rows), run("ascend", bare)).passes} == {""}


def test_ranks_of_any_number_are_one_mean() -> None:
    """Rank 3 of a GPU job and ranks 0 and 1 of an NPU job: each side is the mean of its ranks."""
    one = result([step({"compute/matmul": 100}, rank=3)], source={"vendor": "gpu"})
    two = result([step({"compute/matmul": ns}, rank=rank) for rank, ns in ((0, 200), (1, 300))])
    told = compare(one, two)
    assert (told.verdict.before_ns, told.verdict.after_ns) == (100, 250)
    assert "no_ranks" not in {obstacle.about for obstacle in told.obstacles}


def test_idle_time_without_causes_is_one_entry() -> None:
    told = compare(gpu(), npu(entries={"idle/unknown": 50 * MS}))
    assert "vendor_idle" in {obstacle.about for obstacle in told.obstacles}
    assert {entry.path for entry in told.ledger} == {"compute", "idle"}


def test_one_vendor_is_as_before() -> None:
    told = compare(gpu(), gpu())
    assert told.amounts is None and told.origins == [] and told.computed == []
    assert told.verdict.outcome == "cannot_tell" and "vendor" not in {obstacle.about for obstacle in told.obstacles}


def test_bounds_of_a_part_of_the_time_divide_nothing() -> None:
    known, partly = Side(1, 1, 100, 100, 50, 60), Side(1, 1, 100, 80, 50, 60)
    assert divide(known, Side(1, 1, 150, 150, 50, 40)).untold_ns == 0
    assert divide(known, partly).untold_ns == 0 and divide(known, Side(1, 1, 150, 80, 50, 40)).untold_ns == 50


def test_what_one_side_does_not_list_is_not_gone() -> None:
    """The NPU lists one operation and a sum of the others: those of the GPU may be among them."""
    before = run("gpu", [row("operation", "add", 50), row("operation", "mul", 30)])
    after = run("ascend", [row("operation", "add", 70), row("operation", None, 40)])
    told = compare(before, after)
    assert {one.what: (one.before_ns, one.after_ns) for one in told.computed} == {"add": (50, 70), None: (30, 40)}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("window", ["step", "recording"])
def test_everything_is_written(lang: str, window: str) -> None:
    told = compare_all(["gpu", "npu"], [gpu(profile={"window": window}), npu()])
    page = document(told, Labels(lang))
    ids = {section.id for section in page.sections}
    assert "computed" in ids and ("ledger" in ids) is (window == "step")
    lines = summary(told, lang, []).split("\n")
    named = [text for text in lines if "RMSNorm" in text]
    assert len(named) == 2 and "1 → 9" in named[1]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_pages_are_valid_and_inert(lang: str) -> None:
    rows = [row("operation", "<b>*evil*", 20 * MS), row("grouped", "16 groups", MS), row("convolution", "", MS)]
    told = compare_all(["gpu", "npu"], [gpu(), run("ascend", [*npu().work[0].computed, *rows], peaks=NPU)])
    page = Page(HtmlRenderer().render_comparison(told, lang))
    assert not page.open and len(page.ids) == len({*page.ids}) and "None" not in page.text
    kinds = {kind for kind, _, _ in parse(MarkdownRenderer().render_comparison(told, lang))}
    assert not kinds & {"html_inline", "image"}
    several = compare_all(["gpu", "npu", "gpu"], [gpu(), npu(), gpu()])
    assert "RMSNorm" in HtmlRenderer().render_comparison(several, lang)


def test_work_without_the_new_fields_is_still_compared() -> None:
    """A report.json of an earlier version: computing is one part."""
    told = compare(
        result([step({"compute/matmul": 100})], source={"vendor": "gpu"}, work=[work(("mm", "8", 1, 100))]),
        result([step({"compute/matmul": 150})], work=[work(("MatMul", "8", 1, 150))]),
    )
    assert told.amounts is None and [origin.path for origin in told.origins] == ["compute"]
    assert "not_computed" in {obstacle.about for obstacle in told.obstacles}


_times = st.integers(0, 10**9)
_rows = st.lists(
    st.builds(
        lambda kind, what, ns, computing, memory, flops: row(
            kind, what, ns, computing=min(computing, ns), memory=min(memory, ns), flops=float(flops)
        ),
        st.sampled_from(["product", "attention", "computation", "operation"]),
        st.sampled_from(["a", "b", "c", None]),
        _times, _times, _times, _times,
    ),
    max_size=8,
    unique_by=lambda one: (one.kind, one.what),
)  # fmt: skip


@given(_rows, _rows, st.sampled_from([None, GPU]), _times)
def test_whatever_runs_the_parts_add_up_in_either_order(
    one: list[ComputedTime], other: list[ComputedTime], peaks: ChipPeaks | None, idle: int
) -> None:
    before, after = run("gpu", one, idle=idle + 1, peaks=peaks), run("ascend", other, idle=1, peaks=NPU)
    there, back = compare(before, after), compare(after, before)
    assert sum(origin.difference_ns for origin in there.origins) == there.verdict.difference_ns
    for origin in there.origins:
        mirrored = origins(back)[origin.path]
        assert mirrored.difference_ns == -origin.difference_ns
        if origin.division is not None:
            assert parts(mirrored) == tuple(-ns for ns in parts(origin))
