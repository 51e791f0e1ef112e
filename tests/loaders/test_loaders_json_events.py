"""Cutting an array of events: any chunk size, any formatting, any text gives what ``json.load`` gives."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.loaders.readers.files import HashedFile
from advisor_core.loaders.readers.json_events import ChunkIndex, ElementReader, borders

NASTY = st.sampled_from(['}, {"', '},{"a', "}]", '"', "\\", '\\"', "\\\\", "[{", "é", "\n", "}\n, {", "😀"])
TEXT = st.lists(st.one_of(NASTY, st.text(max_size=4)), max_size=4).map("".join)
VALUE = st.recursive(
    st.one_of(TEXT, st.integers(-5, 5), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=6,
)
EVENTS = st.lists(st.dictionaries(TEXT, VALUE, max_size=4), max_size=8)
FORMATS: list[dict[str, Any]] = [
    {},
    {"separators": (",", ":")},
    {"indent": 2},
    {"indent": "\t", "ensure_ascii": False},
    {"ensure_ascii": False},
]

Found = tuple[list[Any], list[int], ChunkIndex, list[tuple[str, int]]]


def read(path: Path, size: int) -> Found:
    damage: list[tuple[str, int]] = []
    elements: list[Any] = []
    ordinals: list[int] = []
    with HashedFile(path) as file:
        decoder = msgspec.json.Decoder(list[dict[str, Any]])
        reader = ElementReader(
            file, decoder.decode, lambda data: None, lambda k, at, text: damage.append((k, at)), size
        )
        for batch in reader:
            elements += batch.elements
            ordinals += batch.ordinals.tolist()
    return elements, ordinals, reader.index(), damage


def parse(content: bytes, size: int) -> tuple[Found, list[int]]:
    """What was read, and the positions of the elements."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.json")
        path.write_bytes(content)
        found = read(path, size)
        return found, found[2].positions(path, np.array(found[1], np.int64)).tolist() if found[1] else []


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@given(EVENTS, st.sampled_from(FORMATS), st.integers(1, 300), st.booleans(), st.sampled_from([b"", b"\n", b" \r\n\t"]))
def test_any_chunk_size_gives_what_json_gives(
    events: list[dict[str, Any]], style: dict[str, Any], size: int, wrapped: bool, tail: bytes
) -> None:
    whole: Any = {"schemaVersion": 1, "traceEvents": events, "more": [{"a": 1}, {"b": 2}]} if wrapped else events
    content = encoded(json.dumps(whole, **style)) + tail
    (elements, ordinals, _, damage), positions = parse(content, size)
    assert elements == events and ordinals == list(range(len(events))) and damage == []
    decoder = json.JSONDecoder()
    for event, position in zip(events, positions, strict=True):
        assert decoder.raw_decode(content[position:].decode("utf-8", "surrogatepass"))[0] == event


@given(EVENTS.filter(bool), st.sampled_from(FORMATS), st.data())
def test_borders_are_those_of_the_elements(events: list[dict[str, Any]], style: dict[str, Any], data: Any) -> None:
    content = encoded(json.dumps(events, **style))
    found = borders(content[1:])
    assert [json.loads(content[1:][a:b]) for a, b in zip(found.starts, found.ends, strict=True)] == events
    assert found.stop == len(content) - 2
    cut = data.draw(st.integers(0, len(content) - 2))
    part = borders(content[1 : 1 + cut])
    assert part.starts.tolist() == [s for s, e in zip(found.starts, found.ends, strict=True) if e <= cut]
    assert part.stop is None


@given(EVENTS, st.sampled_from(FORMATS), st.integers(1, 64), st.booleans())
def test_a_file_cut_anywhere_gives_the_events_before(
    events: list[dict[str, Any]], style: dict[str, Any], size: int, wrapped: bool
) -> None:
    content = encoded(json.dumps({"traceEvents": events} if wrapped else events, **style))
    opening = content.index(b"[") + 1
    found = borders(content[opening:])
    ends = (found.ends + opening).tolist()
    closing = (found.stop or 0) + opening
    for cut in {opening, len(content) // 2, *ends, *(end - 1 for end in ends), *(end + 1 for end in ends)}:
        if opening <= cut <= closing:
            (elements, _, _, damage), _ = parse(content[:cut], size)
            assert elements == events[: sum(end <= cut for end in ends)]
            assert [kind for kind, _ in damage] == ["cut_off"]


@pytest.mark.parametrize("content", [b"", b"  ", b"hello", b"\x00\xff", b"42", b'{"events": [{}]}', b"{}", b'"[{}]"'])
def test_no_array(content: bytes) -> None:
    (elements, _, _, damage), _ = parse(content, 10)
    assert elements == [] and damage == [("not_an_array", 0)]


@pytest.mark.parametrize("content", [b"[]", b" [ \n] ", b'{"traceEvents": []}', b"\xef\xbb\xbf[]"])
def test_an_empty_array(content: bytes) -> None:
    assert parse(content, 4)[0][0::3] == ([], [])


def test_damage_in_one_element_costs_that_element() -> None:
    for size in (5, 40, 10_000):
        found, positions = parse(b'[{"a": 1}, {"b": x}, {"c": 3}, {"d": nul}]', size)
        assert found[0] == [{"a": 1}, {"c": 3}] and found[1] == [0, 2] and positions == [1, 21]
        assert found[3] == [("element", 11), ("element", 31)]


def test_a_bracket_too_many_and_text_behind_the_end() -> None:
    assert parse(b'[{"a": 1}}, {"b": 2}]', 100)[0][0::3] == ([{"a": 1}], [("broken", 9)])
    assert parse(b'[{"a": 1}] {"b": 2}', 100)[0][0::3] == ([{"a": 1}], [("trailing", 11)])


def test_deep_nesting_does_not_crash() -> None:
    bomb = b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    found, _ = parse(b'[{"x": 1}, ' + bomb + b', {"y": 2}]', 1000)
    assert found[0] == [{"x": 1}, {"y": 2}] and found[3] == [("element", 11)]
    found, _ = parse(b'[{"x": 1}, {"a": ' + b"[" * 200_000, 1000)
    assert found[0] == [{"x": 1}] and found[3] == [("cut_off", 11)]


def test_positions_of_a_file_that_is_gone_are_those_of_the_chunks(tmp_path: Path) -> None:
    index = ChunkIndex(np.array([1, 50]), np.array([49, 50]), np.array([0, 10]), 20)
    assert index.positions(tmp_path / "gone", np.array([3, 12])).tolist() == [1, 50]
