"""What a program computes, as its operators tell it: a few operators that are small enough to be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from tests.programs.streams import Stream, read
from tests.programs.truth import occurrences

Op = dict[str, Any]


class Program:
    """Operators with the storages that they read and write, by name; what none of them writes is a weight."""

    def __init__(self) -> None:
        self.records: list[Op] = []
        self.writers: dict[str, int] = {}
        self.storages: dict[str, int] = {}
        self.shapes: dict[str, list[int]] = {}
        self.dtypes: dict[str, str] = {}
        self.node = 0

    def run(self, name: str, reads: str, out: str, shape: list[int], **given: Any) -> None:
        number = len(self.records)
        phase, sequence, dtype = given.pop("ph", "fwd"), given.pop("seq", None), given.pop("dtype", "bf16")
        if phase == "fwd":
            self.node += 1
        inputs = [
            [self._storage(one), self.shapes.get(one, shape), self.dtypes.get(one, "bf16"), self.writers.get(one, -1)]
            for one in reads.split()
        ]
        record = {"i": number, "op": f"aten::{name}", "ph": phase, "in": inputs, **given}
        record["seq"] = self.node if sequence is None else sequence
        record["out"] = [[self._storage(out), shape, dtype]]
        self.records.append(record)
        self.writers[out], self.shapes[out], self.dtypes[out] = number, shape, dtype

    def _storage(self, name: str) -> int:
        return self.storages.setdefault(name, len(self.storages))

    def stream(self, folder: Path) -> Stream:
        path = folder / "program.jsonl.gz"
        with gzip.open(path, "wt") as lines:
            lines.writelines(json.dumps(line) + "\n" for line in [{"meta": {}}, *self.records])
        return read(path)


def found_in(stream: Stream) -> list[tuple[str, bool, list[int], int]]:
    return [(one.name, one.backward, sorted(one.operators), one.bytes) for one in occurrences(stream)]


def test_a_gate_has_two_products_and_what_autograd_runs_for_it(tmp_path: Path) -> None:
    program, size = Program(), [8, 4]
    program.run("mm", "x w1", "gate", size)
    program.run("silu", "gate", "act", size)
    program.run("mm", "x w2", "up", size)
    program.run("mul", "act up", "out", size)
    program.run("mm", "out w3", "y", size)
    program.run("mul", "dout up", "dact", size, ph="bwd", seq=4)
    program.run("mul", "dout act", "dup", size, ph="bwd", seq=4)
    program.run("silu_backward", "dact gate", "dgate", size, ph="bwd", seq=2)
    # 64 bytes each: gate, up and the result; backward the gradient, gate, up and their gradients.
    assert found_in(program.stream(tmp_path)) == [
        ("swiglu", False, [1, 3], 3 * 64),
        ("swiglu", True, [5, 6, 7], 5 * 64),
    ]


def test_a_gate_may_be_written_out(tmp_path: Path) -> None:
    program, size = Program(), [8, 4]
    program.run("mm", "x w1", "gate", size)
    program.run("sigmoid", "gate", "bend", size)
    program.run("mul", "gate bend", "act", size)
    program.run("mm", "x w2", "up", size)
    program.run("mul", "act up", "out", size)
    assert found_in(program.stream(tmp_path)) == [("swiglu", False, [1, 2, 4], 3 * 64)]


def test_a_norm_may_divide_by_a_root(tmp_path: Path) -> None:
    program, size = Program(), [8, 4]
    program.run("mul", "x x", "square", size)
    program.run("mean", "square", "mean", [8, 1])
    program.run("sqrt", "mean", "root", [8, 1])
    program.run("div", "x root", "normed", size)
    program.run("mul", "normed w", "out", size)
    assert [one[:3] for one in found_in(program.stream(tmp_path))] == [("rms_norm", False, [0, 1, 2, 3, 4])]


def test_a_gate_of_its_own_result_is_none(tmp_path: Path) -> None:
    """As in a squeeze-and-excitation block: what is multiplied comes from a convolution."""
    program, size = Program(), [8, 4]
    program.run("convolution", "x w1", "h", size)
    program.run("silu", "h", "act", size)
    program.run("sigmoid", "act", "gate", size)
    program.run("mul", "act gate", "out", size)
    assert found_in(program.stream(tmp_path)) == []


def test_a_negation_needs_its_rotation(tmp_path: Path) -> None:
    program, size = Program(), [8, 4]
    program.run("mul", "x cos", "left", size)
    program.run("neg", "x", "turned", size)
    program.run("cat", "turned x", "both", size)
    program.run("mul", "both sin", "right", size)
    program.run("add", "left right", "out", size)
    program.run("neg", "loss", "negative", size)
    program.run("cat", "negative loss", "losses", size)
    assert found_in(program.stream(tmp_path)) == [("rotary", False, [0, 1, 2, 3, 4], 4 * 64)]


def test_experts_are_told_by_the_rows_that_a_router_chose(tmp_path: Path) -> None:
    program, tokens, scores = Program(), [32, 16], [32, 4]
    program.run("add", "a b", "h", tokens)
    program.run("mm", "h wr", "logits", scores)
    program.run("_softmax", "logits", "p", scores)
    program.run("topk", "p", "weights", [32, 2])
    program.run("sum", "p", "balance", [4])  # for a loss, not for the choice
    for expert, rows in enumerate((20, 30, 14)):
        program.run("index", "h weights", f"rows{expert}", [rows, 16])
        program.run("mm", f"rows{expert} w1", f"mid{expert}", [rows, 16])
        program.run("silu", f"mid{expert}", f"act{expert}", [rows, 16])
        program.run("mm", f"act{expert} w2", f"res{expert}", [rows, 16])
        program.run("index_add", f"sum res{expert}", "sum", tokens)
    found = [(name, own) for name, _, own, _ in found_in(program.stream(tmp_path))]
    assert found == [("moe_routing", [2, 3]), ("moe_expert_loop", list(range(5, 20)))]


def test_rows_in_the_order_of_experts_are_told_with_what_orders_them(tmp_path: Path) -> None:
    program = Program()
    program.run("add", "a b", "h", [32, 16])
    program.run("mm", "h wr", "logits", [32, 4])
    program.run("_softmax", "logits", "p", [32, 4])
    program.run("topk", "p", "chosen", [32, 2])
    program.run("clone", "chosen", "kept", [32, 2])  # for the backward pass of what is in place
    program.run("div_", "chosen sums", "chosen", [32, 2])
    program.run("sort", "chosen", "order", [64])
    program.run("floor_divide", "order", "tokens", [64])
    program.run("index", "h tokens", "rows", [64, 16])
    program.run("_grouped_mm", "rows w1", "mid", [64, 16])
    program.run("_grouped_mm", "mid w2", "res", [64, 16])
    program.run("sum", "res", "y", [32, 16])
    found = [(name, own) for name, _, own, _ in found_in(program.stream(tmp_path))]
    assert found == [("moe_routing", [2, 3, 4, 5]), ("moe_token_permute", [6, 7, 8]), ("moe_token_unpermute", [11])]


def test_quantised_rows_have_a_scale_that_was_computed(tmp_path: Path) -> None:
    program, size, row = Program(), [8, 4], [8, 1]
    program.run("add", "a b", "x", size)
    program.run("abs", "x", "size", size)
    program.run("amax", "size", "largest", row)
    program.run("div", "largest", "scale", row)
    for scale in ("scale", "given"):
        program.run("div", f"x {scale}", "part", size)
        program.run("round", "part", "rounded", size)
        program.run("_to_copy", "rounded", "quantised", size, dtype="i8")
    # 64 bytes in, 32 out; the scale is read by nothing else.
    assert found_in(program.stream(tmp_path)) == [("dynamic_quant", False, list(range(1, 7)), 64 + 32)]


def test_a_restored_weight_is_no_input(tmp_path: Path) -> None:
    program, size = Program(), [4, 4]
    program.dtypes |= {"w": "i8", "zero": "i8"}
    program.shapes |= {"w": size, "zero": [4, 1]}
    program.run("_to_copy", "w", "wide", size)
    program.run("mul", "wide scale", "restored", size)
    program.run("mm", "x restored", "y", size)
    program.run("_to_copy", "y", "z", size, dtype="i8")
    program.run("_to_copy", "z", "back", size)
    program.run("mm", "back v", "out", size)
    program.run("mul", "out scale", "scaled", size)
    program.run("_to_copy", "zero", "offset", [4, 1])
    program.run("sub", "v offset", "moved", size)
    program.run("mm", "scaled moved", "last", size)
    program.run("mul", "last scale", "end", size)
    assert found_in(program.stream(tmp_path)) == [("weight_dequant", False, [0, 1, 2], 0)]


def test_a_limited_gate_is_no_quick_gelu(tmp_path: Path) -> None:
    program, size = Program(), [8, 4]
    program.run("mm", "x w1", "both", size)
    program.run("clamp", "both", "gate", size)
    program.run("clamp", "other", "up", size)
    program.run("mul", "gate", "scaled", size)
    program.run("sigmoid", "scaled", "bend", size)
    program.run("mul", "gate bend", "act", size)
    program.run("add", "up", "raised", size)
    program.run("mul", "raised act", "out", size)
    assert [one[:3] for one in found_in(program.stream(tmp_path))] == [("limited_swiglu", False, list(range(1, 8)))]


def test_rows_over_their_length_may_be_scaled(tmp_path: Path) -> None:
    program, size = Program(), [8, 4]
    program.run("add", "a b", "x", size)
    program.run("linalg_vector_norm", "x", "length", [8, 1])
    program.run("clamp_min", "length", "limited", [8, 1])
    program.run("div", "x limited", "unit", size)
    program.run("mul", "unit w", "out", size)
    program.run("linalg_vector_norm", "out", "norm", [])  # of the whole
    assert [one[:3] for one in found_in(program.stream(tmp_path))] == [("l2_norm", False, [1, 2, 3, 4])]


def test_a_complex_product_turns_pairs_of_real_numbers(tmp_path: Path) -> None:
    program = Program()
    program.dtypes |= {"turns": "c64", "spectrum": "c64"}
    program.shapes |= {"turns": [1, 2], "pairs": [8, 2], "spectrum": [8, 2]}
    program.run("_to_copy", "x", "pairs", [8, 4], dtype="f32")
    program.shapes["pairs"], program.dtypes["pairs"] = [8, 2], "c64"  # a view
    program.run("mul", "pairs turns", "turned", [8, 2], dtype="c64")
    program.run("mul", "spectrum turns", "filtered", [8, 2], dtype="c64")
    assert [one[:3] for one in found_in(program.stream(tmp_path))] == [("rotary", False, [0, 1])]


def test_the_mean_makes_a_loss_of_log_probabilities(tmp_path: Path) -> None:
    for averaged in (False, True):
        program, size = Program(), [8, 4000]
        program.run("mm", "h w", "logits", size)
        program.run("gather", "logits target", "chosen", [8])
        program.run("logsumexp", "logits", "log", [8])
        program.run("sub", "log chosen", "each", [8])
        if averaged:
            program.run("mean", "each", "loss", [])
        found = [one[:3] for one in found_in(program.stream(tmp_path))]
        name = "cross_entropy" if averaged else "log_probs"
        assert found == [(name, False, [1, 2, 3, 4][: 3 + averaged])]


def test_an_update_by_a_sign_has_its_momentum(tmp_path: Path) -> None:
    program, size = Program(), [64, 64]
    program.run("mm", "x w", "y", size)
    for name, reads, out in (
        ("mul_", "w", "w"),
        ("mul", "m", "mean"),
        ("add", "mean grad", "update"),
        ("sign_", "update", "update"),
        ("add_", "w update", "w"),
        ("mul_", "m", "m"),
        ("add_", "m grad", "m"),
    ):
        program.run(name, reads, out, size, ph="opt", seq=-1)
    assert [one[:3] for one in found_in(program.stream(tmp_path))] == [("lion", False, list(range(1, 8)))]
