"""How the dataclasses of a job are read from the file that describes it: a misspelt name is an error."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import ConfigDict, Field

FROM_FILES: Final = ConfigDict(extra="forbid")
Positive = Annotated[int, Field(gt=0)]
"""A size or a count of which there must be some."""
Natural = Annotated[int, Field(ge=0)]
"""A size, a count or a time that may be nothing."""
Factor = Annotated[float, Field(gt=0)]
"""A rate or a ratio."""
Share = Annotated[float, Field(ge=0, le=1)]
