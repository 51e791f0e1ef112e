"""One spelling for what exports of Ascend spell differently, by version and by format.

Every function takes one text and gives the canonical one; it is applied to the distinct values of a column, not to
its rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, cast

from advisor_core.text.packaged import packaged_yaml

Lane = Literal["python", "mindspore", "gc", "os", "mstx", "cann", "hardware", "communication", "overlap", "other"]

UINT32_NONE: Final = 4294967295
"""The value that exports write for 'none' in an unsigned 32-bit field: no graph, no peer rank."""

NULLS: Final = ("", "N/A", "NA", "n/a", "None", "null", "nan", "NaN")
"""The texts that exports write for an absent value."""

VENDOR: Final = "ascend"
"""The vocabulary that profiles of these exports are read with."""

_WORDS: Final[Mapping[str, Mapping[str, str]]] = packaged_yaml("advisor_core.ascend", "exporter.yaml")

COMPUTE_TASKS: Final = tuple(packaged_yaml("advisor_core.ascend", "vocabulary.yaml")["compute_tasks"])
"""Task types that compute."""


def lane(process: str) -> Lane:
    """The lane of a process of the trace, by its name (never by its pid or its place)."""
    known = _WORDS["lanes"].get(process.strip().lower())
    if known is None:
        return "mstx" if "mstx" in process.lower() else "other"
    return cast(Lane, known)


def tidy(text: str) -> str:
    """Without the tabs and blanks that exports leave behind; '' for an absent value."""
    text = text.strip()
    return "" if text in NULLS else text


def core(text: str) -> str:
    text = tidy(text)
    return _WORDS["cores"].get(text, text)


def task_type(text: str) -> str:
    """AI_CORE, EVENT_WAIT_SQE and so on: what kind of task a stream runs."""
    text = tidy(text)
    return _WORDS["task_types"].get(text, text)


def cann_call(level: str, name: str) -> str:
    """``AscendCL@aclnnAdd``, ``Node@launch``: how a trace names a call of CANN, from its level and its name."""
    prefix = _WORDS["call_prefixes"].get(level.strip().lower(), level.strip())
    return f"{prefix}@{name}" if prefix else name


def overlap_kind(text: str) -> str:
    """Computing, Communication, Communication(Not Overlapped) or Free."""
    return _WORDS["overlap"].get(text.strip().lower(), text)


def shapes(text: str) -> str:
    """``;`` between tensors and ``,`` between axes, without quotes, blanks and line breaks."""
    text = tidy(text.strip().strip('"'))
    return re.sub(r'[\s"]+', "", text)


def dtypes(text: str) -> str:
    """``;`` between tensors; FLOAT, FLOAT16, BF16, INT64 and so on."""
    items = (item.strip().removeprefix("DT_") for item in tidy(text).split(";"))
    return ";".join(_WORDS["dtypes"].get(item, item) for item in items)


def formats(text: str) -> str:
    """``;`` between tensors; ND, NCHW, FRACTAL_NZ, NC1HWC0:1 and so on."""
    return ";".join(item.strip().removeprefix("FORMAT_") for item in tidy(text).split(";"))


def api_level(text: str) -> str:
    text = tidy(text).lower()
    return _WORDS["api_levels"].get(text, text)


def stack(text: str) -> str:
    """One frame per line, innermost first, without the ``;`` that exports put between frames."""
    return re.sub(r"\s*;\s*\n\s*", "\n", tidy(text))


def link(text: str) -> str:
    text = tidy(text)
    return "" if text == "INVALID_TYPE" else text


def flow_kind(text: str) -> str:
    """From the category of a flow, or from its name where it has no category."""
    key = text.strip().lower()
    if key.startswith("hosttodevice"):
        return "host_to_device"
    if "mstx" in key:
        return "mstx"
    return _WORDS["flows"].get(key, text)


def parallel_dimension(name: str) -> str | None:
    """tp, pp, dp ... of an entry of ``distributed_args``; None for an entry that is no such size."""
    return _WORDS["parallel"].get(name)


def level(text: str) -> str | None:
    """``level_none``, ``level0``, ``level1`` or ``level2``; None for what is no level."""
    found = re.search(r"level_?(none|\d)\s*$", text.strip().lower())
    if found is None:
        return None
    return "level_none" if found[1] == "none" else f"level{found[1]}"
