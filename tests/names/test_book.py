"""Registry files as one book."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.names.book import NameBook, load_names
from advisor_core.names.lint import name_problems

FILE = """
software: torch-npu
title: Ascend Extension for PyTorch
framework: pytorch
source: {title: Ascend/pytorch, url: "https://gitcode.com/Ascend/pytorch", date: 2026-08-21}
names:
  - {name: graph-capture, kind: feature, meaning: captured graphs, title: {en: captured graphs, zh: 图捕获}}
  - name: TASK_QUEUE_ENABLE
    kind: variable
    meaning: launch queue
    values: ["0", "1", "2"]
    default: "1"
    excludes: {"2": [graph-capture]}
  - name: PYTORCH_NPU_ALLOC_CONF
    kind: variable
    meaning: options of the allocator
    values: options
    list: ","
    excludes: {expandable_segments: [PYTORCH_NPU_ALLOC_CONF=max_split_size_mb], "*": [sleep-mode]}
  - {name: .item, kind: api, meaning: value of a tensor, signature: "()"}
  - {name: torch_npu.npu_swiglu, kind: api, meaning: gate, signature: "(self, dim=-1)"}
  - {name: torch_npu.profiler.ProfilerActivity, kind: api, meaning: sides that are recorded}
  - name: torch_npu.profiler.ProfilerActivity.NPU
    kind: value
    meaning: records the device
    aliases: [ProfilerActivity.NPU]
  - {name: mode.fast, kind: value, meaning: value of a setting}
"""


@pytest.fixture
def book(tmp_path: Path) -> NameBook:
    (tmp_path / "torch-npu.yaml").write_text(FILE, encoding="utf-8")
    return load_names((tmp_path,))


def test_names_methods_and_short_names(book: NameBook) -> None:
    assert len(book) == 8
    for spelling in ("TASK_QUEUE_ENABLE", "loss.item", ".item", "npu_swiglu", "torch_npu.npu_swiglu"):
        assert book.get(spelling) is not None, spelling
    assert book.get("task_queue_enable") is None and book.get("swiglu") is None
    assert book.title_of("torch-npu").en == "Ascend Extension for PyTorch" and book.title_of("else").zh == "else"
    assert book.title_of("hdk").en == "the driver package (Ascend HDK)"


def test_exclusions_by_value_option_and_any_value(book: NameBook) -> None:
    assert book.excluded_by(["TASK_QUEUE_ENABLE=2"]) == ("graph-capture",)
    assert book.excluded_by(["TASK_QUEUE_ENABLE=1"]) == ()
    assert set(book.excluded_by(["PYTORCH_NPU_ALLOC_CONF=expandable_segments:True"])) == {
        "sleep-mode",
        "PYTORCH_NPU_ALLOC_CONF=max_split_size_mb",
    }
    assert book.excluded_by(["unheard-of"]) == ()


def test_settings_know_their_default_and_list(book: NameBook) -> None:
    assert book.setting("TASK_QUEUE_ENABLE", "1").is_set({"TASK_QUEUE_ENABLE": ""})
    assert book.setting("PYTORCH_NPU_ALLOC_CONF", "page_size:1g").separator == ","


@pytest.mark.parametrize(
    ("text", "frameworks"),
    [
        ("Call `torch_npu.npu_swiglu(x)`.", {"pytorch"}),
        ("`activities=[torch_npu.profiler.ProfilerActivity.NPU]`", {"pytorch"}),
        ("Profile with `ProfilerActivity.NPU`.", {"pytorch"}),
        ("Set `TASK_QUEUE_ENABLE=2` and `mode.fast`.", set()),
    ],
)
def test_frameworks_are_those_of_the_apis_and_of_the_members_of_enumerations(
    text: str, frameworks: set[str], book: NameBook
) -> None:
    assert book.frameworks_of(text) == frameworks


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Set `TASK_QUEUE_ENABLE=2`.", ""),
        ("Set TASK_QUEUE_ENABEL.", "not in the registry"),
        ("Set `TASK_QUEUE_ENABLE=3`.", "does not take '3'"),
        ("Call `torch_npu.npu_swiglu(x, dim=-1)`.", ""),
        ("Call `torch_npu.npu_swiglu(x, axis=-1)`.", "does not fit"),
        ("Call `torch_npu.npu_swigluu(x)`.", "not in the registry"),
    ],
)
def test_names_in_texts(text: str, problem: str, book: NameBook) -> None:
    found = [message for _, message, _ in name_problems(text, book)]
    assert (problem in found[0]) if problem else not found


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(FILE.replace("kind: variable", "kind: envvar"), encoding="utf-8")
    (tmp_path / "b.yaml").write_text("software: [", encoding="utf-8")
    told = "\n".join(map(str, load_names((tmp_path,)).problems))
    assert "names.1.kind" in told and "names.2.kind" in told and "b.yaml: is not YAML" in told


def test_a_name_stands_in_one_file_only(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(FILE.replace("torch-npu", name, 1), encoding="utf-8")
    book = load_names((tmp_path,))
    assert len(book.problems) == 9 and "also stands in the names of a" in str(book.problems[0])
    assert book.owners["TASK_QUEUE_ENABLE"].software == "a"
