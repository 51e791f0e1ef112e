"""How many rows an unrecorded index takes, as the kernels around tell it."""

from __future__ import annotations

import pandas as pd

from advisor_core.loaders.kineto.taken import with_rows_taken

Kernel = tuple[str, str, str, str, str]

SORT: Kernel = ("aten::sort", "8", "INT64", "8;8", "INT64;INT64")
TAKES: Kernel = ("aten::index", "4,16;", "BF16;UNDEFINED", "", "")
PRODUCT: Kernel = ("aten::_grouped_mm", "8,16;2,16,32", "BF16;BF16", "8,32", "BF16")


def told(*kernels: Kernel, streams: tuple[int, ...] = ()) -> list[tuple[str, str]]:
    """Inputs and results of what takes rows."""
    columns = ["type", "input_shapes", "input_dtypes", "output_shapes", "output_dtypes"]
    frame = pd.DataFrame(kernels, columns=columns)
    frame["stream"] = streams or [7] * len(frame)
    frame["start_ns"] = range(len(frame))
    found = with_rows_taken(frame)
    taking = found[found["type"] == "aten::index"]
    return list(zip(taking["input_shapes"], taking["output_shapes"], strict=True))


def test_an_order_before_and_a_reader_behind_tell_the_rows() -> None:
    assert told(SORT, TAKES, PRODUCT) == [("4,16;8", "8,16")]


def test_either_of_them_alone_tells_nothing() -> None:
    assert told(TAKES, PRODUCT) == [("4,16;", "")]
    assert told(SORT, TAKES) == [("4,16;", "")]
    assert told(SORT, TAKES, PRODUCT, streams=(8, 7, 7)) == [("4,16;", "")], "another stream"


def test_what_a_kernel_in_between_wrote_is_not_what_was_taken() -> None:
    wrote: Kernel = ("aten::mul", "8,16;8,16", "BF16;BF16", "8,16", "BF16")
    assert told(SORT, TAKES, wrote, PRODUCT) == [("4,16;8", "8,16")], "it reads such a tensor itself"
    made: Kernel = ("aten::fill_", "", "", "8,16", "BF16")
    assert told(SORT, TAKES, made, PRODUCT) == [("4,16;", "")]
    both: Kernel = ("aten::add", "8,16;8,16", "BF16;BF16", "8,16", "BF16")
    assert told(SORT, TAKES, made, both) == [("4,16;8", "8,16")], "of two such tensors one was made in between"


def test_two_numbers_of_rows_tell_nothing() -> None:
    other: Kernel = ("aten::topk", "6,4", "FLOAT", "6,2;6,2", "FLOAT;INT64")
    reader: Kernel = ("aten::cat", "8,16;12,16", "BF16;BF16", "20,16", "BF16")
    assert told(SORT, other, TAKES, PRODUCT) == [("4,16;8", "8,16")]
    assert told(SORT, other, TAKES, reader) == [("4,16;", "")]


def test_an_index_that_numbers_decide_is_as_long_as_nobody_knows() -> None:
    found: Kernel = ("aten::nonzero", "8", "BOOL", "", "")
    assert told(SORT, found, TAKES, PRODUCT) == [("4,16;", "")]


def test_one_that_was_told_is_known_to_the_next() -> None:
    again: Kernel = ("aten::index", "8,16;", "BF16;UNDEFINED", "", "")
    summed: Kernel = ("aten::sum", "4,2,16", "BF16", "4,16", "BF16")
    assert told(SORT, TAKES, PRODUCT, SORT, again, summed) == [("4,16;8", "8,16"), ("8,16;8", "8,16")]
