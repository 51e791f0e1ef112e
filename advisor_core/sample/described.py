"""How the dataclasses of a job are read from the file that describes it: a misspelt name is an error."""

from __future__ import annotations

from typing import Final

from pydantic import ConfigDict

FROM_FILES: Final = ConfigDict(extra="forbid")
