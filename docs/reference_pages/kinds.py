"""Kinds of values in the files that pages are written from."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

Sentence = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Url = Annotated[str, StringConstraints(pattern=r"^https://[^\s)]+$")]
