"""A client of Perfetto's trace processor, as ``serve.js`` runs it: what is in a trace, by SQL."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

FOLDER = os.environ.get("PERFETTO", "")
"""That of the engine; ``.ci/perfetto.sh`` prints it."""

PIECE = 1 << 20


class Processor:
    """A trace that was loaded. A context manager; skips the test where there is no trace processor."""

    def __init__(self, trace: bytes) -> None:
        node = shutil.which("node")
        if not FOLDER or node is None:
            pytest.skip("no trace processor: set PERFETTO to what .ci/perfetto.sh prints")
        protos = pytest.importorskip("perfetto.trace_processor.protos")
        platform = pytest.importorskip("perfetto.trace_processor.platform")
        self._protos = protos.ProtoFactory(platform.PlatformDelegate())
        self._rpc = self._protos.TraceProcessorRpc
        self._asked = 0
        self._process = subprocess.Popen(
            [node, str(Path(__file__).parent / "serve.js"), FOLDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for start in range(0, len(trace), PIECE):
            self._ask(self._rpc.TPM_APPEND_TRACE_DATA, append_trace_data=trace[start : start + PIECE])
            reply = self._reply()
            assert not reply.append_result.error, reply.append_result.error
        self._ask(self._rpc.TPM_FINALIZE_TRACE_DATA)
        self._reply()

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        iterator = pytest.importorskip("perfetto.common.query_result_iterator").QueryResultIterator
        self._ask(self._rpc.TPM_QUERY_STREAMING, lambda request: setattr(request.query_args, "sql_query", sql))
        names: list[str] = []
        batches: list[Any] = []
        while not batches or not batches[-1].is_last_batch:
            result = self._reply().query_result
            assert not result.error, result.error
            names += result.column_names
            batches += result.batch
        return [tuple(getattr(row, name) for name in names) for row in iterator(names, batches)]

    def problems(self) -> dict[str, int]:
        """What was wrong with the trace, with how often."""
        return dict(self.query("select name, value from stats where value > 0 and severity != 'info'"))

    def _ask(self, kind: int, fill: Callable[[Any], None] = lambda request: None, **fields: Any) -> None:
        stream = self._protos.TraceProcessorRpcStream()
        self._asked += 1
        request = stream.msg.add(seq=self._asked, request=kind, **fields)
        fill(request)
        written = stream.SerializeToString()
        assert self._process.stdin is not None
        self._process.stdin.write(struct.pack("<I", len(written)) + written)
        self._process.stdin.flush()

    def _reply(self) -> Any:
        """The next message of a stream of field 1, each with its length as a varint."""
        stdout = self._process.stdout
        assert stdout is not None
        assert stdout.read(1) == b"\x0a"
        length = shift = 0
        while True:
            (byte,) = stdout.read(1)
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        reply = self._rpc()
        reply.ParseFromString(stdout.read(length))
        assert not reply.fatal_error, reply.fatal_error
        return reply

    def __enter__(self) -> Processor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait(timeout=60)
