# ruff: noqa: E501
"""A realistic result to render: two of eight ranks of an AlexNet job, with everything a result can hold.

`alexnet()` is what a person would see; `hostile()` is the same with names that try to do harm; `many_ranks()` and
`nothing_found()` are the two ends of the scale.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from advisor_core.result.evidence import Evidence, Source
from advisor_core.result.finding import Advice, Claim, Finding, Impact, Reference
from advisor_core.result.run import (
    Diagnostic,
    Environment,
    Input,
    InputFile,
    LedgerEntry,
    LedgerStep,
    PhaseTime,
    Profile,
    RuleOutcome,
    RunResult,
    StepInfo,
    Tool,
)
from advisor_core.result.view import View
from advisor_core.run.compose import compose
from advisor_core.run.merge_roles import joined, of_role
from advisor_core.text.base import Text

_VIEW = TypeAdapter(View)


def view(**fields: Any) -> View:
    found: View = _VIEW.validate_python(fields)
    return found


T0 = 1_736_408_883_687_000_000
WALL = 136_581_009
SCRIPT = "<script>document.title='hacked';alert(1)</script>"
HOSTILE = (
    SCRIPT,
    '=HYPERLINK("http://evil.example/","x")',
    "a|b`c``d|e",
    '"><img src=http://evil.example/x.png onerror=alert(1)>',
    "[click](javascript:alert(1)) ![x](http://evil.example/y.png)",
    "\x1b[31mred\x1b[0m \u202eright-to-left",
    "@everyone see http://evil.example and www.evil.example",
    "</style></title><svg onload=alert(1)>",
)

RANK0 = {
    "compute/convolution": 1_808_456,
    "compute/matmul": 997_399,
    "compute/optimizer": 2_264_945,
    "compute/format_conversion": 1_423_208,
    "compute/elementwise": 611_317,
    "compute/copy": 731_114,
    "compute/reduction": 925_777,
    "compute/transpose": 111_540,
    "communication/wait/rank 5": 98_912_350,
    "communication/transmit": 2_411_602,
    "communication/launch": 402_118,
    "communication/unknown": 237_133,
    "idle/host/framework": 9_880_413,
    "idle/host/python": 5_721_090,
    "idle/host/runtime": 3_330_127,
    "idle/sync": 3_902_556,
    "idle/launch_latency": 1_204_875,
    "idle/dependency": 611_204,
    "idle/host/dataloader": 822_311,
    "idle/unknown": 271_474,
}
assert sum(RANK0.values()) == WALL


def text(en: str, zh: str) -> Text:
    return Text(en=en, zh=zh)


def ledger_step(rank: int, entries: dict[str, int], step: int | None = 50) -> LedgerStep:
    leaves = [
        LedgerEntry(path=path, ns=ns, detail=_DETAILS.get(path, {}), pieces=_PIECES.get(path, []))
        for path, ns in entries.items()
    ]
    return LedgerStep(rank=rank, step=step, wall_ns=sum(entries.values()), entries=leaves)


_PIECES: dict[str, list[dict[str, Any]]] = {
    "communication/wait/rank 5": [
        {
            "start_ns": T0 + 24_300_000, "ns": 78_812_004, "collective": "hcom_allReduce__950_0_1", "collective_line": 81,
            "wait": "Notify_Wait", "wait_offset": 1_343_808,
        }
    ],
    "idle/host/framework": [{"start_ns": T0 + 9_300_000, "ns": 1_168_090, "host": SCRIPT, "host_offset": 177_955}],
}  # fmt: skip
_DETAILS: dict[str, dict[str, Any]] = {
    "communication/wait/rank 5": {"collectives": 16, "longest_ns": 78_812_004},
    "compute/convolution": {"overlapped_communication_ns": 1_204_331},
    "idle/unknown": {"gaps": 41},
}


def _impact(
    ns: int, basis: str, claims: dict[str, int], gross: int | None = None, ranks: tuple[int, ...] = (0, 1)
) -> Impact:
    return Impact.model_validate(
        {
            "ns_per_step": ns,
            "gross_ns_per_step": gross if gross is not None else ns,
            "share_of_step": ns / WALL,
            "basis": basis,
            "claims": [
                Claim(rank=rank, path=leaf, ns=round(amount * booked / sum(leaves.values())))
                for rank in ranks
                for path, amount in claims.items()
                for leaves in [{p: n for p, n in RANK0.items() if p == path or p.startswith(f"{path}/")}]
                for leaf, booked in leaves.items()
            ],
        }
    )


OUTPUT = "rank0_ascend_pt/ASCEND_PROFILER_OUTPUT"
TRACE = Source(file=f"{OUTPUT}/trace_view.json", table="trace", offset=1_288_401, sha256="9c" * 32)
KERNELS = Source(file=f"{OUTPUT}/kernel_details.csv", table="kernels", line=118, sha256="1f" * 32)
DOCS = Reference(
    title="Ascend PyTorch environment variables, TASK_QUEUE_ENABLE",
    url="https://www.hiascend.com/document/detail/zh/Pytorch/710/comref/Envvariables/Envir_007.html",
)


def findings() -> list[Finding]:
    """A symptom with its cause, a symptom with two, and two that stand alone."""
    uncovered = Finding(
        rule="COM001",
        name="communication-not-overlapped",
        fingerprint="COM001:rank=0",
        title=text("75 % of the step is communication that nothing covers", "单步的 75 % 是未被掩盖的通信"),
        why=text(
            "Of 136.6 ms per step, 102 ms pass in collectives while no kernel computes; only 3.8 % of all communication is covered. "
            "What the collectives do in that time is told by the causes below.",
            "每步 136.6 ms 中，有 102 ms 处于集合通信且没有任何算子在计算；仅 3.8 % 的通信被计算掩盖。集合通信在这段时间内的行为见下方原因。",
        ),
        verify=text(
            "`Communication(Not Overlapped)` in `step_trace_time.csv` falls below 30 % of the step.",
            "`step_trace_time.csv` 中的 `Communication(Not Overlapped)` 降到单步的 30 % 以下。",
        ),
        not_a_problem_if=None,
        severity="high",
        confidence="high",
        rank=0,
        ranks=[0, 1],
        step=None,
        subject={"rank": 0},
        impact=_impact(
            2_813_720, "exact", {"communication/transmit": 2_411_602, "communication/launch": 402_118}, 101_963_203
        ),
        observation={"uncovered_share": 0.7465, "overlap_ratio": 0.038, "uncovered_ns": 101_963_203, "collectives": 16},
        units={"uncovered_share": "ratio", "overlap_ratio": "ratio", "uncovered_ns": "ns", "collectives": "count"},
        condition="uncovered_share > params.uncovered_share",
        evidence=[
            Evidence(
                kind="metric",
                title=text("The step by the exporter's own account", "导出工具自身的单步统计"),
                source=Source(file=f"{OUTPUT}/step_trace_time.csv", table="steps", line=2, sha256="ab" * 32),
                units={
                    "computing": "ns",
                    "communication_not_overlapped": "ns",
                    "overlapped": "ns",
                    "free": "ns",
                    "stage": "ns",
                },
                rows=[
                    {
                        "computing": 8_873_756,
                        "communication_not_overlapped": 101_963_203,
                        "overlapped": 4_028_675,
                        "free": 25_744_050,
                        "stage": 136_581_000,
                    }
                ],
            )
        ],
        advice=[
            Advice(
                kind="investigate",
                text=text(
                    "Find the rank that arrives last before touching bandwidth or buckets: here waiting is 40 times transfer.",
                    "在调整带宽或分桶之前，先找到最后到达的 rank：此处等待时间是传输的 40 倍。",
                ),
            )
        ],
        explained_by=["COM004:rank=0:peer=5"],
        references=[Reference(title="Waiting is told apart from transfer")],
    )
    waits = Finding(
        rule="COM004",
        name="waiting-for-one-rank",
        fingerprint="COM004:rank=0:peer=5",
        title=text("Every collective waits for rank 5", "所有集合通信都在等待 rank 5"),
        why=text(
            "Rank 0 waits **98.9 ms** for rank 5; in the longest collective it is 78.8 of 79.1 ms. Rank 1 sees the same. "
            "Two independent ranks that name one peer make it the straggler:\n\n- transfer takes 2.41 ms\n- waiting takes 98.9 ms",
            "rank 0 等待 rank 5 共 **98.9 ms**，其中最长的一次集合通信 79.1 ms 中有 78.8 ms 在等待。rank 1 的情况相同。"
            "两个独立的 rank 指向同一对端，说明它就是慢卡：\n\n- 传输耗时 2.41 ms\n- 等待耗时 98.9 ms",
        ),
        verify=text(
            "Profile rank 5 and compare its `Computing` and `Free` with rank 0; after the fix the wait for rank 5 is below 10 % of the step.",
            "采集 rank 5，并与 rank 0 比较 `Computing` 和 `Free`；修复后对 rank 5 的等待低于单步的 10 %。",
        ),
        not_a_problem_if=text(
            "The profiled step is the first after a checkpoint or an evaluation on rank 5 only.",
            "所采集的步恰好是 rank 5 单独保存检查点或评测之后的第一步。",
        ),
        severity="high",
        confidence="high",
        rank=0,
        ranks=[0, 1],
        step=50,
        subject={"peer": 5, "group": "default"},
        impact=_impact(98_912_350, "exact", {"communication/wait/rank 5": 98_912_350}),
        observation={"wait_ns": 98_912_350, "wait_share": 0.7242, "transfer_ns": 2_411_602, "peer": 5},
        units={"wait_ns": "ns", "wait_share": "ratio", "transfer_ns": "ns", "peer": ""},
        condition="wait_share > params.wait_share and wait_ns > 2 * transfer_ns",
        evidence=[
            Evidence(
                kind="rows",
                title=text("Notify waits by source rank, longest first", "按源 rank 统计的 Notify 等待（最长在前）"),
                source=TRACE,
                units={"duration_ns": "ns", "wait_for_peer_ns": "ns", "size": "bytes"},
                total_rows=16,
                rank=0,
                rows=[
                    {
                        "offset": 1_288_401,
                        "collective": "hcom_allReduce__950_0_1",
                        "peer": 5,
                        "duration_ns": 79_104_220,
                        "wait_for_peer_ns": 78_812_004,
                        "size": 9_830_400,
                    },
                    {
                        "offset": 1_301_977,
                        "collective": "hcom_allReduce__950_1_1",
                        "peer": 5,
                        "duration_ns": 12_771_330,
                        "wait_for_peer_ns": 12_310_985,
                        "size": 151_011_328,
                    },
                    {
                        "offset": 1_340_412,
                        "collective": "hcom_allReduce__950_2_1",
                        "peer": 5,
                        "duration_ns": 8_104_551,
                        "wait_for_peer_ns": 7_789_361,
                        "size": 83_886_080,
                    },
                ],
            ),
            Evidence(
                kind="interval",
                title=text("The longest of them", "其中最长的一次"),
                source=TRACE,
                rank=0,
                start_ns=T0 + 24_117_300,
                end_ns=T0 + 103_221_520,
                lane="Group default Communication",
            ),
        ],
        advice=[
            Advice(
                kind="collect",
                text=text(
                    "Profile rank 5 over the same steps, at the same level; then compare host, kernels and its input pipeline.",
                    "以相同级别、相同的步采集 rank 5，再比较主机侧、算子与数据输入。",
                ),
            ),
            Advice(
                kind="investigate",
                text=text(
                    "Look on the node of rank 5 for throttling (`npu-smi info -t common`), other processes on its cores, and slow storage.",
                    "在 rank 5 所在节点检查降频（`npu-smi info -t common`）、占用其核的其他进程以及慢存储。",
                ),
            ),
        ],
        explains=["COM001:rank=0"],
        caveats=[
            text(
                "Six of eight ranks are not in this profile: rank 5 is named by its peers, not seen itself.",
                "8 个 rank 中有 6 个不在本次数据中：rank 5 由对端指认，并未直接观察到。",
            )
        ],
        references=[Reference(title="In a collective the rank with the shortest communication is the slow one")],
    )
    idle = Finding(
        rule="HD001",
        name="device-idle-waiting-for-host",
        fingerprint="HD001:rank=0",
        title=text("The device is idle for 18.8 % of the step", "设备在单步的 18.8 % 时间内空闲"),
        why=text(
            "25.7 ms of the step the device has nothing to do; in 77 % of that time the next kernel had not been launched yet.",
            "单步中有 25.7 ms 设备无事可做；其中 77 % 的时间里下一个算子尚未下发。",
        ),
        verify=text("`Free` falls below 10 % of `Stage`.", "`Free` 降到 `Stage` 的 10 % 以下。"),
        not_a_problem_if=None,
        severity="medium",
        confidence="medium",
        rank=0,
        ranks=[0],
        step=None,
        subject={},
        impact=_impact(
            2_087_553,
            "exact",
            {"idle/launch_latency": 1_204_875, "idle/dependency": 611_204, "idle/unknown": 271_474},
            25_744_050,
        ),
        observation={"idle_share": 0.1885, "late_launch_share": 0.77},
        units={"idle_share": "ratio", "late_launch_share": "ratio"},
        condition="idle_share > params.idle_share",
        evidence=[
            Evidence(
                kind="metric",
                title=text("Idle time of the step", "单步空闲时间"),
                units={"idle": "ns", "gaps": "count"},
                rows=[{"idle": 25_744_050, "gaps": 412}],
            )
        ],
        advice=[
            Advice(kind="investigate", text=text("Follow the causes below, largest first.", "按下方原因由大到小处理。"))
        ],
        explained_by=["HD002:rank=0"],
        references=[DOCS],
    )
    late = Finding(
        rule="HD002",
        name="launches-arrive-late",
        fingerprint="HD002:rank=0",
        title=text("Operators are dispatched too slowly to keep the device fed", "算子下发过慢，设备得不到持续供给"),
        why=text(
            "188 gaps end with a kernel whose launch came *after* the gap had begun; the launching thread was dispatching operators (9.88 ms) or in Python (5.72 ms).",
            "有 188 个空隙，其结束处的算子在空隙开始*之后*才下发；下发线程当时在派发算子（9.88 ms）或执行 Python（5.72 ms）。",
        ),
        verify=text(
            "Run again with the setting: idle under `host` falls by half, step time with it.",
            "设置后重新采集：`host` 下的空闲减半，单步耗时随之下降。",
        ),
        not_a_problem_if=text(
            "The profile was taken with `with_stack=True`: Python then looks slower than it is. Compare with a run at Level0 without stacks.",
            "采集时开启了 `with_stack=True`：此时 Python 显得比实际更慢。请与不带调用栈的 Level0 数据比较。",
        ),
        severity="high",
        confidence="medium",
        rank=0,
        ranks=[0, 1],
        step=None,
        subject={},
        impact=_impact(18_931_630, "upper_bound", {"idle/host": 18_931_630}, 19_753_941),
        observation={"late_gaps": 188, "late_ns": 19_753_941, "graph_mode": None},
        units={"late_gaps": "count", "late_ns": "ns", "graph_mode": ""},
        condition="late_ns > params.late_share * step_ns",
        evidence=[
            Evidence(
                kind="rows",
                title=text("The kernels that end the longest gaps", "结束最长空隙的算子"),
                source=KERNELS,
                units={"gap_ns": "ns", "launched_after_ns": "ns"},
                total_rows=188,
                rows=[
                    {
                        "line": 118,
                        "name": "aclnnInplaceCopy_TensorMove_TensorMove",
                        "type": "TensorMove",
                        "gap_ns": 1_904_113,
                        "launched_after_ns": 1_877_020,
                    },
                    {
                        "line": 42,
                        "name": "Conv2DBackpropFilter3",
                        "type": "Conv2DBackpropFilter",
                        "gap_ns": 911_400,
                        "launched_after_ns": 880_207,
                    },
                    {
                        "line": 77,
                        "name": "aclnnForeachAddListV2_ForeachAddList",
                        "type": "ForeachAddList",
                        "gap_ns": 640_018,
                        "launched_after_ns": 622_951,
                    },
                ],
            ),
            Evidence(
                kind="setting",
                title=text("Recorded settings", "已记录的设置"),
                source=Source(file="rank0_ascend_pt/profiler_metadata.json", table="environment", offset=6),
                rows=[{"name": "ASCEND_LAUNCH_BLOCKING", "value": ""}, {"name": "with_stack", "value": True}],
            ),
            Evidence(
                kind="stack",
                title=text("Where the longest gap was spent on the host", "最长空隙期间的主机调用栈"),
                rows=[
                    {"frame": "torch/optim/sgd.py(81): step"},
                    {"frame": "torch/optim/optimizer.py(484): wrapper"},
                    {"frame": "train.py(213): train_one_epoch"},
                ],
            ),
        ],
        advice=[
            Advice(
                kind="env",
                set={"TASK_QUEUE_ENABLE": "2"},
                text=text(
                    "Moves workspace allocation and operator preparation to a second thread.",
                    "将 workspace 申请与算子准备移到第二级线程。",
                ),
                risk=text(
                    "Higher peak memory: the second stage keeps its own workspace pool.",
                    "峰值内存升高：第二级有独立的 workspace 池。",
                ),
                unless=text(
                    "the model is captured with ACLGraph, which refuses this value; use `1` there",
                    "模型使用 ACLGraph 捕获，此时不允许该取值，请用 `1`",
                ),
            ),
            Advice(
                kind="env",
                set={"CPU_AFFINITY_CONF": "2"},
                text=text("Binds the dispatching threads to cores of their own.", "将下发线程绑定到各自的核。"),
                risk=text(
                    "No effect, or harm, where the job is already confined to a few cores.",
                    "若作业已被限制在少量核上，则无效甚至有害。",
                ),
            ),
            Advice(
                kind="code",
                text=text(
                    "Use the fused optimizer, `torch_npu.optim.NpuFusedSGD`, and capture the step as a graph where shapes are fixed.",
                    "使用融合优化器 `torch_npu.optim.NpuFusedSGD`；形状固定时可将单步捕获为图。",
                ),
            ),
        ],
        explains=["HD001:rank=0"],
        references=[DOCS],
    )
    sync = Finding(
        rule="HD004",
        name="synchronising-calls",
        fingerprint="HD004:rank=0",
        title=text("27 synchronising calls drain the queue", "27 次同步调用排空了任务队列"),
        why=text(
            "`aten::_local_scalar_dense` (`.item()`) waits for the device; behind it the device is idle for 3.90 ms until the queue is full again.",
            "`aten::_local_scalar_dense`（即 `.item()`）等待设备；其后设备空闲 3.90 ms 直到队列重新填满。",
        ),
        verify=text("No `aclrtSynchronizeStream` inside the step.", "单步内不再出现 `aclrtSynchronizeStream`。"),
        not_a_problem_if=None,
        severity="low",
        confidence="high",
        rank=0,
        ranks=[0],
        step=50,
        subject={"operator": "aten::_local_scalar_dense"},
        impact=_impact(3_902_556, "exact", {"idle/sync": 3_902_556}, ranks=(0,)),
        observation={"calls": 27, "idle_behind_ns": 3_902_556},
        units={"calls": "count", "idle_behind_ns": "ns"},
        condition="(idle_behind_ns > params.sync_share * step_ns) and (calls > params.calls)",
        signs=["drains", "often"],
        evidence=[
            Evidence(
                kind="rows",
                title=text("The calls", "相关调用"),
                source=Source(file="analysis.db", table="CANN_API", rowid=4411),
                units={"duration": "ns"},
                rows=[{"rowid": 4411, "name": "aclrtSynchronizeStream", "duration": 1_220_441}],
            )
        ],
        advice=[
            Advice(
                kind="code",
                text=text(
                    "Keep the loss on the device and read it every 50 steps: replace `loss.item()` by `loss.detach()`.",
                    "将 loss 保留在设备上，每 50 步读取一次：用 `loss.detach()` 代替 `loss.item()`。",
                ),
            )
        ],
        explains=["HD001:rank=0"],
        references=[DOCS],
    )
    trans = Finding(
        rule="NS005",
        name="format-conversion-between-kernels",
        fingerprint="NS005:rank=0:TransData",
        title=text("57 TransData kernels convert formats back and forth", "57 个 TransData 算子来回转换格式"),
        why=text("They take 16 % of computing time and compute nothing.", "它们占计算时间的 16 %，却不做任何计算。"),
        verify=text("`TransData` disappears from `op_statistic.csv`.", "`op_statistic.csv` 中不再出现 `TransData`。"),
        not_a_problem_if=None,
        severity="low",
        confidence="medium",
        rank=None,
        ranks=[0, 1],
        step=None,
        subject={"type": "TransData"},
        impact=_impact(1_423_208, "upper_bound", {"compute/format_conversion": 1_423_208}),
        observation={"count": 57, "total_ns": 1_423_208},
        units={"count": "count", "total_ns": "ns"},
        condition="total_ns > params.share * computing_ns",
        evidence=[
            Evidence(
                kind="rows",
                title=text("By operator type", "按算子类型"),
                source=Source(file=f"{OUTPUT}/op_statistic.csv", table="op_statistic", line=3),
                units={"total": "ns", "share": "ratio"},
                rows=[
                    {
                        "line": 3,
                        "type": "TransData",
                        "core": "AI_VECTOR_CORE",
                        "count": 57,
                        "total": 1_423_208,
                        "share": 0.16038,
                    }
                ],
            )
        ],
        advice=[
            Advice(
                kind="code",
                text=text(
                    "Call `torch_npu.npu.config.allow_internal_format = False` before the model is built.",
                    "在构建模型之前设置 `torch_npu.npu.config.allow_internal_format = False`。",
                ),
                set={"allow_internal_format": "False"},
            )
        ],
        references=[
            Reference(title="Ascend Extension for PyTorch: private formats", url="https://www.hiascend.com/document")
        ],
    )
    return [waits, uncovered, late, idle, sync, trans]


def rules() -> list[RuleOutcome]:
    """Every state, with reasons where a state needs one."""
    fired = [
        RuleOutcome(rule=f.rule, name=f.name, title=f.title, state="fail", severity=f.severity, findings=1)
        for f in findings()
    ]
    good = [
        ("HD003", "online-compilation", "No operator is compiled while the step runs", "单步运行期间没有在线编译"),
        ("HD006", "launch-blocking", "Launches are asynchronous", "下发为异步"),
        (
            "NS001",
            "unfused-rmsnorm",
            "No chain of small kernels stands where a fused RMSNorm could",
            "没有可由融合 RMSNorm 代替的小算子链",
        ),
        (
            "NS002",
            "split-of-slices",
            "No tensor is cut by several slices where one split would do",
            "没有可由一次拆分代替的多次切片",
        ),
        ("SA002", "tail-axis-alignment", "Tail axes of the large matmuls are aligned", "大矩阵乘的尾轴已对齐"),
    ]
    passed = [RuleOutcome(rule=i, name=n, title=text(en, zh), state="pass") for i, n, en, zh in good]
    return [
        *fired,
        *passed,
        RuleOutcome(
            rule="HD011",
            name="verbose-cann-log",
            title=text("CANN does not log every call", "CANN 未开启详细日志"),
            state="left_out",
            reason=text("left out by --ignore", "由 --ignore 排除"),
        ),
        RuleOutcome(
            rule="NS010",
            name="attention-share-decode",
            title=text("Attention and matmul share in decode", "解码阶段注意力与矩阵乘占比"),
            state="not_applicable",
            reason=text("the job is training, not inference", "该作业为训练而非推理"),
        ),
        RuleOutcome(
            rule="PB002",
            name="pipe-utilisation-vector",
            title=text("Vector kernels reach the memory limit", "向量算子达到访存上限"),
            state="cannot_answer",
            reason=text("memory access was not recorded", "未记录访存数据"),
            collect=text(
                "`aic_metrics=ACL_AICORE_MEMORY_ACCESS` in the profiler's experimental config",
                "在采集配置中设置 `aic_metrics=ACL_AICORE_MEMORY_ACCESS`",
            ),
        ),
        RuleOutcome(
            rule="COM007",
            name="slow-link",
            title=text("One link is slower than the others", "某条链路慢于其他链路"),
            state="cannot_answer",
            reason=text("only 2 of 8 ranks are here", "只有 8 个 rank 中的 2 个"),
            collect=text("profile all ranks of the job", "采集作业的全部 rank"),
        ),
        RuleOutcome(
            rule="SA004",
            name="cube-tiles",
            title=text("Matmul tiles fill the cube cores", "矩阵乘分块占满 Cube 核"),
            state="error",
            reason=text(
                "plugin `acme-shapes` 0.3.1 raised KeyError: 'm'", "插件 `acme-shapes` 0.3.1 抛出 KeyError: 'm'"
            ),
        ),
    ]


def views() -> list[View]:
    """One of each kind."""
    lanes = [
        {
            "label": "device",
            "intervals": [
                [0, 5_100_000, "computing"],
                [5_900_000, 9_200_000, "computing"],
                [24_100_000, 103_200_000, "communication/wait/rank 5"],
                [103_200_000, 104_900_000, "overlapped"],
                [106_000_000, 127_000_000, "communication/wait/rank 5"],
                [132_000_000, WALL, "computing"],
            ],
        },
        {
            "label": "idle by cause",
            "intervals": [
                [5_100_000, 5_900_000, "idle/sync"],
                [9_200_000, 24_100_000, "idle/host/framework"],
                [104_900_000, 106_000_000, "idle/host/python"],
                [127_000_000, 132_000_000, "idle/host/python"],
            ],
        },
    ]
    marks = [
        {
            "start": 9_200_000,
            "end": 24_100_000,
            "label": {"en": "14.9 ms idle: operator dispatch", "zh": "空闲 14.9 ms：算子下发"},
        },
        {
            "start": 24_100_000,
            "end": 103_200_000,
            "label": {"en": "79.1 ms allReduce, waiting for rank 5", "zh": "allReduce 79.1 ms，等待 rank 5"},
        },
        {"start": 127_000_000, "end": 132_000_000, "label": {"en": "5.0 ms idle: Python", "zh": "空闲 5.0 ms：Python"}},
    ]
    kernels = [
        ("ForeachAddList", 1_959_079, "3 calls"),
        ("TransData", 1_423_208, "57 calls"),
        ("MatMulV2", 921_498, "8 calls"),
        ("Conv2D", 723_434, "5 calls"),
        ("Conv2DBackpropFilter", 645_433, "5 calls"),
        ("TensorMove", 573_791, "11 calls"),
        ("MaxPoolWithArgmaxV1", 409_728, "3 calls"),
    ]
    return [
        view(
            id="strip",
            purpose="step",
            kind="strip",
            title=text("The step of rank 0", "rank 0 的单步"),
            unit="ns",
            rank=0,
            data={"start": 0, "end": WALL, "lanes": lanes, "marks": marks},
        ),
        view(
            id="kernels",
            kind="bars",
            title=text("Operator types by time", "各算子类型耗时"),
            unit="ns",
            rank=0,
            data={"rows": [{"label": n, "value": v, "note": note} for n, v, note in kernels]},
        ),
        view(
            id="collectives",
            kind="stacked_bar",
            title=text("Collectives: transmitting and waiting", "集合通信：传输与等待"),
            unit="ns",
            rank=0,
            data={
                "rows": [
                    {
                        "label": f"allReduce {i}",
                        "parts": [
                            {"key": "communication/transmit", "value": t},
                            {"key": "communication/wait/rank 5", "value": w},
                        ],
                    }
                    for i, (t, w) in enumerate([(292_216, 78_812_004), (460_345, 12_310_985), (315_190, 7_789_361)])
                ]
            },
        ),
        view(
            id="links",
            kind="heatmap",
            title=text("Bandwidth between ranks", "rank 间带宽"),
            unit="GB/s",
            data={
                "rows": ["0", "1"],
                "columns": [str(i) for i in range(8)],
                "values": [
                    [None, 18.2, 17.9, 18.0, 18.4, 3.1, 18.1, 18.0],
                    [18.1, None, 18.0, 17.7, 18.2, 3.3, 18.2, 17.9],
                ],
            },
        ),
    ]


def inputs(ranks: list[int]) -> list[Input]:
    names = ["kernel_details.csv", "trace_view.json", "communication.json", "step_trace_time.csv"]
    files = [
        InputFile(name=name, bytes=1_402_113 * (i + 1), sha256=f"{i + 1:02x}" * 32) for i, name in enumerate(names)
    ]
    return [
        Input(
            path=f"rank{rank}_ascend_pt",
            kind="ascend_pytorch_text",
            rank=rank,
            level="Level1",
            framework="PyTorch",
            versions={"torch": "2.7.1", "torch_npu": "2.7.1", "CANN": "8.3.RC1"},
            sha256=f"{rank % 255:02x}" * 32,
            files=files,
        )
        for rank in ranks
    ]


def _composed(**fields: Any) -> RunResult:
    return recomposed(RunResult(**fields), {})


def recomposed(base: RunResult, changes: dict[str, Any]) -> RunResult:
    """The result with other fields, and with what follows from them."""
    result = base.model_copy(update=changes)
    booked = {(step.role, step.rank, entry.path) for step in result.ledger for entry in step.entries}

    def possible(finding: Finding) -> Finding:
        claims = [claim for claim in finding.impact.claims if (finding.role, claim.rank, claim.path) in booked]
        return finding.model_copy(update={"impact": finding.impact.model_copy(update={"claims": claims})})

    return compose(result.model_copy(update={"findings": [possible(finding) for finding in result.findings]}))


def alexnet() -> RunResult:
    """Two of eight ranks, everything in it."""
    rank1 = {path: round(ns * (0.93 if "wait" in path else 1.04)) for path, ns in RANK0.items()}
    rank1["communication/wait/rank 5"] += WALL - 412_007 - sum(rank1.values())
    return _composed(
        tool=Tool(
            name="npu-advisor",
            version="0.1.0",
            plugins={"ascend": "0.1.0", "advisors": "0.1.0", "acme-shapes": "0.3.1"},
        ),
        inputs=inputs([0, 1]),
        environment=Environment(
            chip={"name": "Ascend910B4", "cube_cores": 20, "vector_cores": 40, "clock_mhz": 1650},
            variables={
                "ASCEND_LAUNCH_BLOCKING": "",
                "ASCEND_GLOBAL_LOG_LEVEL": "3",
                "HCCL_RDMA_TC": "",
                "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True",
            },
            profiler={
                "level": "Level1",
                "aic_metrics": "ACL_AICORE_PIPE_UTILIZATION",
                "with_stack": True,
                "record_shapes": True,
                "l2_cache": True,
            },
        ),
        profile=Profile(
            kind="training",
            ranks=[0, 1],
            world_size=8,
            parallel={"dp": 8, "tp": 1},
            steps=[StepInfo(rank=rank, step=50, start_ns=T0, end_ns=T0 + WALL) for rank in (0, 1)],
        ),
        ledger=[ledger_step(0, RANK0), ledger_step(1, rank1)],
        findings=findings(),
        rules=rules(),
        views=views(),
        diagnostics=[
            Diagnostic(
                severity="warning",
                source="rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv",
                message=text(
                    "3 rows have no Step Id; they were placed by their time", "3 行没有 Step Id，已按时间归入"
                ),
            ),
            Diagnostic(
                severity="info",
                source="profiler_metadata.json",
                message=text(
                    "TASK_QUEUE_ENABLE is not among the recorded variables", "记录的变量中没有 TASK_QUEUE_ENABLE"
                ),
            ),
        ],
        timings={"load": 0.412, "facts": 0.107, "rules": 0.021},
    )


def hostile() -> RunResult:
    """The same job, whose kernels, files, groups and settings carry names that try to do harm."""
    base = alexnet()
    names = HOSTILE
    joined = " ".join(names)
    bad = Text(en=f"Slow kernel {joined}", zh=f"慢算子 {joined}")
    cell_rows = [{"line": i + 1, "name": name, "duration_ns": 1_000_000 + i} for i, name in enumerate(names)]
    evidence = [
        Evidence(
            kind="rows",
            title=bad,
            source=Source(file=names[0], table=names[1], line=1),
            units={"duration_ns": "ns"},
            rows=cell_rows,
        ),
        Evidence(kind="stack", title=bad, rows=[{"frame": name} for name in names]),
        Evidence(kind="setting", title=bad, rows=[{names[0]: names[2]}]),
        Evidence(kind="interval", title=bad, start_ns=T0, end_ns=T0 + 5, lane=names[3]),
    ]
    advice = [
        Advice(kind="env", set={names[0]: names[5]}, text=bad, risk=bad, unless=bad),
        Advice(
            kind="code",
            text=Text(
                en=f"```\n{joined}\n```\n\n<b onclick=alert(1)>x</b>\n\n| a | b |\n", zh="# 标题\n\n> 引用 <i>x</i>"
            ),
        ),
    ]
    worst = base.findings[0].model_copy(
        update={
            "fingerprint": f"X1:{names[0]}",
            "title": bad,
            "why": bad,
            "verify": bad,
            "not_a_problem_if": bad,
            "name": names[0],
            "subject": {"name": names[2]},
            "observation": {names[0]: names[3], "x": names[2]},
            "units": {},
            "condition": names[0],
            "evidence": evidence,
            "advice": advice,
            "caveats": [bad],
            "explains": [],
            "explained_by": ["nowhere"],
            "references": [
                Reference(title=names[0], url="javascript:alert(1)"),
                Reference(title="x", url="http://evil.example/"),
            ],
        }
    )
    hurt = [RuleOutcome(rule="XX001", name=names[0], title=bad, state="error", reason=bad, collect=bad)]
    views = [
        view(
            id="v",
            kind="bars",
            title=bad,
            unit="ns",
            data={"rows": [{"label": name, "value": 5 + i, "note": name} for i, name in enumerate(names)]},
        ),
        view(
            id="s",
            kind="strip",
            title=bad,
            unit="ns",
            data={
                "start": 0,
                "end": 10,
                "lanes": [{"label": names[0], "intervals": [[0, 10, names[3]]]}],
                "marks": [{"start": 0, "end": 5, "label": {"en": names[0], "zh": names[0]}}],
            },
        ),
        view(
            id="h",
            kind="heatmap",
            title=bad,
            unit="",
            data={"rows": [names[0]], "columns": [names[3]], "values": [[1.0]]},
        ),
        view(
            id="b",
            kind="stacked_bar",
            title=bad,
            unit="ns",
            data={"rows": [{"label": names[0], "parts": [{"key": names[7], "value": 3}]}]},
        ),
        view(
            id="c",
            kind="curve",
            title=bad,
            unit="GiB",
            data={
                "start": 0,
                "end": 10,
                "times": [0],
                "series": [{"key": names[3], "label": {"en": names[0], "zh": names[0]}, "values": [1.0]}],
                "marks": [{"start": 0, "label": {"en": names[3], "zh": names[3]}}],
            },
        ),
    ]
    ledger = [
        *base.ledger[:1],
        ledger_step(1, {f"compute/{names[0]}": 5_000_000, "communication/wait/rank 5": 7, names[7]: 4_000_000}),
    ]
    return recomposed(
        base,
        {
            "tool": base.tool.model_copy(update={"plugins": {names[0]: names[3]}}),
            "findings": [worst, *base.findings],
            "rules": [*base.rules, *hurt],
            "views": views,
            "ledger": ledger,
            "inputs": [
                base.inputs[0].model_copy(
                    update={"path": names[0], "kind": names[2], "framework": names[7], "versions": {names[0]: names[3]}}
                )
            ],
            "environment": base.environment.model_copy(
                update={
                    "variables": {names[0]: names[2], "E": names[3]},
                    "chip": {"name": names[0]},
                    "profiler": {names[7]: names[0]},
                }
            ),
            "diagnostics": [Diagnostic(severity="error", source=names[0], message=bad)],
        },
    )


def nothing_found() -> RunResult:
    """No finding, and rules that could not answer."""
    base = alexnet()
    return recomposed(
        base,
        {
            "findings": [],
            "rules": [rule for rule in base.rules if rule.state != "fail"],
            "diagnostics": [],
            "views": [],
        },
    )


def empty() -> RunResult:
    """As little as a result can hold."""
    return RunResult(
        tool=Tool(name="npu-advisor", version="0.1.0"),
        inputs=[],
        environment=Environment(),
        profile=Profile(kind="unknown", ranks=[], steps=[]),
        ledger=[],
        findings=[],
        rules=[],
        views=[],
        diagnostics=[],
    )


def many_ranks(count: int = 64, per_rank: int = 3) -> RunResult:
    """A big job: every rank with its own ledger and findings, and views above the number of marks a chart may have."""
    base = alexnet()
    template = findings()
    found = [
        f.model_copy(
            update={
                "rank": rank,
                "ranks": [rank],
                "fingerprint": f"{f.rule}:rank={rank}",
                "explains": [],
                "explained_by": [],
            }
        )
        for rank in range(count)
        for f in template[:per_rank]
    ]
    steps = [
        ledger_step(rank, {path: round(ns * (1 + 0.02 * ((rank * 7) % 13))) for path, ns in RANK0.items()}, step)
        for rank in range(count)
        for step in (50, 51)
    ]
    intervals = [[i * 40_000, i * 40_000 + 25_000, "computing" if i % 3 else "communication"] for i in range(3_000)]
    views = [
        view(
            id="stack",
            kind="stacked_bar",
            title=text("Ranks", "各 rank"),
            unit="ns",
            data={
                "rows": [
                    {
                        "label": f"rank {r}",
                        "parts": [
                            {"key": k, "value": 1_000_000 * (1 + (r + i) % 5)}
                            for i, k in enumerate(("computing", "communication", "idle", "x"))
                        ],
                    }
                    for r in range(count * 4)
                ]
            },
        ),
        view(
            id="strip",
            kind="strip",
            title=text("A long step", "长步"),
            unit="ns",
            data={"start": 0, "end": 120_000_000, "lanes": [{"label": "device", "intervals": intervals}]},
        ),
        view(
            id="heat",
            kind="heatmap",
            title=text("All links", "全部链路"),
            unit="GB/s",
            data={
                "rows": [str(r) for r in range(count)],
                "columns": [str(r) for r in range(count)],
                "values": [[float((r * c) % 29) for c in range(count)] for r in range(count)],
            },
        ),
        view(
            id="bars",
            kind="bars",
            title=text("Many operators", "大量算子"),
            unit="ns",
            data={"rows": [{"label": f"op{i}", "value": 1_000_000 // (i + 1)} for i in range(400)]},
        ),
    ]
    return recomposed(
        base,
        {
            "inputs": inputs(list(range(count))),
            "ledger": steps,
            "findings": found,
            "views": views,
            "profile": base.profile.model_copy(
                update={
                    "ranks": list(range(count)),
                    "world_size": count,
                    "steps": [
                        StepInfo(rank=r, step=s, start_ns=T0 + i * WALL, end_ns=T0 + (i + 1) * WALL)
                        for r in range(count)
                        for i, s in enumerate((50, 51))
                    ],
                }
            ),
        },
    )


def phase_times(result: RunResult, phase: str = "", kind: str = "") -> list[PhaseTime]:
    """Each step of the result as one phase."""
    return [
        PhaseTime(
            rank=step.rank,
            step=step.step,
            phase=phase,
            kind=kind,
            wall_ns=step.wall_ns,
            spans=1,
            entries={entry.path: entry.ns for entry in step.entries},
        )
        for step in result.ledger
    ]


def of_roles() -> RunResult:
    """Two roles that were profiled one by one, with names that a page has to escape and to break."""
    parts = []
    for role, kind in (("actor_compute_log_prob_of_a_long_name", "log_prob"), ("<b>rollout|`x`", "rollout")):
        result = alexnet()
        result = result.model_copy(update={"phases": phase_times(result, role, kind)})
        parts.append((role, of_role(result, role)))
    return recomposed(joined(parts), {})


def marked() -> RunResult:
    """One profile whose marks divide each step: a rollout that computes and waits, and time outside of all marks."""
    result = alexnet()
    phases = []
    for step in result.ledger:
        entries = {entry.path: entry.ns for entry in step.entries}
        inside = {path: ns for path, ns in entries.items() if not path.startswith("idle/")}
        outside = {path: ns for path, ns in entries.items() if path.startswith("idle/")}
        for name, kind, found in (("rollout", "rollout", inside), ("", "", outside)):
            wall = sum(found.values())
            phases.append(
                PhaseTime(rank=step.rank, step=step.step, phase=name, kind=kind, wall_ns=wall, spans=1, entries=found)
            )
    return recomposed(result, {"phases": phases})
