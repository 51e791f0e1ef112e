from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.contracts.missing import Unavailable
from advisor_core.loaders.ascend_pytorch.communication_json import _find, read_communication, read_matrix
from advisor_core.loaders.readers.files import HashedFile
from advisor_core.loaders.readers.problems import Problems


def times(start: Any, elapse: Any) -> dict[str, Any]:
    return {"Start Timestamp(us)": start, "Elapse Time(ms)": elapse, "Wait Time(ms)": 0.5}


def operation(start: Any = 1736408883732241.5, elapse: Any = 2.25) -> dict[str, Any]:
    moved = {"Transit Size(MB)": 1.5, "Transit Time(ms)": 0.1, "Bandwidth(GB/s)": 15.0, "Large Packet Ratio": 0.0}
    return {
        "Communication Time Info": times(start, elapse),
        "Communication Bandwidth Info": {
            "HCCS": {**moved, "Size Distribution": {"0.5": [2, 0.05], "0.25": [2, 0.05]}},
            "RDMA": {"Transit Size(MB)": 0, "Transit Time(ms)": 0, "Bandwidth(GB/s)": 0, "Size Distribution": {}},
        },
    }


CONTENT = {
    "step50": {
        "p2p": {"hcom_send__1_0_1@7": operation()},
        "collective": {"hcom_allReduce__586_0_1@17522688603477080586": operation(), "Total Op Info": operation()},
    },
    "step": {"p2p": {}, "collective": {"hcom_send__1_0_1@7": operation(elapse=1)}},
}


def read(
    path: Path, reader: Callable[..., dict[str, pd.DataFrame]], content: bytes
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    path.write_bytes(content)
    problems = Problems(path.name)
    with HashedFile(path) as file:
        frames = reader(file, problems)
    return frames, [diagnostic.message.en for diagnostic in problems.diagnostics()]


def test_operations(tmp_path: Path) -> None:
    content = json.dumps(CONTENT).encode()
    frames, said = read(tmp_path / "communication.json", read_communication, content)
    assert said == []
    operations = frames["collectives"]
    assert operations["step"].tolist() == [50, 50, -1] and operations["kind"].tolist() == [
        "p2p",
        "collective",
        "collective",
    ]
    assert operations["group"].tolist() == ["7", "17522688603477080586", "7"]
    assert operations["name"].tolist()[1] == "hcom_allReduce__586_0_1"
    assert operations["start_ns"].tolist() == [1736408883732241500] * 3  # exact, though the file has a JSON number
    assert (
        operations["elapse_ns"].tolist() == [2250000, 2250000, 1000000]
        and operations["transit_ns"].tolist() == [-1] * 3
    )
    for offset, key in zip(operations["source_row"], ["send__1", "allReduce", "send__1"], strict=True):
        assert content[offset:].startswith(f'"hcom_{key}'.encode())
    assert operations["source_row"].is_monotonic_increasing
    moved = frames["collective_bandwidth"]
    assert moved["transport"].tolist() == ["HCCS"] * 3 and moved["bytes"].tolist() == [1500000] * 3
    assert moved["packets"].tolist() == [4] * 3 and moved["max_packet_bytes"].tolist() == [500000] * 3
    assert moved["bandwidth"].tolist() == [15e9] * 3


def test_links(tmp_path: Path) -> None:
    link = {
        "Transport Type": "HCCS",
        "Transit Size(MB)": 2,
        "Transit Time(ms)": 1,
        "Bandwidth(GB/s)": 2,
        "Op Name": "op@1",
    }
    content = json.dumps(
        {"step5": {"p2p": {}, "collective": {"allreduce-top1@9": {"0-1": link, "0-7": link, "x": link}}}}
    ).encode()
    frames, said = read(tmp_path / "communication_matrix.json", read_matrix, content)
    links = frames["links"]
    assert (
        links["target_rank"].tolist() == [1, 7]
        and links["group"].tolist() == ["9", "9"]
        and links["op"].tolist() == ["op", "op"]
    )
    assert links["bytes"].tolist() == [2000000] * 2 and links["transit_ns"].tolist() == [1000000] * 2
    assert [content[offset : offset + 5] for offset in links["source_row"]] == [b'"0-1"', b'"0-7"']
    assert "1 operation has" in said[0]


@pytest.mark.parametrize(
    "bad", [operation(start="soon"), operation(elapse=-1), operation(elapse="x"), {}, {"Communication Time Info": 3}]
)
def test_a_bad_operation_is_left_out(tmp_path: Path, bad: Any) -> None:
    content = json.dumps({"step1": {"collective": {"bad@1": bad, "good@1": operation()}}}).encode()
    frames, said = read(tmp_path / "communication.json", read_communication, content)
    assert frames["collectives"]["name"].tolist() == ["good"] and "'bad@1'" in said[0]


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'{"a": ' + b"[" * 100_000, b"3"])
def test_damage(tmp_path: Path, content: bytes) -> None:
    for reader in (read_communication, read_matrix):
        with pytest.raises(Unavailable, match=r"communication.json"):
            read(tmp_path / "communication.json", reader, content)


def test_unexpected_shapes_give_empty_tables(tmp_path: Path) -> None:
    odds: list[dict[str, Any]] = [
        {},
        {"step1": 3},
        {"step1": {"collective": []}},
        {"step1": {"collective": {"a@1": 4}}},
    ]
    for odd in odds:
        frames, _ = read(tmp_path / "c.json", read_communication, json.dumps(odd).encode())
        assert frames["collectives"].empty and "start_ns" in frames["collectives"]


@given(st.text('"a: é\n', max_size=30), st.text('"aé', max_size=2), st.integers(0, 8))
def test_a_key_is_found_where_a_colon_follows_it(text: str, key: str, start: int) -> None:
    data = text.encode()
    keys = (json.dumps(key, ensure_ascii=False).encode(), json.dumps(key).encode())
    ends = [
        data[at + len(one) :].lstrip()[:1] for one in keys for at in range(start, len(data)) if data.startswith(one, at)
    ]
    found = _find(data, key, start)
    assert found == start if b":" not in ends else data.startswith(keys, found)
    if b":" in ends:
        rest = next(data[found + len(one) :] for one in keys if data.startswith(one, found))
        assert found >= start and rest.lstrip().startswith(b":")
