"""Turns operator streams into recordings, each beside what it is known to compute.

    python -m tests.programs.prepare STREAMS TOOLS FOLDER

``STREAMS``: a folder of recorded streams (``*.jsonl.gz``). ``TOOLS``: the folder of ``stream_to_profile.py``, which
writes a recording out of one, and of ``aten_to_kernels.py``, which tells the operator of each kernel. For each program
``FOLDER`` gets a folder with the recording and ``occurrences.json``.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from tests.programs.streams import read
from tests.programs.truth import occurrences


def main() -> None:
    """All streams of a folder."""
    streams, tools, folder = map(Path, sys.argv[1:4])
    mapping = _module(tools / "aten_to_kernels.py")
    for stream in sorted(streams.glob("*.jsonl.gz")):
        prepare(stream, tools, mapping, folder / stream.name.removesuffix(".jsonl.gz"))


def prepare(stream: Path, tools: Path, mapping: ModuleType, folder: Path) -> None:
    """The recording of one stream, and the kernels of each of its computations: their numbers among the kernels that
    are no collectives."""
    command = [sys.executable, str(tools / "stream_to_profile.py"), str(stream), str(folder), "--repeat", "1"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    _, kernels = mapping.kernels(str(stream))
    kernels_of: dict[int, list[int]] = defaultdict(list)
    computing = [kernel for kernel in kernels if not kernel["type"].startswith("hcom_")]
    for number, kernel in enumerate(computing):
        kernels_of[kernel["op"]].append(number)
    write_truth(folder, stream, kernels_of, len(computing))


def write_truth(folder: Path, stream: Path, kernels_of: Mapping[int, Sequence[int]], kernels: int) -> None:
    """The computations of a stream beside its recording, for `tests.programs.score`. ``kernels_of``: numbers of the
    kernels of each operator that has some; ``kernels``: how many there are."""
    found = [
        {
            "name": one.name,
            "backward": one.backward,
            "kernels": sorted(kernel for operator in one.operators for kernel in kernels_of.get(operator, ())),
            "bytes": one.bytes,
        }
        for one in occurrences(read(stream))
    ]
    document = {"program": folder.name, "kernels": kernels, "occurrences": found}
    (folder / "occurrences.json").write_text(json.dumps(document), encoding="utf-8")


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
