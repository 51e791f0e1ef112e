"""Small Kineto traces, written event by event. Times in us."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advisor_core.contracts.profile import Profile
from advisor_core.loaders.discover import discover
from advisor_core.loaders.kineto.loader import KinetoLoader

A100 = {"id": 0, "name": "NVIDIA A100", "totalGlobalMem": 40 << 30, "computeMajor": 8, "computeMinor": 0, "numSms": 108}
MAIN, STREAM = 100, 7


@dataclass
class Recording:
    """``members``: what stands around the events."""

    members: dict[str, Any] = field(default_factory=lambda: {"schemaVersion": 1, "deviceProperties": [A100]})
    events: list[dict[str, Any]] = field(default_factory=list)

    def event(
        self, cat: str, name: str, ts: Any, dur: Any, *, pid: Any = MAIN, tid: Any = MAIN, **args: Any
    ) -> Recording:
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}
        )
        return self

    def step(self, number: int, ts: float, dur: float) -> Recording:
        return self.event("user_annotation", f"ProfilerStep#{number}", ts, dur)

    def operator(self, name: str, ts: float, dur: float, external: int, tid: Any = MAIN, **args: Any) -> Recording:
        return self.event("cpu_op", name, ts, dur, tid=tid, **{"External id": external, **args})

    def call(self, name: str, ts: float, dur: float, correlation: int, cat: str = "cuda_runtime") -> Recording:
        return self.event(cat, name, ts, dur, correlation=correlation)

    def task(
        self, name: str, ts: float, dur: float, correlation: int, *, cat: str = "kernel", stream: int = STREAM,
        device: int = 0, **args: Any,
    ) -> Recording:  # fmt: skip
        where = {"device": device, "stream": stream, "correlation": correlation, **args}
        return self.event(cat, name, ts, dur, pid=device, tid=stream, **where)

    def launch(
        self, name: str, ts: float, start: float, dur: float, number: int, operator: str = "aten::mul"
    ) -> Recording:
        """An operator, its call and its kernel."""
        self.operator(operator, ts, 10, number)
        self.call("cudaLaunchKernel", ts + 2, 4, number)
        return self.task(name, start, dur, number, **{"External id": number})

    def python(self, name: str, ts: float, dur: float, number: int, caller: int | None) -> Recording:
        ids = {"Python id": number, "Python parent id": caller}
        return self.event("python_function", name, ts, dur, **ids)

    def memory(self, ts: float, size: int, address: int, allocated: int) -> Recording:
        totals = {"Total Allocated": allocated, "Total Reserved": 1 << 20, "Device Type": 1, "Device Id": 0}
        args = {"Bytes": size, "Addr": address, **totals}
        self.events.append(
            {
                "ph": "i",
                "cat": "cpu_instant_event",
                "name": "[memory]",
                "pid": MAIN,
                "tid": MAIN,
                "ts": ts,
                "args": args,
            }
        )
        return self

    def text(self) -> bytes:
        return json.dumps({**self.members, "traceEvents": self.events, "traceName": "trace.json"}).encode()

    def write(self, path: Path) -> Path:
        data = self.text()
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
        return path

    def load(self, folder: Path, name: str = "trace.json") -> Profile:
        return load(self.write(folder / name))


def load(path: Path) -> Profile:
    (source,) = discover([KinetoLoader()], path)
    return KinetoLoader().load(source)


def two_steps() -> Recording:
    """Two steps with an operator of one kernel each."""
    made = Recording()
    for number, start in ((3, 1000.0), (4, 2000.0)):
        made.step(number, start, 900)
        made.launch("elementwise_kernel<MulFunctor>", start + 100, start + 150, 50, number)
        made.launch("ampere_sgemm_64x64_nn", start + 300, start + 350, 200, number + 10, "aten::mm")
    return made
