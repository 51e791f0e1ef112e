from __future__ import annotations

import pytest

from advisor_core.loaders import ascend_words as words


@pytest.mark.parametrize(
    ("process", "lane"),
    [
        ("Python", "python"),
        ("Python GC", "gc"),
        ("CANN", "cann"),
        ("Ascend Hardware", "hardware"),
        ("HCCL", "communication"),
        ("Communication", "communication"),
        ("Overlap Analysis", "overlap"),
        ("OS Runtime API", "os"),
        ("MSTX domains", "mstx"),
        ("HBM", "other"),
    ],
)
def test_lanes(process: str, lane: str) -> None:
    assert words.lane(process) == lane


def test_values_of_columns() -> None:
    assert words.core("HCCL") == words.core("COMMUNICATION\t") == "COMMUNICATION"
    assert words.core("N/A") == "" and words.core("DSA_SQE") == "DSA" and words.core("AI_CORE") == "AI_CORE"
    assert words.shapes('"32,3;64"') == "32,3;64" and words.shapes('";"') == ";" and words.shapes('""') == ""
    assert words.shapes("N/A") == "" and words.shapes("4, 5;\r\n;\r\n") == "4,5;;"
    assert words.dtypes("FLOAT;DT_BF16;INT64") == "FLOAT;BF16;INT64" and words.dtypes("N/A") == ""
    assert words.formats("FORMAT_ND;NC1HWC0:1;NULL") == "ND;NC1HWC0:1;NULL"
    assert words.api_level("hccl") == words.api_level("Communication") == "communication"
    assert words.stack("a.py(1): f;\r\nb.py(2): g;\nc") == "a.py(1): f\nb.py(2): g\nc"
    assert words.link("INVALID_TYPE") == ""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("async_npu", "torch_to_npu"),
        ("HostToDevice", "host_to_device"),
        ("HostToDevice936", "host_to_device"),
        ("async_task_queue", "task_queue"),
        ("fwdbwd", "forward_backward"),
        ("mstx_flow", "mstx"),
        ("something new", "something new"),
    ],
)
def test_flow_kinds(text: str, kind: str) -> None:
    assert words.flow_kind(text) == kind


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("Level0", "level0"),
        ("Level1", "level1"),
        ("ProfilerLevel.Level2", "level2"),
        ("Level_none", "level_none"),
        ("", None),
    ],
)
def test_levels(text: str, level: str | None) -> None:
    assert words.level(text) == level


def test_names_of_a_database() -> None:
    assert words.task_type("KERNEL_AIVEC") == "AI_VECTOR_CORE" and words.task_type("EVENT_WAIT") == "EVENT_WAIT_SQE"
    assert words.task_type("Notify Wait") == "Notify Wait" and words.task_type("N/A") == ""
    assert (
        words.cann_call("acl", "aclnnAdd") == "AscendCL@aclnnAdd" and words.cann_call("node", "launch") == "Node@launch"
    )
    assert words.cann_call("", "x") == "x" and words.cann_call("new", "x") == "new@x"
    assert words.overlap_kind("COMM_NOT_OVERLAP_COMP") == "Communication(Not Overlapped)"
    assert words.overlap_kind("Free") == "Free" and words.overlap_kind("RESERVE") == "RESERVE"
