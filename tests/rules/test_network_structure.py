"""What all rules on network structure have in common, and what they say of whole profiles."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from math import prod
from pathlib import Path
from statistics import median

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.facts.store import FactStore
from advisor_core.result.finding import Finding
from advisor_core.result.run import RunResult
from advisor_core.rules.compiled import CompiledRule
from advisors.fusion.computations import computations
from tests.advisors.build import book, host, judged_for_gpus
from tests.advisors.real import real_rank

Run = Callable[..., RunResult]
RULES = [rule.id for rule in book("network_structure")]
SHAPED = (
    *("NS002", "NS010", "NS011", "NS012", "NS013", "NS014", "NS015", "NS016", "NS017", "NS018", "NS022"),
    *("NS030", "NS031", "NS032", "NS033", "NS034", "NS035", "NS036", "NS037", "NS038", "NS039", "NS040", "NS041"),
    *("NS042", "NS043", "NS044", "NS045", "NS046", "NS047", "NS048", "NS049", "NS054", "NS055", "NS056", "NS057"),
    *("NS058", "NS059"),
)
"""Rules that cannot answer without shapes; NS020, NS024 and NS025 ask for a norm first."""


def rules() -> Iterator[CompiledRule]:
    yield from book("network_structure")


def test_every_measurement_is_judged() -> None:
    judged = {rule.rule.advisor for rule in rules()}
    measured = {name for name in host().advisors if name.split(".")[0] == "network_structure"}
    assert judged <= measured and measured - judged <= judged_for_gpus()


def test_every_pattern_has_its_rule() -> None:
    applies = [rule.rule.applies or "" for rule in rules() if rule.rule.advisor == "network_structure.fusion"]
    conditions = [condition for one in applies for condition in one.split(" or ")]
    assert sorted(conditions) == sorted(f"pattern == '{name}'" for name in {one.name for one in computations()})
    apis = {one.name: one.api for one in computations() if not one.backward}
    for rule in rules():
        if rule.rule.applies and rule.rule.applies.startswith("pattern"):
            api = apis[rule.rule.applies.split("'")[1]]
            assert any(api in advice.text.en and api in advice.text.zh for advice in rule.rule.advice), rule.id


@pytest.mark.parametrize("rule", list(rules()), ids=lambda rule: rule.id)
def test_rule_is_complete(rule: CompiledRule) -> None:
    texts = rule.rule.text
    assert texts.not_a_problem_if is not None
    told = (texts.title, texts.good, texts.why, texts.verify, texts.not_a_problem_if)
    risks = [advice.risk for advice in rule.rule.advice if advice.risk]
    for text in (*told, *risks, *(advice.text for advice in rule.rule.advice)):
        assert text.en.strip() and re.search(r"[一-鿿]", text.zh)
        slots = r"\{\{\s*([\w.]+)"
        english = re.sub(r"\{\{ [\w.]+ \| plural\([^)]*\) \}\}", "", text.en)  # Chinese has no plural
        assert sorted(re.findall(slots, english)) == sorted(re.findall(slots, text.zh))
        assert not re.search(r"[一-鿿] [一-鿿]", text.zh), "no space between Chinese characters"
    for measured in (texts.title, texts.why):
        assert not re.search(r"\d\s*(%|ms|µs|us|GB|MB)\b", measured.en), "numbers come from the row or from params"
    for path in rule.rule.claims:
        # Fewer launches save time in which the device waits for the host.
        assert path.split("/")[0] in (("compute", "idle") if rule.rule.impact.idle else ("compute",))
    changes = [advice for advice in rule.rule.advice if advice.kind in ("env", "config", "code")]
    assert all(advice.risk is not None for advice in changes), "a change has a risk"
    assert rule.rule.impact.basis in ("estimate", "upper_bound"), "nobody has measured the network that was changed"


def test_no_advice_leans_on_what_is_removed_or_cannot_be_read() -> None:
    """An operator that is planned to be removed, and a setting that has no getter."""
    for rule in rules():
        for advice in rule.rule.advice:
            for text in (advice.text, advice.risk or advice.text):
                assert "npu_confusion_transpose" not in text.en + text.zh
                assert not re.search(r"print|打印", text.en + text.zh)


def test_the_symptom_is_explained_by_what_lies_in_the_layers() -> None:
    causes = {rule.id for rule in rules() if "NS001" in rule.explains}
    # The optimizer is outside of what NS001 measures, FP32 makes products longer, not shorter, and in a slow layer they
    # may be what is slow. What a new face in the layers costs is not known.
    assert causes == set(RULES) - {"NS001", "NS015", "NS016", "NS022", "NS034", "NS050", "NS060", "NS070"}
    symptom = book("network_structure")["NS001"].rule
    assert symptom.severity.high is False and "compute/optimizer" not in symptom.claims


# --- what is missing


def plain() -> Scene:
    scene = Scene().step(1, -10, 320).tensors(0, 100, "MatMulV3", ("8,8 FLOAT", "8,8 FLOAT"), ("8,8 FLOAT",))
    scene.tensors(100, 100, "RmsNorm", ("8,8 BF16",), ("8,8 BF16",))
    return scene.tensors(200, 100, "SoftmaxV2", ("8,8 FLOAT",), ("8,8 FLOAT",))


BY_NAMES = ("NS003", "NS004", "NS005", "NS006", "NS050", "NS052", "NS053")
"""What types and times tell, which names may tell as well: of the conversions, that there are none; the optimizer by
its marks. The others need types, shapes or the computations that kernels belong to."""
NO_TENSORS = {f"{side}_{what}": "" for side in ("input", "output") for what in ("shapes", "dtypes", "formats")}


def plain_without(*tables: str, level: str = "level1", **columns: str) -> FactStore:
    """The facts of it, with these values in the columns of all kernels; what one rule asks for others find."""
    scene = plain()
    for row in scene.rows["kernels"]:
        row |= columns
    return scene.store(*tables, level=level)


@pytest.fixture(scope="module")
def without_kernels() -> FactStore:
    return plain_without("kernels")


@pytest.fixture(scope="module")
def without_types() -> FactStore:
    return plain_without(level="level0", type="", core="")


@pytest.fixture(scope="module")
def without_shapes() -> FactStore:
    return plain_without(**NO_TENSORS)


@pytest.mark.parametrize("rule", RULES)
def test_without_kernels_or_their_types_there_is_no_answer(
    rule: str, without_kernels: FactStore, without_types: FactStore
) -> None:
    assert judge_rule(rule, without_kernels).state == "cannot_answer"
    assert (judge_rule(rule, without_types).state == "cannot_answer") == (rule not in BY_NAMES)


@pytest.mark.parametrize("rule", RULES)
def test_without_shapes_there_is_no_answer_where_they_are_needed(rule: str, without_shapes: FactStore) -> None:
    assert (judge_rule(rule, without_shapes).state == "cannot_answer") == (
        rule in (*SHAPED, "NS020", "NS024", "NS025", "NS060", "NS070")
    )


def converting(*types: str, level: str) -> Scene:
    """A product, and kernels of 100 us of these types; level 0 records neither types nor tensors."""
    scene = Scene().step(1, -10, 1_000).tensors(0, 100, "MatMulV3", ("8,8 FLOAT", "8,8 FLOAT"), ("8,8 FLOAT",))
    for number, kind in enumerate(types, 1):
        scene.tensors(100 * number, 100, kind, ("8,8 FLOAT",), ("8,8 FLOAT",))
    for row in scene.rows["kernels"]:
        row["name"] = f"aclnnMm_{row['type']}AiCore_{row['type']}"
        if level == "level0":
            row |= NO_TENSORS | {"type": "", "core": ""}
    return scene


def test_names_tell_format_conversions_as_types_do_and_nothing_of_shapes() -> None:
    by_names, by_types = (
        judge_rule("NS003", converting("TransData", "TransData", level=level).store(level=level)).first
        for level in ("level0", "level1")
    )
    told = {name: value for name, value in by_names.observation.items() if value is not None}
    assert told.pop("by_name") is True and by_types.observation["by_name"] is False
    assert told == {name: by_types.observation[name] for name in told}
    assert {"kernels", "total_ns", "loose_ns", "share_of_step"} <= told.keys()
    assert by_names.observation["largest_input"] is by_names.observation["back_and_forth_ns"] is None
    assert by_names.severity == by_types.severity
    assert "by their names alone" in by_names.why.en and "recorded types" in by_types.why.en


@pytest.mark.parametrize(("kind", "rule"), [("Cast", "NS005"), ("ConcatD", "NS004"), ("Transpose", "NS006")])
def test_what_a_fused_kernel_may_replace_is_not_told_by_names(kind: str, rule: str) -> None:
    """At level 1 what belongs to a computation is left to the rule about that: without shapes that is not known."""
    scene = converting(kind, kind, level="level0")
    assert judge_rule(rule, scene.store(level="level0")).state == "cannot_answer"
    assert judge_rule(rule, converting(kind, kind, level="level1").store()).state == "fail"


@pytest.mark.parametrize("rule", ["NS002", "NS010", "NS035"])
def test_without_outputs_no_rule_that_follows_tensors_is_in_order(rule: str) -> None:
    scene = plain()
    for row in scene.rows["kernels"]:
        row |= {"output_shapes": "", "output_dtypes": ""}
    assert judge_rule(rule, scene.store()).state == "cannot_answer"


def test_alexnet_at_level0_says_what_names_tell_and_what_to_collect(profiles: Path, advisor_run: Run) -> None:
    """The recording of the same job at level 1 has as many conversions in a step, told by types."""
    result = advisor_run(profiles / "ascend" / "alexnet-ddp-text-level0", select=("NS",))
    states = {rule.rule: rule.state for rule in result.rules if rule.rule in RULES}
    assert [rule for rule, state in states.items() if state == "fail"] == ["NS003"]
    assert all(states[rule] == "cannot_answer" for rule in RULES if rule not in BY_NAMES)
    assert all("level 1" in rule.collect.en for rule in result.rules if rule.rule in RULES and rule.collect)
    typed = advisor_run(profiles / "ascend" / "alexnet-ddp-text-level1", select=("NS003",))
    found = [next(f for f in of.findings if f.rule == "NS003").observation for of in (result, typed)]
    assert found[0]["kernels"] == found[1]["kernels"] == 57
    assert found[0]["total_ns"] == pytest.approx(found[1]["total_ns"], rel=0.05)


# --- the real profile, against plain reading of its table


def kernels_of(folder: Path) -> list[dict[str, str]]:
    with next(folder.rglob("kernel_details.csv")).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def ns(row: Mapping[str, str]) -> int:
    return int(Decimal(row["Duration(us)"].strip()) * 1000)


SIZES = {"FLOAT": 4, "FLOAT16": 2, "DT_BF16": 2, "INT64": 8, "INT32": 4, "UINT16": 2, "UINT8": 1, "BOOL": 1}


def moved(row: Mapping[str, str], *sides: str) -> int:
    total = 0
    for side in sides:
        shapes = row[f"{side} Shapes"].replace('"', "").split(";")
        for shape, dtype in zip(shapes, row[f"{side} Data Types"].split(";"), strict=True):
            total += prod(int(axis) for axis in shape.split(",") if axis) * SIZES[dtype]
    return total


def step_ns(rows: list[dict[str, str]]) -> int:
    starts = [int(Decimal(row["Start Time(us)"].strip()) * 1000) for row in rows]
    return max(start + ns(row) for start, row in zip(starts, rows, strict=True)) - min(starts)


@pytest.mark.parametrize("rank", [0, 1])
def test_alexnet_agrees_with_its_table(profiles: Path, rank: int) -> None:
    name = "alexnet-ddp-text-level1"
    rows = kernels_of(profiles / "ascend" / name / f"rank{rank}_ascend_pt")
    store = real_rank(profiles, name, rank)
    wall, mine = step_ns(rows), [row for row in rows if row["Accelerator Core"] != "HCCL"]
    computing = sum(map(ns, mine))

    conversions = [row for row in mine if row["Type"] == "TransData"]
    found = judge_rule("NS003", store)
    seen = found.first.observation
    assert (seen["kernels"], seen["total_ns"]) == (len(conversions), sum(map(ns, conversions)))
    assert seen["inside_ns"] == sum(ns(row) for row in conversions if row["Name"].startswith("aclnn"))
    by_shape: dict[tuple[str, ...], int] = defaultdict(int)
    for row in conversions:
        sides = [row[f"{side} Shapes"].replace('"', "").split(";")[0] for side in ("Input", "Output")]
        by_shape[tuple(sides)] += ns(row)
    largest = max(by_shape, key=lambda shapes: by_shape[shapes])
    assert seen["largest_ns"] == by_shape[largest]
    assert (seen["largest_input"].split()[0], seen["largest_output"].split()[0]) == largest
    assert found.first.impact_ns == seen["total_ns"] and found.first.severity == "low"
    assert seen["share_of_step"] == pytest.approx(seen["total_ns"] / wall)
    assert seen["share_of_computing"] == pytest.approx(seen["total_ns"] / computing)
    if rank == 0:
        assert seen["kernels"] == 57 and seen["total_ns"] == pytest.approx(1.42e6, abs=0.01e6)

    update = [row for row in mine if row["Type"].startswith("Foreach")]
    assert [row["Type"] for row in update] == ["ForeachAddList", "ForeachMulScalar", "ForeachAddList", "ForeachAddList"]
    seen = judge_rule("NS016", store).first.observation
    assert (seen["chains"], seen["kernels"], seen["chain_ns"]) == (1, 4, sum(map(ns, update)))
    # Large kernels that only read and write; shapes of MemSet are not recorded.
    streams = [
        row
        for row in mine
        if row["Type"] in ("Mul", "Add", "Relu", "ReluGrad", "TensorMove", "Cast") and ns(row) > 20_000
    ]
    bandwidth = sum(moved(row, "Input", "Output") for row in streams) / sum(map(ns, streams))
    # Weights, gradients and momentum are read, weights and momentum written: five times all parameters in FP32.
    parameters = moved(update[1], "Output")
    assert parameters == 61_100_840 * 4
    assert seen["bandwidth"] == pytest.approx(bandwidth * 1e9)
    tiny = [
        ns(row)
        for row in mine
        if row["Accelerator Core"] in ("AI_VECTOR_CORE", "MIX_AIV")
        and row["Type"] != "MemSet"
        and moved(row, "Input", "Output") <= 64 * 1024
    ]
    assert seen["fused_ns"] == pytest.approx(5 * parameters / bandwidth + median(tiny))
    assert seen["kernel_saving_ns"] == pytest.approx(seen["chain_ns"] - seen["fused_ns"])
    # The host is far ahead there: the launches that go away save nothing, and the time between tasks stays.
    assert seen["saving_ns"] == pytest.approx(seen["kernel_saving_ns"], abs=1) and seen["launch_saving_ns"] < 1

    cube = [row for row in mine if re.match("Conv2D|MatMul", row["Type"])]
    judged = judge_rule("NS022", store)
    assert judged.state == "pass" and judged.observed is not None
    seen = judged.observed.frame.iloc[0]
    # The gradient of a convolution reads a shape in INT32 beside its tensors; nothing reads 16 bits.
    assert {dtype for row in cube for dtype in row["Input Data Types"].split(";")} == {"FLOAT", "INT32"}
    total = sum(map(ns, cube))
    assert (seen["dense_ns"], seen["fp32_ns"], seen["fp32_share"]) == (total, total, 1)
    assert seen["shortened_share"] == pytest.approx(
        sum(ns(row) for row in cube if row["HF32 Eligible"] == "YES") / total
    )
    # Convolutions take half; the products of the linear layers load weights, which takes half as long at least.
    assert 0.25 * total < seen["dense_saving_ns"] < 0.75 * total
    assert 0 < seen["other_saving_ns"] < (computing - total) / 2
    # The host is late until the gradients are reduced, and what follows waits for another rank: 7 us are left.
    assert 0 < seen["saving_ns"] < 20_000


def test_alexnet_has_nothing_else(profiles: Path, advisor_run: Run) -> None:
    result = advisor_run(profiles / "ascend" / "alexnet-ddp-text-level1", select=("NS",))
    assert {(found.rule, found.severity) for found in result.findings} == {
        ("NS003", "low"),
        ("NS016", "low"),
    }
    states = {rule.rule: rule.state for rule in result.rules}
    assert states["NS001"] == "not_applicable", "it spends more on convolutions than on matrix products"


# --- the sample


@pytest.fixture(scope="module")
def judged(advisor_sample: Path, advisor_run: Run) -> RunResult:
    result: RunResult = advisor_run(advisor_sample, select=("NS",))
    return result


PROBLEMS = {
    "unfused-rms-norm": ("NS010", "chain", "Cast + Pows + ReduceMean + Add + Rsqrt + Mul + Cast + Mul"),
    "unfused-swiglu": ("NS011", "chain", "Slice + Swish + Slice + Mul"),
    "unfused-rotary": ("NS012", "chain", "Transpose + Mul + Slice + Neg + Slice + ConcatD + Mul + Add"),
    "unfused-cross-entropy": ("NS014", "shape", "8192,50257"),
    "unfused-optimizer": ("NS015", "chain", "Lerp + Mul + Addcmul + Sqrt + RealDiv + Add + Addcdiv + Cast"),
    "slices-of-one-tensor": ("NS002", "parts", "8192,5632; 8192,5632"),
    "format-conversions": ("NS003", "largest_input", "8192,50257 BF16 ND"),
}


def finding(result: RunResult, rule: str) -> Finding:
    return next(found for found in result.findings if found.rule == rule)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_sample_problem_is_found_and_names_its_operators(problem: str, judged: RunResult) -> None:
    rule, column, value = PROBLEMS[problem]
    found = finding(judged, rule)
    assert found.observation[column] == value and found.ranks == [0, 1]
    named = {row["type"] for evidence in found.evidence if evidence.kind == "rows" for row in evidence.rows}
    operators = {"NS002": {"Slice", "MatMulV3"}, "NS003": {"TransData"}, "NS014": {"ReduceMax", "Exp", "Cast"}}
    assert named >= operators.get(rule, set(value.split(" + ")))
    # The conversion is made in the backward pass, of which no Python stack is recorded.
    assert any(evidence.kind == "stack" for evidence in found.evidence) == (rule != "NS003")


def test_sample_has_no_other_problem(judged: RunResult) -> None:
    assert not [rule for rule in judged.rules if rule.state == "error"]
    # The norms of gradients that it clips run one by one, but the host reads each of them.
    assert {found.rule for found in judged.findings} == {rule for rule, _, _ in PROBLEMS.values()} | {"NS001"}


def test_sample_counts_agree_with_its_table(advisor_sample: Path, judged: RunResult) -> None:
    """Three layers, two norms each and a last one, rotary for query and key; two steps. The transposition behind the
    backward pass of a rotary embedding serves the projection."""
    folder = sorted(advisor_sample.glob("*_ascend_pt"))[0]
    rows = [row for row in kernels_of(folder) if row["Accelerator Core"] != "HCCL"]
    types = [row["Type"] for row in rows]

    def times(first: str, before: int, count: int) -> int:
        return sum(sum(map(ns, rows[at - before :][:count])) for at, type_ in enumerate(types) if type_ == first) // 2

    # The loss is the stretch of 13 kernels around its maximum, and nothing else has one.
    entropy = finding(judged, "NS014")
    assert entropy.rank in (0, 1)
    store = sorted(advisor_sample.glob("*_ascend_pt"))[entropy.rank]
    rows = [row for row in kernels_of(store) if row["Accelerator Core"] != "HCCL"]
    types = [row["Type"] for row in rows]
    assert entropy.observation["chain_ns"] == times("ReduceMax", 1, 13)
    norms, swiglu, rotary = (finding(judged, rule).observation for rule in ("NS010", "NS011", "NS012"))
    assert norms["chains"] == 2 * 3 + 1 and norms["kernels"] == 7 * (8 + 14)
    assert swiglu["chains"] == 3 and swiglu["kernels"] == 3 * (4 + 8)
    assert rotary["chains"] == 2 * 3 and rotary["kernels"] == 6 * (8 + 10)
    # One chain of eight kernels for every parameter.
    counted = Counter(types)
    adam = finding(judged, "NS015").observation
    assert adam["chains"] == counted["Addcdiv"] / 2 and adam["kernels"] == 8 * adam["chains"]


def test_what_fusing_saves_in_the_sample_is_what_the_tuned_sample_needs_less(
    judged: RunResult, shared_sample: Callable[..., Path]
) -> None:
    """The same model with fused kernels: they take what was foretold, within a quarter."""
    took: dict[str, float] = defaultdict(float)
    for row in kernels_of(shared_sample("healthy-training-single")):
        took[row["Type"]] += ns(row) / 2
    fused = {
        "NS010": ["RmsNorm", "RmsNormGrad"],
        "NS011": ["SwiGlu", "SwiGluGrad"],
        "NS012": ["RotaryPositionEmbedding", "RotaryPositionEmbeddingGrad"],
        "NS014": ["CrossEntropyLoss", "CrossEntropyLossGrad"],
    }
    for rule, kernels in fused.items():
        seen = finding(judged, rule).observation
        foretold = seen["fused_ns"] - seen["kept_ns"]  # a copy that stays is a kernel of its own
        # It runs four micro-batches per step where the other runs one.
        assert foretold == pytest.approx(sum(took[name] for name in kernels) / 4, rel=0.25), rule
    assert finding(judged, "NS015").observation["fused_ns"] == pytest.approx(took["ApplyAdamWV2"], rel=0.25)


def test_causes_leave_nothing_of_the_symptom(judged: RunResult) -> None:
    """What NS001 measures is less than what its causes save, so it promises nothing of its own."""
    symptom = finding(judged, "NS001")
    gross = symptom.impact.gross_ns_per_step
    observed = symptom.observation
    assert gross == pytest.approx(float(observed["kernel_ns"]) - float(observed["hot_ns"]) / 0.7, abs=1)  # type: ignore[arg-type]
    explaining = [one for one in judged.findings if one.fingerprint in symptom.explained_by]
    taken = sum(one.impact.ns_per_step for one in explaining if one.rank == symptom.rank)
    assert taken > gross and symptom.impact.ns_per_step == 0 and not symptom.impact.claims
    assert symptom.severity == "low"
    # Slices of the SwiGLU are saved there and not again.
    assert finding(judged, "NS002").impact.ns_per_step == 0


@pytest.mark.parametrize("scenario", ["healthy-training", "healthy-training-single"])
def test_healthy_samples_have_nothing_that_matters(
    scenario: str, shared_sample: Callable[..., Path], advisor_run: Run
) -> None:
    result = advisor_run(shared_sample(scenario), select=("NS",))
    assert not [rule for rule in result.rules if rule.state == "error"]
    assert [found for found in result.findings if found.severity != "low"] == []
