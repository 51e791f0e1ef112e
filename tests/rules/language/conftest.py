"""An advisor that measures nothing real, and a rule file about it that is right; tests change one thing at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
import pytest

from advisor_core.contracts.advisor import Advisor, Observations, advisor
from advisor_core.contracts.columns import Column
from advisor_core.rules.language.profile_names import PROFILE_NAMES
from advisor_core.rules.language.scope import Scope
from advisor_core.rules.model import Param

ABOUT = (Column("kernel", "text", "", "name of the kernel"),)
COLUMNS = (
    Column("idle_ns", "int", "ns", "idle time per step"),
    Column("gap_us", "float", "us", "a column of a plugin that does not keep to ns"),
    Column("idle_share", "float", "ratio", "share of the step"),
    Column("size", "int", "B", "bytes moved"),
    Column("launches", "int", "count", "launches"),
    Column("late", "bool", "", "launched late"),
    Column("number", "float", "", "a number without unit"),
)

RULE = """\
id: HD001
name: device-idle
aliases: [OLD001, old-name]
advisor: host.idle
params:
  idle_share: {value: 0.10, unit: ratio, range: [0.01, 0.9], why: "our choice: more than this is dispatch bound"}
  min_idle: {value: 50, unit: us, why: "shorter gaps are launch latency"}
applies: launches > 0
when: >
  idle_share > params.idle_share
  and idle_ns >= params.min_idle
severity: {high: idle_share > 0.5, medium: idle_share > 0.3}
impact: {value: idle_ns, basis: upper_bound}
claims: [idle/host]
advice:
  - kind: env
    set: {TASK_QUEUE_ENABLE: "2"}
    unless: profile.graph_mode
    unless_text: {en: "Not together with graph capture.", zh: "不能与图捕获同时使用。"}
    text: {en: "Set TASK_QUEUE_ENABLE.", zh: "设置 TASK_QUEUE_ENABLE。"}
    risk: {en: "More memory.", zh: "占用更多内存。"}
  - kind: investigate
    text: {en: "Look at {{ kernel | code }}.", zh: "查看 {{ kernel | code }}。"}
text:
  title:
    en: "{{ idle_share }} of the step waits for the host"
    zh: "{{ idle_share }} 的时间在等待主机"
  good: {en: "The host keeps up", zh: "主机下发及时"}
  why: {en: "Above {{ params.idle_share }} it is {{ kernel }}.", zh: "超过 {{ params.idle_share }} 即为 {{ kernel }}。"}
  verify: {en: "Run again.", zh: "再次运行。"}
references:
  - {title: "Ascend community", url: "https://www.hiascend.com/"}
"""


@advisor("host.idle", needs=[], about=ABOUT, columns=COLUMNS, params=["min_idle"])
def idle(facts: object, params: Mapping[str, object]) -> Observations:
    """Time the device waits for the host."""
    raise NotImplementedError


@advisor("comm.overlap", needs=[], columns=[Column("share", "float", "ratio", "share")])
def overlap(facts: object, params: Mapping[str, object]) -> Observations:
    """Overlap."""
    raise NotImplementedError


@pytest.fixture
def advisors() -> dict[str, Advisor]:
    return {"host.idle": idle, "comm.overlap": overlap}


@pytest.fixture
def scope() -> Scope:
    def param(value: bool | float | str, unit: str = "") -> Param:
        return Param(value=value, unit=unit, why="chosen for this test")

    params = {
        "min_gap": param(50, "us"),
        "share": param(10, "%"),
        "word": param("slow"),
        "flag": param(True),
        "amount": param(1.5, "MiB"),
    }
    columns = {column.name: column for column in (*ABOUT, *COLUMNS)}
    return Scope(columns, params, PROFILE_NAMES, {"HD001": "HD001", "OLD001": "HD001"})


@pytest.fixture
def rule() -> Callable[..., str]:
    """The rule file with pieces of its text replaced: ``rule(("old", "new"), ...)``. Each must be in it."""

    def make(*changes: tuple[str, str]) -> str:
        text = RULE
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        return text

    return make


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes a file; the working directory is where it is, so that messages carry short names."""
    monkeypatch.chdir(tmp_path)

    def make(text: str | bytes, name: str = "r.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


@pytest.fixture
def frame() -> pd.DataFrame:
    """Rows: at fault, at fault and larger, in order, does not apply, not known."""
    return pd.DataFrame(
        {
            "kernel": pd.Categorical(["MatMul", "<script>", "Add", "Mul", None]),
            "idle_ns": [100_000, 900_000, 80_000, 500_000, 70_000],
            "gap_us": [1.0, 2.0, 3.0, 4.0, float("nan")],
            "idle_share": [0.2, 0.6, 0.05, 0.9, float("nan")],
            "size": [1, 2, 3, 4, 5],
            "launches": [5, 5, 5, 0, 5],
            "late": [True, False, None, True, None],
            "number": [1.0, 2.0, 3.0, 4.0, 5.0],
        },
        index=[10, 11, 12, 13, 14],
    )
