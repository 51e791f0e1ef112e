"""The tensors that a kernel reads and writes, from the recorded inputs of the operator that launched it.

Kineto records shapes, types, strides and values of the inputs of an operator, and nothing of its results. What an
operator of PyTorch makes of its inputs is fixed: which one does what is in ``results`` of ``exporter.yaml``. What that
does not tell stays ''.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from advisor_core.loaders.kineto import words
from advisor_core.loaders.kineto.products import operands

Shape = tuple[int, ...]

_INTEGERS: Final = ("BOOL", "UINT8", "INT8", "INT16", "INT32", "INT64")
_FLOATS: Final = ("FLOAT16", "BF16", "FLOAT", "DOUBLE")
_CODES: Final = {0: "UINT8", 1: "INT8", 2: "INT16", 3: "INT32", 4: "INT64", 5: "FLOAT16", 6: "FLOAT", 7: "DOUBLE",
    11: "BOOL", 15: "BF16"}  # fmt: skip
"""Types as values of arguments (c10/core/ScalarType.h of PyTorch)."""


ROUNDS: Final = 4
"""So many lists are joined one into another, at most, of which only the innermost has parts of a known type: a rotary
embedding, a cache, the keys of a part of the heads."""


class Tensors(NamedTuple):
    """As in the table of kernels."""

    input_shapes: str = ""
    input_dtypes: str = ""
    output_shapes: str = ""
    output_dtypes: str = ""


@dataclass(frozen=True)
class Inputs:
    """The inputs of a call. ``shapes``: None for what is no tensor; ``read``: with one element in place of an axis
    along which the tensor is only repeated; ``values``: texts, '' for what is none or was not recorded; ``lists``: the
    tensors of each input that is a list of some."""

    shapes: list[Shape | None]
    read: list[Shape | None]
    dtypes: list[str]
    values: list[str]
    lists: list[list[Shape]]

    def tensors(self) -> list[int]:
        """The places of the inputs that are tensors."""
        return [place for place, shape in enumerate(self.shapes) if shape is not None]

    def value(self, place: int) -> str:
        """The value of an argument, '' unknown or not given."""
        return self.values[place] if 0 <= place < len(self.values) else ""


def tensors(operator: str, shapes: str, dtypes: str, strides: str = "", values: str = "") -> Tensors:
    """The tensors that a kernel of the operator reads and writes; the inputs alone where the results are not known. The
    texts are those of the trace (JSON).

    >>> tensors("aten::mul", "[[8, 4], [4]]", '["float", "float"]')
    Tensors(input_shapes='8,4;4', input_dtypes='FLOAT;FLOAT', output_shapes='8,4', output_dtypes='FLOAT')
    >>> tensors("aten::copy_", "[[8, 4], [8, 4], []]", '["c10::BFloat16", "float", "Scalar"]')
    Tensors(input_shapes='8,4', input_dtypes='FLOAT', output_shapes='8,4', output_dtypes='BF16')
    """
    if operator in words.PRODUCTS:
        read, read_types, result = operands(operator, words.shapes(shapes), words.dtypes(dtypes))
        return Tensors(read, read_types, result, read_types.split(";")[0] if result else "")
    given = inputs(shapes, dtypes, strides, values)
    listed = Tensors(_joined_texts(given.read), ";".join(given.dtypes))
    name = operator.removeprefix("aten::")
    if name == operator or not given.shapes:
        return listed
    if name in words.RESULTS["joins"]:
        return _joined(given)
    if name in words.RESULTS["ranks"]:
        return _ranked(given, *words.RESULTS["ranks"][name])
    if name in words.RESULTS["convolves_back"]:
        return _gradients(listed, given, words.RESULTS["convolves_back"][name])
    if name in words.RESULTS["orders"] and given.shapes[0]:
        ordered, kind = _text(given.shapes[0]), given.dtypes[0]
        return Tensors(_text(given.read[0]), kind, f"{ordered};{ordered}", f"{kind};INT64")
    if name.startswith(words.RESULTS["on_lists"]):
        return _of_lists(name.removeprefix(words.RESULTS["on_lists"]).rstrip("_"), given.lists)
    written = _result(name, given)
    if written is None or not written[1]:
        return listed
    shape, dtype = written
    if name.rstrip("_") in words.RESULTS["element_by_element"]:
        count = 3 if name.rstrip("_") in words.RESULTS["reads_three"] else 2
        listed = Tensors(_joined_texts(given.read[:count]), ";".join(given.dtypes[:count]))
    elif name in words.RESULTS["copies"]:
        listed = Tensors(_text(given.read[1]), given.dtypes[1])
    elif name in words.RESULTS["creates"]:
        listed = Tensors()
    return listed._replace(output_shapes=_text(shape), output_dtypes=dtype)


def inputs(shapes: str, dtypes: str, strides: str, values: str) -> Inputs:
    """Of the texts of a trace."""
    listed, steps = words.items(shapes), words.items(strides)
    types = [words.dtype(item) if isinstance(item, str) else "UNDEFINED" for item in words.items(dtypes)]
    types += ["UNDEFINED"] * (len(listed) - len(types))
    parsed: list[Shape | None] = [
        _shape(item) if item or types[place] in words.TENSOR_DTYPES else None for place, item in enumerate(listed)
    ]
    read = [
        shape if shape is None or place >= len(steps) else _repeated(shape, steps[place])
        for place, shape in enumerate(parsed)
    ]
    lists = [
        [shape for part in item if (shape := _shape(part)) is not None]
        for item in listed
        if isinstance(item, list) and any(isinstance(part, list) for part in item)
    ]
    texts = [item if isinstance(item, str) else json.dumps(item) for item in words.items(values)]
    return Inputs(parsed, read, types[: len(listed)], texts, lists)


def _shape(item: Any) -> Shape | None:
    is_shape = isinstance(item, list) and all(isinstance(axis, int) for axis in item)
    return tuple(item) if is_shape else None


def _repeated(shape: Shape, steps: Any) -> Shape:
    if not isinstance(steps, list) or len(steps) != len(shape):
        return shape
    return tuple(1 if step == 0 else axis for axis, step in zip(shape, steps, strict=True))


def _joined_texts(shapes: list[Shape | None]) -> str:
    return ";".join(map(_text, shapes))


def _text(shape: Shape | None) -> str:
    return ",".join(map(str, shape or ()))


def _result(name: str, given: Inputs) -> tuple[Shape, str] | None:
    """Shape and type of the result; None where that is not known, '' for a type that is not."""
    words_of = words.RESULTS
    places = given.tensors()
    if not places or places[0] != 0:
        return None
    first, dtype = given.shapes[0] or (), given.dtypes[0]
    if name in words_of["like_first"] or (name.endswith("_") and name.rstrip("_") in _in_place()):
        return first, _summed(name, given, None, dtype)
    if name in words_of["like_first_as"]:
        return first, _as_asked(given, words_of["like_first_as"][name], dtype)
    if name in words_of["like_second"] and places[1:2] == [1]:
        return given.shapes[1] or (), given.dtypes[1]
    if name in words_of["multiplies_groups"] and places[1:2] == [1]:
        return _by_groups(given, first, dtype)
    if name in words_of["convolves"] and places[1:2] == [1]:
        shape = _convolved(given, *words_of["convolves"][name])
        return None if shape is None else (shape, dtype)
    if name in words_of["by_index"] and 2 in places:
        return given.shapes[2] or (), dtype
    if name in words_of["selects_rows"]:
        return _rows(given, dtype)
    if name in words_of["reduces"] and not (len(places) == 2 and places[1] == 1):
        shape = _reduced(given, *words_of["reduces"][name][:2])
        asked = words_of["reduces"][name][2] if len(words_of["reduces"][name]) > 2 else None
        kind = asked if isinstance(asked, str) else _summed(name, given, asked, dtype)
        return None if shape is None else (shape, kind)
    if name in words_of["element_by_element"]:
        return _broadcast(name, given, places)
    return None


def _by_groups(given: Inputs, first: Shape, dtype: str) -> tuple[Shape, str] | None:
    second, groups = given.shapes[1] or (), given.shapes[2] if len(given.shapes) > 2 else None
    if len(first) != 2:
        return None
    if len(second) == 3:
        return (first[0], second[-1]), dtype
    return ((*groups, first[0], second[-1]), dtype) if len(second) == 2 and groups and len(groups) == 1 else None


def _gradients(listed: Tensors, given: Inputs, asked_at: int) -> Tensors:
    """Of a convolution, input and weight: those that are asked for; none where that was not recorded."""
    asked = [part.strip() for part in given.value(asked_at).strip("[]").split(",")]
    likes = [given.shapes[place] if place < len(given.shapes) else None for place in (1, 2)]
    if len(asked) != 3 or not {*asked} <= {"True", "False"} or None in likes:
        return listed
    chosen = [like for like, told in zip(likes, asked, strict=False) if told == "True"]
    return listed._replace(output_shapes=_joined_texts(chosen), output_dtypes=";".join(given.dtypes[:1] * len(chosen)))


def _convolved(given: Inputs, padding_at: int, stride_at: int, dilation_at: int) -> Shape | None:
    """The shape of a convolution; None where a length that it depends on was not recorded.

    Source: the formula of Conv2d in the documentation of PyTorch (torch.nn.Conv2d, Shape).
    """
    image, weight = given.shapes[0] or (), given.shapes[1] or ()
    lengths = image[2:]
    settings = [_lengths(given.value(place), len(lengths)) for place in (padding_at, stride_at, dilation_at)]
    if not lengths or len(weight) != len(image) or any(one is None for one in settings):
        return None
    padding, stride, dilation = (one or () for one in settings)
    places = tuple(
        (length + 2 * pad - apart * (window - 1) - 1) // step + 1
        for length, window, pad, step, apart in zip(lengths, weight[2:], padding, stride, dilation, strict=True)
        if step > 0
    )
    return (image[0], weight[0], *places) if len(places) == len(lengths) and min(places) > 0 else None


def _lengths(text: str, count: int) -> tuple[int, ...] | None:
    """A list of whole numbers, one for each axis; None for anything else."""
    parts = [part.strip() for part in text.strip("[]").split(",")]
    if not all(part.isdigit() for part in parts) or len(parts) not in (1, count):
        return None
    return tuple(int(part) for part in parts) * (count if len(parts) == 1 else 1)


def _in_place() -> frozenset[str]:
    return frozenset([*words.RESULTS["element_by_element"], *words.RESULTS["like_first"], *words.RESULTS["fills"]])


def _as_asked(given: Inputs, place: int | str, dtype: str) -> str:
    value = given.value(int(place))
    if value in ("True", "False"):
        return "FLOAT" if value == "True" else dtype
    return _CODES.get(int(value), "") if value.isdigit() else ""


def _summed(name: str, given: Inputs, place: int | None, dtype: str) -> str:
    asked = given.value(place) if place is not None else ""
    if asked.isdigit():
        return _CODES.get(int(asked), "")
    return "INT64" if name in words.RESULTS["sums"] and dtype in _INTEGERS else dtype


def _reduced(given: Inputs, axes_at: int, keep_at: int) -> Shape | None:
    """The shape without the axes of the argument at a place; () where none is given, None where it is not known."""
    shape = given.shapes[0] or ()
    if len(given.shapes) <= axes_at:
        return ()
    if not given.values:
        return None
    axes = {int(axis) for axis in given.value(axes_at).strip("[]").split(",") if axis.strip().lstrip("-").isdigit()}
    if not axes:
        return () if given.value(axes_at) in ("", "[]") else None
    if any(not -len(shape) <= axis < len(shape) for axis in axes):
        return None
    axes = {axis % len(shape) for axis in axes}
    keeps = given.value(keep_at) == "True"
    return tuple(1 if place in axes else axis for place, axis in enumerate(shape) if keeps or place not in axes)


def _rows(given: Inputs, dtype: str) -> tuple[Shape, str] | None:
    shape, index, axis = given.shapes[0] or (), given.shapes[2] if len(given.shapes) > 2 else None, given.value(1)
    if index is None or not axis.lstrip("-").isdigit() or not -len(shape) <= int(axis) < len(shape):
        return None
    place = int(axis) % len(shape)
    return (*shape[:place], int(np.prod(index, dtype=np.int64)), *shape[place + 1 :]), dtype


def _broadcast(name: str, given: Inputs, places: list[int]) -> tuple[Shape, str] | None:
    try:
        shape = np.broadcast_shapes(*(given.shapes[place] or () for place in places))
    except ValueError:
        return None
    if name in words.RESULTS["tells"]:
        return shape, "BOOL"
    chosen = [place for place in places if place or name not in words.RESULTS["chooses"]]
    # A number, or a tensor of no axes, does not widen the type of a tensor that has some.
    ranked = [place for place in chosen if given.shapes[place]] or chosen
    dtype = _widest({given.dtypes[place] for place in ranked})
    # What is no tensor with axes may be a number that is not whole.
    others = any(kind not in _INTEGERS for place, kind in enumerate(given.dtypes) if place not in ranked)
    return shape, "" if dtype in _INTEGERS and (others or name in words.RESULTS["divides"]) else dtype


def _widest(dtypes: set[str]) -> str:
    """The type of what is computed of tensors of these; '' where that is not known here."""
    if len(dtypes) == 1:
        return next(iter(dtypes))
    floats = [name for name in _FLOATS if name in dtypes]
    if not dtypes <= {*_FLOATS, *_INTEGERS} or not floats:
        return ""
    return "FLOAT" if floats == ["FLOAT16", "BF16"] else floats[-1]


def _ranked(given: Inputs, count_at: int, axis_at: int) -> Tensors:
    """The largest along an axis, and their places."""
    shape, dtype, count, axis = given.shapes[0] or (), given.dtypes[0], given.value(count_at), given.value(axis_at)
    read = Tensors(_text(given.read[0]), dtype)
    if not count.isdigit() or not axis.lstrip("-").isdigit() or not -len(shape) <= int(axis) < len(shape):
        return read
    place = int(axis) % len(shape)
    kept = _text((*shape[:place], int(count), *shape[place + 1 :]))
    return read._replace(output_shapes=f"{kept};{kept}", output_dtypes=f"{dtype};INT64")


def _joined(given: Inputs) -> Tensors:
    """Of a list of tensors, whose type is not recorded."""
    axis = given.value(1)
    parts = [part for part in next(iter(given.lists), []) if part != (0,)]
    if not parts or not axis.lstrip("-").isdigit() or len({len(part) for part in parts}) > 1:
        return Tensors()
    rank = len(parts[0])
    if not -rank <= int(axis) < rank:
        return Tensors()
    place = int(axis) % rank
    whole = (*parts[0][:place], sum(part[place] for part in parts), *parts[0][place + 1 :])
    return Tensors(_joined_texts([*parts]), "", _text(whole), "")


def _of_lists(name: str, lists: list[list[Shape]]) -> Tensors:
    """Of an operator on lists of tensors, whose types are not recorded; the tensors of one list behind those of
    another."""
    if not lists or any(len(one) != len(lists[0]) for one in lists):
        return Tensors()
    results = [() for _ in lists[0]] if name in words.RESULTS["numbers_of_lists"] else lists[0]
    read = lists[1:] if name in words.RESULTS["copies_lists"] else [] if name in words.RESULTS["fills"] else lists
    return Tensors(_joined_texts([shape for one in read for shape in one]), "", _joined_texts([*results]), "")


def works_on_lists(operator: str) -> bool:
    """Whether an operator of PyTorch is one on lists of tensors."""
    return operator.removeprefix("aten::").startswith(words.RESULTS["on_lists"])


def _narrowed(shapes: pd.Series) -> pd.Series:
    """Shapes without axes of one element, which views add (`stack`) and take away."""
    return (
        shapes.astype(str)
        .str.replace(r"(?<![0-9])1(?:,|(?=;|$))", "", regex=True)
        .str.replace(",(?=;|$)", "", regex=True)
    )


def with_types_of_lists(frame: pd.DataFrame) -> pd.DataFrame:
    """Kernels with the type of what reads lists of tensors, where it is not recorded: that of the kernel before it on
    its stream which wrote the last tensor of the shape of the largest part of which there is one. Such a kernel wrote
    that part or one like it (a list that is joined or updated at once has one type), so it is inferred; '' where there
    is none. What is joined again is told in the next round. Columns as of the table, as texts."""
    for _ in range(ROUNDS):
        before = (frame["output_dtypes"] != "").sum()
        frame = _with_types_of_lists(frame)
        if (frame["output_dtypes"] != "").sum() == before:
            break
    return frame


def _with_types_of_lists(frame: pd.DataFrame) -> pd.DataFrame:
    operators = frame["type"].astype("category")
    joins = [f"aten::{name}" for name in words.RESULTS["joins"]]
    listing = [name for name in operators.cat.categories if name in joins or works_on_lists(str(name))]
    untyped = operators.isin(listing) & (frame["input_shapes"] != "") & (frame["output_dtypes"] == "")
    if not untyped.any():
        return frame
    order = frame[["stream", "start_ns"]].astype("int64").assign(row=np.arange(len(frame)))
    wrote = order.assign(shape=_narrowed(frame["output_shapes"]), dtype=frame["output_dtypes"].astype(str))
    wrote = wrote[wrote["dtype"] != ""].sort_values("start_ns", kind="stable")
    parts = order[untyped.to_numpy()].assign(shape=_narrowed(frame.loc[untyped, "input_shapes"]).str.split(";"))
    parts = parts.explode("shape").drop_duplicates(["row", "shape"]).sort_values("start_ns", kind="stable")
    found = pd.merge_asof(parts, wrote.drop(columns="row"), on="start_ns", by=["stream", "shape"],
        allow_exact_matches=False)  # fmt: skip
    typed = found.dropna(subset="dtype")
    size_of = {text: prod(map(int, text.split(","))) if text else 1 for text in typed["shape"].unique()}
    by_size = typed.assign(size=typed["shape"].map(size_of)).sort_values("size", kind="stable")
    dtype = by_size.groupby("row")["dtype"].last()
    rows = dtype.index.to_numpy()
    told = {name: frame[name].to_numpy(dtype=object, copy=True) for name in ("input_dtypes", "output_dtypes")}
    for side in ("input", "output"):
        counts = frame[f"{side}_shapes"].iloc[rows].astype(str).str.count(";").to_numpy() + 1
        told[f"{side}_dtypes"][rows] = [";".join([name] * count) for name, count in zip(dtype, counts, strict=True)]
    return frame.assign(**told)
