"""Frames of canonical tables as Arrow IPC streams: the same values, dtypes and order of categories when read back."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa

from advisor_core.contracts.frames import frame_of

_BOOL: Final = "uint8"
"""One byte each as in numpy: Arrow packs eight into a byte, which would have to be copied apart."""


class UnkeepableError(Exception):
    """A frame that is no canonical one, or holds what Arrow cannot."""


def to_stream(frame: pd.DataFrame) -> pa.Buffer:
    """Raises `UnkeepableError`."""
    try:
        columns = [_array(frame.iloc[:, place]) for place in range(frame.shape[1])]
        batch = pa.record_batch(columns, names=[str(name) for name in frame.columns])
    except (pa.ArrowException, UnicodeError) as error:
        raise UnkeepableError(str(error)) from None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def from_stream(buffer: pa.Buffer, bools: frozenset[str]) -> pd.DataFrame:
    """The frame, its numbers where the buffer has them. ``bools``: the columns that are truth values."""
    with pa.ipc.open_stream(buffer) as reader:
        batch = reader.read_next_batch()
    names = batch.schema.names
    columns = {name: _values(batch.column(place), name in bools) for place, name in enumerate(names)}
    return frame_of(columns, batch.num_rows, together=False)


def _array(values: pd.Series) -> pa.Array:
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        if dtype.ordered or dtype.categories.dtype != object:
            raise UnkeepableError(f"{values.name} has categories that are no plain texts")
        texts = pa.array(dtype.categories.tolist(), pa.large_string())
        codes = values.cat.codes.to_numpy()
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), texts)
    if dtype == np.bool_:
        return pa.array(values.to_numpy().view(np.uint8), _BOOL)
    if dtype in (np.int64, np.float64):
        return pa.array(values.to_numpy(), from_pandas=False)
    raise UnkeepableError(f"{values.name} has dtype {dtype}")


def _values(array: pa.Array, is_bool: bool) -> object:
    if isinstance(array, pa.DictionaryArray):
        codes = array.indices.fill_null(-1) if array.null_count else array.indices
        texts = pd.Index(array.dictionary.to_pylist(), dtype=object)
        return pd.Categorical.from_codes(codes.to_numpy(), categories=texts)
    numbers = array.to_numpy(zero_copy_only=True)
    return numbers.view(np.bool_) if is_bool else numbers
