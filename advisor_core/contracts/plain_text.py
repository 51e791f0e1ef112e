"""Text of pandas as objects of Python while a rank is analysed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd


@contextmanager
def plain_text() -> Iterator[None]:
    """Have pandas 3 keep new columns and names of columns as objects of Python; the type is ``str`` all the same.

    By default it makes each an Arrow array, which pays for long columns. An analysis makes thousands of small frames,
    and each would turn its names, and its few texts, to Arrow and back; long columns of text are categoricals, see
    `advisor_core.contracts.tables`. The option is one of the process and is put back. pandas 2 does so anyway.
    """
    with pd.option_context("mode.string_storage", "python"):
        yield
