"""NS023: copies that only lay a tensor out for a batched product, or lay out its result anew."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, Groups, NotApplicable, Shortening, aggregated, launches, matching
from advisors.columns import TOTAL_NS, TYPE, shares
from advisors.fusion.chains import fusion_chains
from advisors.fusion.reads import kernel_reads
from advisors.messages import message
from advisors.network_structure.conversions import described
from advisors.step_kernels import call_stack, kernel_rows, records, step_kernels

_PRODUCT = re.compile(r"^BatchMatMul(V\d)?$", re.I)
_COPY = re.compile(r"^(AsStrided|Transpose|ViewCopy|BroadcastTo|TransData|TensorMove)(D|V\d|AiCore)?$", re.I)

_IN_A_ROW = 4
"""Copies in a row: one of the copy before, or of several operands of one size, of which each seems to read the last."""


@advisor(
    "network_structure.batched_copies",
    needs=(step_kernels, kernel_reads, fusion_chains),
    wants=(launches, HOST_EVENTS),
    about=(Column("product", "text", "", "operator type of the batched product or the fused attention", zh="矩阵乘"),),
    columns=(
        Column("attention", "bool", "", "it is fused attention", zh="是否 attention"),
        Column("copies", "float", "count", "copies beside such products, per step", zh="拷贝数"),
        Column("kinds", "text", "", "their operator types, most time first", zh="拷贝类型"),
        Column("operand_ns", "float", "ns", "time per step of copies that only such products read", zh="操作数拷贝"),
        Column("result_ns", "float", "ns", "time per step of copies that alone read a result", zh="结果拷贝"),
        TOTAL_NS,
        Column("in_chain_ns", "float", "ns", "part of total_ns in chains that a fused kernel replaces", zh="链内耗时"),
        Column("loose_ns", "float", "ns", "the rest of total_ns", zh="松散"),
        Column("cut_ns", "float", "ns", "part of loose_ns in AsStrided: cuts of a larger tensor", zh="切片拷贝"),
        Column("expanded_ns", "float", "ns", "part of loose_ns in BroadcastTo", zh="广播拷贝"),
        Column("largest_type", "text", "", "the copy that takes most", zh="最大的类型"),
        Column("largest_input", "text", "", "what it reads: shape, dtype and format", zh="最大输入"),
        Column("largest_output", "text", "", "what it writes", zh="最大输出"),
        Column("product_ns", "float", "ns", "time of all such products per step", zh="矩阵乘"),
        *shares("loose_ns"),
    ),
    evidence=(
        TYPE,
        Column("reads", "text", "", "the tensor that it reads", zh="读取"),
        Column("writes", "text", "", "the tensor that it writes", zh="写入"),
        Column("kernels", "int", "count", "such copies, all steps", zh="kernel 数"),
    ),
)
def batched_copies(facts: Facts, params: Params) -> Observations:
    """Copies whose result only batched products or fused attention read, and copies that alone read their result.

    Who wrote a tensor is the nearest kernel before that wrote one of its size and type: see `advisors.fusion.reads`."""
    kernels = facts[step_kernels]
    frame = kernels.frame
    is_attention = (frame["operator_class"] == "attention").to_numpy()
    is_product = matching(frame["type"], _PRODUCT) | is_attention
    if not is_product.any():
        raise NotApplicable(message("network_structure.no_batched_product"))
    kernels.require_tensors()
    reads = facts[kernel_reads]
    is_copy = matching(frame["type"], _COPY)
    product_of = np.full(len(frame), -1, dtype=np.int64)
    is_operand = np.zeros(len(frame), dtype=np.bool_)
    # A copy between both counts for the matrix product, whose fused form lays out its operand and its result itself.
    for products in (is_attention, is_product & ~is_attention):
        result_writers, operand_readers = products.copy(), products.copy()
        for _ in range(_IN_A_ROW):
            of_result = np.logical_and(result_writers, reads.only(is_copy))[reads.writer] & reads.first
            copies_at, source = reads.reader[of_result], reads.writer[of_result]
            product_of[copies_at], is_operand[copies_at] = np.where(products[source], source, product_of[source]), False
            result_writers[copies_at] = True
            of_operand = np.logical_and(is_copy, reads.only(operand_readers))[reads.writer]
            copies_at, reader = reads.writer[of_operand], reads.reader[of_operand]
            product_of[copies_at], is_operand[copies_at] = np.where(products[reader], reader, product_of[reader]), True
            operand_readers[copies_at] = True
    rows = np.flatnonzero(product_of >= 0)
    types = frame["type"].astype(str).to_numpy()
    is_loose = ~np.isin(rows, facts[fusion_chains].members)
    duration = frame["duration_ns"].to_numpy()[rows]
    copies = frame.iloc[rows]
    copies = copies.assign(
        product=types[product_of[rows]],
        type=types[rows],
        operand_ns=np.where(is_operand[rows], duration, 0),
        in_chain_ns=np.where(is_loose, 0, duration),
        cut_ns=np.where(is_loose & (np.char.find(types[rows].astype(str), "AsStrided") == 0), duration, 0),
        expanded_ns=np.where(is_loose & (np.char.find(types[rows].astype(str), "Broadcast") == 0), duration, 0),
        reads=described(copies, "input"),
        writes=described(copies, "output"),
    )
    sums = aggregated(
        copies,
        "product",
        copies=("duration_ns", "size"),
        operand_ns=("operand_ns", "sum"),
        total_ns=("duration_ns", "sum"),
        in_chain_ns=("in_chain_ns", "sum"),
        cut_ns=("cut_ns", "sum"),
        expanded_ns=("expanded_ns", "sum"),
    )
    by_type = aggregated(copies, ["product", "type"], ns=("duration_ns", "sum"))
    by_type = by_type.sort_values("ns", ascending=False, kind="stable")
    kinds = aggregated(by_type, "product", kinds=("type", ", ".join))["kinds"]
    by_shape = aggregated(
        copies,
        ["product", "type", "reads", "writes"],
        sort=False,
        kernels=("duration_ns", "size"),
        total_ns=("duration_ns", "sum"),
    ).sort_values("total_ns", ascending=False, kind="stable", ignore_index=True)
    largest = by_shape.take(Groups(by_shape, "product").firsts)
    of_products = pd.DataFrame({"product": types[is_product], "ns": frame["duration_ns"].to_numpy()[is_product]})
    result = aggregated(of_products, "product", product_ns=("ns", "sum"))
    result["attention"] = result["product"].isin(np.unique(types[is_attention]))
    # A product without a copy is in order, which is an answer: -1, the last.
    place = pd.Index(sums["product"]).get_indexer(result["product"])
    for name in sums.columns[1:]:
        result[name] = np.append(sums[name].to_numpy(), 0)[place]
    for name in ("product_ns", *sums.columns[1:]):
        result[name] = result[name] / kernels.steps
    result["result_ns"] = result["total_ns"] - result["operand_ns"]
    result["loose_ns"] = result["total_ns"] - result["in_chain_ns"]
    texts = {"kinds": kinds, "largest_type": largest["type"], "largest_input": largest["reads"]}
    for name, known in (texts | {"largest_output": largest["writes"]}).items():
        result[name] = np.array([*known, None], dtype=object)[place]
    result = result.assign(**kernels.shares(result["loose_ns"]))

    def evidence(row: int) -> list[Reference]:
        product = result["product"][row]
        of_product = (copies["product"] == product).to_numpy()
        product_rows = np.unique(product_of[rows[of_product]])
        columns = ["type", "reads", "writes", "kernels", "total_ns"]
        return [
            Metric(
                message("network_structure.batched_copies"),
                records(by_shape[by_shape["product"] == product].head(10)[columns]),
            ),
            kernel_rows(message("network_structure.batched_copy_rows"), copies[of_product]),
            kernel_rows(message("network_structure.batched_product_rows"), frame.iloc[product_rows]),
            *call_stack(facts, copies[of_product]),
        ]

    def cure(row: int) -> Shortening:
        return kernels.shorter(copies[is_loose & (copies["product"] == result["product"][row]).to_numpy()])

    return Observations(result, evidence, cure=cure)
